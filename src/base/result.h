// Result<T>: a value, or an Error with one code of a small closed list and a message that names the
// thing, the value found and what would be right. No exception crosses a room; every expected
// failure (file, input, client, budget) is returned as an Error.
//
// The list of codes is shared by the command line (exit codes) and the server (HTTP statuses).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace locket {

enum class ErrorCode {
  kBadRequest,      // the caller's input is wrong
  kNotFound,        // a named thing does not exist
  kUnsupported,     // known, valid, and not implemented
  kBadCheckpoint,   // model files that contradict themselves or the program
  kBadMemory,       // stored pages that cannot be trusted
  kOverBudget,      // a byte budget does not allow it
  kContextTooLong,  // more tokens than the model or the budget holds
  kCancelled,       // stopped by the caller
  kOverloaded,      // try again later
  kIo,              // the operating system refused
  kInternal,        // a fault of the program
  kCount
};

// The name used on the command line and in JSON, for example "bad_checkpoint".
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}

}  // namespace locket

#define LOCKET_CONCAT_INNER(a, b) a##b
#define LOCKET_CONCAT(a, b) LOCKET_CONCAT_INNER(a, b)

// LOCKET_TRY(auto x, f()): declares x with the value of f(), or returns f()'s Error.
#define LOCKET_TRY(declaration, expression) \
  LOCKET_TRY_INNER(declaration, expression, LOCKET_CONCAT(locket_try_, __LINE__))
#define LOCKET_TRY_INNER(declaration, expression, name)                       \
  auto name = (expression);                                                   \
  if (!name.has_value()) return tl::make_unexpected(std::move(name.error())); \
  declaration = std::move(*name)

// LOCKET_TRY_STATUS(f()): returns f()'s Error, if it has one.
#define LOCKET_TRY_STATUS(expression)                                  \
  do {                                                                 \
    if (auto locket_status = (expression); !locket_status.has_value()) \
      return tl::make_unexpected(std::move(locket_status.error()));    \
  } while (false)
