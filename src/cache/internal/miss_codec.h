// A recorded miss as bytes, and back. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/disk_catalog.h"

namespace locket::cache {

// Keys come in the order of their numbers.
std::string miss_key(std::uint64_t number);
// nullopt: no such key.
std::optional<std::uint64_t> number_of_miss(std::string_view key);

std::string encode_miss(std::string_view key, const RecordedMiss& miss);
// nullopt: damaged, foreign or of another version.
std::optional<RecordedMiss> decode_miss(std::string_view key, std::string_view value);

}  // namespace locket::cache
