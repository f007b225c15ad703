#include "cache/internal/path_writer.h"

#include "cache/page_parts.h"

namespace locket::cache {

std::span<const std::byte> PathWriter::part(const PathPage& page, PagePart part) {
  const auto tokens = static_cast<std::int64_t>(page.tokens.size());
  if (tokens == kTokensPerPage) {
    return {page.data + layout_.part_offset(part), layout_.part_bytes(part)};
  }
  std::vector<std::byte>& packed = packed_.emplace_back(packed_bytes(layout_, part, tokens));
  pack_part(layout_, part, tokens, page.data, packed);
  return packed;
}

Status PathWriter::write(const std::vector<PathPage>& path, TurnWrite turn) {
  std::vector<PrefixPoint> parents;
  std::vector<PrefixPoint> ends;
  for (const PathPage& page : path) {
    parents.push_back(page.parent);
    ends.push_back(page.end);
  }
  const std::vector<bool> is_stored = disk_.has_pages(parents, ends);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const PathPage& page = path[i];
    if (!is_stored[i]) {
      turn.pages.push_back({.parent = page.parent,
                            .end = page.end,
                            .tokens = page.tokens,
                            .keys = part(page, PagePart::kKeys),
                            .rows = part(page, PagePart::kRows)});
    }
    if (page.snapshot && !disk_.find_snapshot(page.end, sizes_)) {
      turn.snapshots.push_back({.point = page.end, .rings = page.snapshot->bytes()});
    }
  }
  return disk_.write_turn(turn);
}

}  // namespace locket::cache
