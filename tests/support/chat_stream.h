// The grammar of Chat and Completions streams, as strictly as the strictest client reads them.
// What a stream adds up to is put together as the widely used SDKs do: texts of the same place are
// joined, whatever they are, so that a repeated role, id or name shows.
#pragma once

#include <cstddef>
#include <vector>

#include "server/reply_writer.h"
#include "tests/support/event_stream.h"

namespace locket::test_support {

struct ChatExpectation {
  std::size_t choice_count = 1;
  bool wants_usage = false;  // stream_options.include_usage
  server::UsageChunk usage_chunk = server::UsageChunk::kWithFinish;
};

StreamCheck check_chat_stream(const std::vector<StreamEvent>& events,
                              const ChatExpectation& expectation = {});
StreamCheck check_completion_stream(const std::vector<StreamEvent>& events,
                                    const ChatExpectation& expectation = {});

}  // namespace locket::test_support
