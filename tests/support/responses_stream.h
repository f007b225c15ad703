// The grammar of Responses streams, as strictly as the strictest client reads them. What a stream
// adds up to is the response of its last event, after its items were compared with the deltas.
#pragma once

#include <vector>

#include "tests/support/event_stream.h"

namespace locket::test_support {

// Whether the model may have left a call unfinished.
enum class CutCalls { kNone, kAllowed, kCount };

StreamCheck check_responses_stream(const std::vector<StreamEvent>& events,
                                   CutCalls cut = CutCalls::kNone);

}  // namespace locket::test_support
