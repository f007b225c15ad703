// The parts of a page as values of their own, as they are stored: for every stream of the part its
// first rows, as many as `tokens` complete, one stream after the other. Of a full page that is the
// part as it lies in memory. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cache/disk_store.h"
#include "cache/kv_layout.h"

namespace locket::cache {

std::size_t packed_bytes(const KvLayout& layout, PagePart part, std::int64_t tokens);

// Lengths that the records of such pages must have. Valid without the layout.
PageSizes page_sizes_of(const KvLayout& layout);

// `page` [layout.page_bytes()]; `packed` [packed_bytes(layout, part, tokens)].
void pack_part(const KvLayout& layout, PagePart part, std::int64_t tokens, const std::byte* page,
               std::span<std::byte> packed);
void unpack_part(const KvLayout& layout, PagePart part, std::int64_t tokens,
                 std::span<const std::byte> packed, std::byte* page);

// All rows that `tokens` complete, from one page to another.
void copy_rows(const KvLayout& layout, std::int64_t tokens, const std::byte* from, std::byte* to);

}  // namespace locket::cache
