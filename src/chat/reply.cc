#include "chat/reply.h"

#include "base/check.h"

namespace locket::chat {

std::string_view reply_start_name(ReplyStart start) {
  switch (start) {
    case ReplyStart::kContent:
      return "content";
    case ReplyStart::kReasoning:
      return "reasoning";
    case ReplyStart::kReasoningContinued:
      return "reasoning_continued";
    case ReplyStart::kContentContinued:
      return "content_continued";
    case ReplyStart::kCalls:
      return "calls";
    case ReplyStart::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kContentFilter:
      return "content_filter";
    case FinishReason::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::chat
