// What the readers of config.json of all generations share: the ranges of its integers, and numbers
// read into their places. Errors as those of ConfigObject.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "checkpoint/config_json.h"

namespace locket::model {

// Products of a few sizes fit into 64 bits; ids, positions and rows fit into 32.
inline constexpr checkpoint::IntegerRange kPositive = {1, std::int64_t{1} << 20};
inline constexpr checkpoint::IntegerRange kNotNegative = {0, std::int64_t{1} << 20};
inline constexpr checkpoint::IntegerRange kIdCount = {1, std::int64_t{0x7fffffff}};
inline constexpr checkpoint::IntegerRange kIdOrNone = {0, std::int64_t{0x7fffffff}};

struct IntegerKey {
  std::string_view key;
  std::int64_t* target;
  checkpoint::IntegerRange range = kPositive;
};

[[nodiscard]] Status read_integers(const checkpoint::ConfigObject& object,
                                   std::initializer_list<IntegerKey> keys);

// A number above 0.
[[nodiscard]] Result<double> positive_number(const checkpoint::ConfigObject& object,
                                             std::string_view key);
[[nodiscard]] Status read_number(const checkpoint::ConfigObject& object, std::string_view key,
                                 float* target);

// The error for a value that is known and not implemented: kUnsupported.
[[nodiscard]] tl::unexpected<Error> refuse_unsupported(const checkpoint::ConfigObject& object,
                                                       std::string_view key,
                                                       std::string_view needed);

}  // namespace locket::model
