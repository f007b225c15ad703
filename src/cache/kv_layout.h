// What a model keeps of its context, in bytes: row streams that grow with the text (stored in
// pages), and rings that hold the newest positions of a layer. The model states it; the cache
// stores bytes and never learns what attention is.
//
// A page holds kTokensPerPage tokens: the streams lie in it one after the other, each with its rows
// in order; those of rows come before those of keys, so that a release's rows begin and end at
// sectors and can be read from disk in place. REQUIRES of a layout:
// tokens_per_row divides kTokensPerPage; kept rings come before rebuilt ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace locket::cache {

inline constexpr std::int64_t kTokensPerPage = 128;

// What is read of a stored page at once: a search goes through all keys, and then needs few rows.
enum class PagePart { kRows, kKeys, kCount };

// One row per `tokens_per_row` tokens.
struct RowStream {
  std::string name;  // "rows" or "index keys", for tables
  std::int64_t layer = 0;
  std::int64_t tokens_per_row = 1;
  std::size_t row_bytes = 0;
  PagePart part = PagePart::kRows;

  std::int64_t rows_per_page() const { return kTokensPerPage / tokens_per_row; }
  std::size_t page_bytes() const { return static_cast<std::size_t>(rows_per_page()) * row_bytes; }
};

// The newest `slots` positions of one layer; position p lies in slot p mod slots.
struct RingStream {
  // Kept rings are a function of the tokens before them and can be stored; rebuilt ones are made
  // anew at the end of every prompt.
  enum class Kind { kKept, kRebuilt };

  std::int64_t layer = 0;
  std::int64_t slots = 0;
  std::size_t row_bytes = 0;
  Kind kind = Kind::kKept;

  std::size_t bytes() const { return static_cast<std::size_t>(slots) * row_bytes; }
};

struct KvLayout {
  std::vector<RowStream> streams;
  std::vector<RingStream> rings;

  std::size_t page_bytes() const;
  std::size_t ring_bytes() const;
  // Of the kept rings, which come first.
  std::size_t snapshot_bytes() const;
  // page_bytes() / kTokensPerPage.
  double bytes_per_token() const;
  // Where a part of a page starts, and its bytes.
  std::size_t part_offset(PagePart part) const;
  std::size_t part_bytes(PagePart part) const;
  // Where stream `stream` starts in a page, ring `ring` in the rings of a sequence.
  std::size_t stream_offset(std::size_t stream) const;
  std::size_t ring_offset(std::size_t ring) const;
  // The largest tokens_per_row: state between rows exists only off its multiples.
  std::int64_t largest_tokens_per_row() const;
};

// Pages that `token_count` tokens need.
std::int64_t page_count(std::int64_t token_count);

}  // namespace locket::cache
