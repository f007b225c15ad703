// Ids of tool calls that nobody can guess: knowing one is what lets a client refer to an old
// answer. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace locket::service {

// "call_", the call's index in its answer in two digits or more, "_", 24 random letters and digits.
std::string make_call_id(std::size_t index);

// Random characters of [A-Za-z0-9].
std::string random_letters(std::size_t count);

}  // namespace locket::service
