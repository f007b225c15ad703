// The grammar of Messages streams, as strictly as the strictest client reads them, and the message
// that a stream adds up to.
#pragma once

#include <vector>

#include "tests/support/event_stream.h"

namespace locket::test_support {

StreamCheck check_messages_stream(const std::vector<StreamEvent>& events);

}  // namespace locket::test_support
