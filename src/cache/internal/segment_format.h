// Segment files: their names and the header that each begins with. docs/formats/kv_store.md has the
// bytes. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace locket::cache {

// One kind of payload per file, so that what is read together lies together.
enum class SegmentKind : std::uint32_t { kKeys, kRows, kSnapshots, kCount };
inline constexpr std::size_t kSegmentKinds = static_cast<std::size_t>(SegmentKind::kCount);

inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::uint32_t kSegmentFormat = 1;

struct SegmentName {
  SegmentKind kind = SegmentKind::kKeys;
  std::uint32_t id = 0;  // never used again, whatever the kind
};

// "keys-000001.seg"
std::string segment_file_name(const SegmentName& name);
std::optional<SegmentName> parse_segment_file_name(std::string_view file);

using SegmentHeader = std::array<std::byte, kSegmentHeaderBytes>;
SegmentHeader make_segment_header(const SegmentName& name);
// Whether these bytes begin the segment of that name, in this version of the format.
bool is_segment_header(std::span<const std::byte> bytes, const SegmentName& name);

}  // namespace locket::cache
