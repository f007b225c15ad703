#include "engine/live_cache.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/system_memory.h"
#include "engine/counter_random.h"
#include "engine/session.h"

namespace locket::engine {
namespace {

using cache::kTokensPerPage;

// The growth of the resident memory since construction; what was freed on the way does not count.
class ResidentGrowth {
 public:
  ResidentGrowth() : start_(resident_in_use()) {}

  std::uint64_t bytes() const {
    const std::uint64_t now = resident_in_use();
    return now > start_ ? now - start_ : 0;
  }

 private:
  static std::uint64_t resident_in_use() {
    return_freed_memory();
    return resident_memory_bytes();
  }

  std::uint64_t start_;
};

std::uint64_t sequence_bytes(const cache::KvLayout& layout, std::int64_t token_count) {
  return static_cast<std::uint64_t>(cache::page_count(token_count)) * layout.page_bytes() +
         layout.ring_bytes();
}

// Half of the free memory at most: the caller has things of its own to do.
Status check_free_memory(const cache::KvLayout& layout, std::int64_t token_count) {
  const std::uint64_t needed = sequence_bytes(layout, token_count);
  const std::uint64_t available = available_memory_bytes();
  if (available == 0 || needed <= available / 2) return {};
  return fail(
      ErrorCode::kOverBudget,
      fmt::format("the memory of {} tokens is {} bytes, more than half of the {} bytes that "
                  "are free; measure fewer tokens",
                  token_count, needed, available));
}

class SyntheticWriter {
 public:
  SyntheticWriter(const model::MemoryDescription& memory, const cache::KvView& view)
      : memory_(memory), view_(view) {}

  // Rows of stream `stream` that the tokens complete.
  void write_rows(std::size_t stream, const SyntheticTokens& tokens) {
    const cache::RowStream& info = memory_.layout.streams[stream];
    const std::int64_t end = (tokens.first + tokens.count) / info.tokens_per_row;
    for (std::int64_t row = tokens.first / info.tokens_per_row; row < end; ++row) {
      write(memory_.stream_rows[stream], stream, row, view_.row(stream, row));
    }
  }

  // Slots of ring `ring` for the newest tokens.
  void write_ring(std::size_t ring, const SyntheticTokens& tokens) {
    const std::int64_t end = tokens.first + tokens.count;
    const std::int64_t slots = memory_.layout.rings[ring].slots;
    const std::size_t key = memory_.layout.streams.size() + ring;
    for (std::int64_t p = std::max(tokens.first, end - slots); p < end; ++p) {
      write(memory_.ring_rows[ring], key, p, view_.ring_slot(ring, p));
    }
  }

 private:
  void write(const model::RowEncoding& encoding, std::size_t place, std::int64_t row,
             std::span<std::byte> bytes) {
    values_.resize(encoding.width);
    const auto number = static_cast<std::uint32_t>(row);
    for (std::size_t i = 0; i < values_.size(); i += 4) {
      const auto words = philox_block({static_cast<std::uint32_t>(i), number, 0, 0},
                                      {static_cast<std::uint32_t>(place), 0});
      for (std::size_t j = 0; j < std::min<std::size_t>(4, values_.size() - i); ++j) {
        values_[i + j] = static_cast<float>(static_cast<std::int32_t>(words[j])) * 0x1.0p-30f;
      }
    }
    kernels::encode_row(encoding.format, values_, bytes);
  }

  const model::MemoryDescription& memory_;
  const cache::KvView& view_;
  std::vector<float> values_;
};

}  // namespace

double LiveCacheSize::page_bytes_per_token() const {
  return static_cast<double>(page_bytes) / static_cast<double>(tokens);
}

double LiveCacheSize::resident_bytes_per_token() const {
  return (static_cast<double>(resident_bytes) - static_cast<double>(ring_bytes)) /
         static_cast<double>(tokens);
}

Status write_synthetic_tokens(const model::MemoryDescription& memory, const SyntheticTokens& tokens,
                              cache::SequenceMemory& sequence) {
  LOCKET_CHECK(tokens.first % kTokensPerPage == 0);
  const std::int64_t end = tokens.first + tokens.count;
  for (std::int64_t first = tokens.first; first < end; first += kTokensPerPage) {
    const SyntheticTokens part = {.first = first, .count = std::min(kTokensPerPage, end - first)};
    LOCKET_TRY_STATUS(sequence.reserve_tokens(first + part.count));
    const cache::KvView view = sequence.view();
    SyntheticWriter writer(memory, view);
    for (std::size_t i = 0; i < memory.layout.streams.size(); ++i) writer.write_rows(i, part);
  }
  const cache::KvView view = sequence.view();
  SyntheticWriter writer(memory, view);
  for (std::size_t i = 0; i < memory.layout.rings.size(); ++i) writer.write_ring(i, tokens);
  return {};
}

Result<LiveCacheSize> fill_live_cache(const model::MemoryDescription& memory,
                                      std::int64_t token_count) {
  const cache::KvLayout& layout = memory.layout;
  LOCKET_TRY_STATUS(check_free_memory(layout, token_count));
  // A page before the measured ones: afterwards code and allocator have what they need.
  cache::PagePool first_pool(layout.page_bytes(), layout.page_bytes());
  cache::SequenceMemory first(layout, first_pool);
  LOCKET_TRY_STATUS(write_synthetic_tokens(memory, {.first = 0, .count = kTokensPerPage}, first));

  const ResidentGrowth growth;
  cache::PagePool pool(layout.page_bytes(), sequence_bytes(layout, token_count));
  cache::SequenceMemory sequence(layout, pool);
  LOCKET_TRY_STATUS(write_synthetic_tokens(memory, {.first = 0, .count = token_count}, sequence));
  return LiveCacheSize{.tokens = token_count,
                       .page_bytes = pool.used_bytes(),
                       .ring_bytes = layout.ring_bytes(),
                       .resident_bytes = growth.bytes()};
}

Result<LiveCacheSize> measure_live_session(const model::LanguageModel& model, WorkerPool& workers,
                                           std::span<const TokenId> prompt) {
  const cache::KvLayout& layout = model.layout();
  const auto token_count = static_cast<std::int64_t>(prompt.size());
  LOCKET_TRY_STATUS(check_free_memory(layout, 2 * token_count));
  cache::PagePool first_pool(layout.page_bytes(), sequence_bytes(layout, token_count));
  Session first(model, first_pool, workers, {});
  LOCKET_TRY_STATUS(first.prefill(prompt));

  const ResidentGrowth growth;
  cache::PagePool pool(layout.page_bytes(), sequence_bytes(layout, token_count));
  Session session(model, pool, workers, {});
  LOCKET_TRY_STATUS(session.prefill(prompt));
  return LiveCacheSize{.tokens = token_count,
                       .page_bytes = pool.used_bytes(),
                       .ring_bytes = layout.ring_bytes(),
                       .resident_bytes = growth.bytes()};
}

}  // namespace locket::engine
