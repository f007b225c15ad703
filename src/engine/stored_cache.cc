#include "engine/stored_cache.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/folder.h"
#include "base/hash.h"
#include "base/system_memory.h"
#include "cache/disk_store.h"
#include "cache/prefix_memory.h"
#include "engine/live_cache.h"

namespace locket::engine {
namespace {

namespace fs = std::filesystem;

// For the nodes of the tree, and for pages on their way.
constexpr std::uint64_t kSpareBytes = std::uint64_t{64} << 20;

class ScratchFolder {
 public:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

fs::path unique_name(const fs::path& scratch) {
  std::array<std::byte, 8> unique = {};
  random_bytes(unique);
  return scratch / ("locket-stored-cache-" + to_hex(unique));
}

std::vector<std::int32_t> counted_tokens(std::int64_t count, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i) % std::max<std::int64_t>(1, vocabulary);
    tokens[i] = static_cast<std::int32_t>(number);
  }
  return tokens;
}

Result<std::uint64_t> memory_budget(const cache::KvLayout& layout, std::int64_t token_count,
                                    std::size_t snapshots) {
  const std::uint64_t needed =
      static_cast<std::uint64_t>(cache::page_count(token_count)) * layout.page_bytes() +
      snapshots * layout.snapshot_bytes() + kSpareBytes;
  const std::uint64_t available = available_memory_bytes();
  if (available == 0 || needed <= available / 2) return needed;
  return fail(ErrorCode::kOverBudget,
              fmt::format("{} tokens on their way to the disk take {} bytes, more than half of the "
                          "{} bytes that are free; measure fewer tokens",
                          token_count, needed, available));
}

// As a session that reads a prompt: pages become known as they fill, rings are kept where they are
// stored at the end of the turn.
Status run_turn(const model::ModelOutline& outline, std::span<const std::int32_t> tokens,
                cache::PrefixMemory& memory, cache::PagePool& pool) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const cache::TurnLengths lengths = {
      .prompt_tokens = count, .total_tokens = count, .window = outline.shape.window};
  const std::set<std::int64_t> boundaries = cache::stored_boundaries(lengths);
  cache::SequenceMemory sequence(outline.memory.layout, pool);
  LOCKET_TRY(cache::PrefixLease lease, memory.open({}, tokens, sequence));
  for (std::int64_t first = 0; first < count;) {
    const std::int64_t end = cache::next_stop(first, count, boundaries);
    LOCKET_TRY_STATUS(
        write_synthetic_tokens(outline.memory, {.first = first, .count = end - first}, sequence));
    LOCKET_TRY_STATUS(lease.publish(tokens.first(static_cast<std::size_t>(end)), sequence));
    if (outline.memory.layout.snapshot_bytes() > 0 && boundaries.contains(end)) {
      lease.keep_snapshot(end, cache::PrefixLease::Keep::kStored, sequence);
    }
    first = end;
  }
  LOCKET_TRY_STATUS(lease.end_turn(tokens, lengths, sequence));
  memory.flush();
  return {};
}

}  // namespace

double StoredCacheSize::row_bytes_per_token() const {
  return (static_cast<double>(folder_bytes) - static_cast<double>(snapshot_bytes)) /
         static_cast<double>(tokens);
}

double StoredCacheSize::bytes_per_token() const {
  return static_cast<double>(folder_bytes) / static_cast<double>(tokens);
}

Result<StoredCacheSize> fill_stored_cache(const model::ModelOutline& outline,
                                          std::int64_t token_count,
                                          const std::filesystem::path& scratch) {
  const cache::KvLayout& layout = outline.memory.layout;
  const auto boundaries = cache::stored_boundaries(
      {.prompt_tokens = token_count, .total_tokens = token_count, .window = outline.shape.window});
  LOCKET_TRY(const std::uint64_t budget, memory_budget(layout, token_count, boundaries.size()));
  const ScratchFolder folder(unique_name(scratch));
  StoredCacheSize size = {.tokens = token_count};
  {
    LOCKET_TRY(const auto store, cache::DiskStore::open({.directory = folder.path()}));
    cache::PagePool pool(layout.page_bytes(), budget);
    cache::PrefixMemory memory(layout, pool,
                               {.identity = {},
                                .model_label = "synthetic",
                                .restart_tokens = outline.shape.restart_tokens(),
                                .disk = store.get()});
    const auto tokens = counted_tokens(token_count, outline.shape.vocabulary_size);
    LOCKET_TRY_STATUS(run_turn(outline, tokens, memory, pool));
    const cache::DiskCounts counts = store->counts();
    if (counts.pages_not_written > 0 || memory.counts().turns_not_written > 0) {
      return fail(ErrorCode::kIo, fmt::format("{} pages could not be written to {}",
                                              counts.pages_not_written, scratch.string()));
    }
    size.snapshots = counts.snapshots_written;
    size.snapshot_bytes = counts.snapshots_written * layout.snapshot_bytes();
  }
  size.folder_bytes = allocated_bytes_below(folder.path());
  return size;
}

}  // namespace locket::engine
