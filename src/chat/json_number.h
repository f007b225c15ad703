// Numbers of JSON texts as doubles and integers, independent of any locale. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace locket::chat {

// The nearest double; none if the number is too large for one. Numbers below the smallest become a
// zero of their sign. REQUIRES: `digits` is a JSON number.
std::optional<double> read_double(std::string_view digits);

// The integer, or none if it does not fit or is none.
std::optional<std::int64_t> read_int64(std::string_view digits);
std::optional<std::uint64_t> read_uint64(std::string_view digits);

// The shortest text that reads back as `value`, as Python's repr() writes it: 1.0, -0.0, 1e-05,
// 1e+16. REQUIRES: `value` is finite.
std::string python_repr(double value);

}  // namespace locket::chat
