#include "base/result.h"

#include "base/check.h"

namespace locket {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadRequest:
      return "bad_request";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kBadCheckpoint:
      return "bad_checkpoint";
    case ErrorCode::kBadMemory:
      return "bad_memory";
    case ErrorCode::kOverBudget:
      return "over_budget";
    case ErrorCode::kContextTooLong:
      return "context_too_long";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kOverloaded:
      return "overloaded";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket
