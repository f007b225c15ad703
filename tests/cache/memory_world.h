// A memory without a model: the bytes of a row are a function of the tokens before it, so that
// every byte that comes out of the memory can be checked.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/prefix_memory.h"

namespace locket::cache {

using Tokens = std::vector<std::int32_t>;

// Rows for two tokens and for one, keys of both, one ring.
inline KvLayout world_layout(std::size_t row_bytes = 24) {
  return {.streams = {{.name = "rows", .layer = 0, .tokens_per_row = 2, .row_bytes = row_bytes},
                      {.name = "keys",
                       .layer = 0,
                       .tokens_per_row = 2,
                       .row_bytes = 8,
                       .part = PagePart::kKeys},
                      {.name = "rows", .layer = 1, .tokens_per_row = 1, .row_bytes = row_bytes},
                      {.name = "keys",
                       .layer = 1,
                       .tokens_per_row = 1,
                       .row_bytes = 8,
                       .part = PagePart::kKeys}},
          .rings = {{.layer = 0, .slots = 16, .row_bytes = 32}}};
}

inline Tokens random_tokens(std::uint32_t seed, std::size_t count) {
  Tokens tokens(count);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::int32_t& token : tokens) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<std::int32_t>((state >> 33) % 50'000);
  }
  return tokens;
}

inline Tokens joined(std::span<const std::int32_t> first, std::span<const std::int32_t> more) {
  Tokens tokens(first.begin(), first.end());
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// One open sequence: what a session does, with made-up bytes.
class WorldSequence {
 public:
  WorldSequence(PrefixMemory& memory, PagePool& pool, std::string tenant = {})
      : memory_(memory), tenant_(std::move(tenant)), sequence_(memory.layout(), pool) {}

  [[nodiscard]] Status open(const Tokens& tokens) {
    LOCKET_TRY(PrefixLease lease, memory_.open(tenant_, tokens, sequence_));
    lease_.emplace(std::move(lease));
    tokens_ = tokens;
    return {};
  }

  std::int64_t hit() const { return lease_->found().tokens; }
  std::int64_t disk_hit() const { return lease_->found().disk_tokens; }
  PrefixLease& lease() { return *lease_; }
  SequenceMemory& sequence() { return sequence_; }

  // Every row below the hit must be what its tokens say.
  [[nodiscard]] ::testing::AssertionResult check() {
    const KvView view = sequence_.view();
    if (const Status there = view.wait_for_rows(); !there) {
      return ::testing::AssertionFailure() << there.error().message;
    }
    return compare(view, hit());
  }

  // Computes what is not there, publishes it, keeps rings on the way, and ends the turn.
  [[nodiscard]] Status finish(std::int64_t system_tokens = 0) {
    LOCKET_TRY_STATUS(compute());
    const TurnLengths lengths = {.prompt_tokens = static_cast<std::int64_t>(tokens_.size()),
                                 .system_tokens = system_tokens,
                                 .total_tokens = static_cast<std::int64_t>(tokens_.size()),
                                 .window = 16};
    return lease_->end_turn(tokens_, lengths, sequence_);
  }

  [[nodiscard]] Status compute() {
    LOCKET_TRY_STATUS(sequence_.view().wait_for_rows());
    for_each_row(hit(), static_cast<std::int64_t>(tokens_.size()),
                 [](std::span<std::byte> row, std::span<const std::byte> expected) {
                   std::ranges::copy(expected, row.begin());
                   return true;
                 });
    LOCKET_TRY_STATUS(lease_->publish(tokens_, sequence_));
    const std::set<std::int64_t> wanted =
        stored_boundaries({.prompt_tokens = static_cast<std::int64_t>(tokens_.size()),
                           .total_tokens = static_cast<std::int64_t>(tokens_.size()),
                           .window = 16});
    for (const std::int64_t position : wanted) {
      fill_rings(position, sequence_.kept_rings());
      lease_->keep_snapshot(position, PrefixLease::Keep::kStored, sequence_);
    }
    return {};
  }

  // Restores the best snapshot and checks its bytes; its position, 0 if there is none.
  std::int64_t restore_best_rings() {
    const std::int64_t position = lease_->find_snapshot(1, hit());
    if (position == 0) return 0;
    const Status restored = lease_->restore_rings(position, sequence_);
    EXPECT_TRUE(restored) << restored.error().message;
    std::vector<std::byte> expected(sequence_.kept_rings().size());
    fill_rings(position, expected);
    EXPECT_TRUE(std::ranges::equal(expected, sequence_.kept_rings()));
    return position;
  }

 private:
  // Digests of the tokens before every position.
  void extend_digests(std::int64_t count) {
    if (digests_.empty()) digests_.push_back({});
    while (static_cast<std::int64_t>(digests_.size()) <= count) {
      const std::size_t at = digests_.size() - 1;
      const std::array<std::uint64_t, 3> input = {digests_[at].low, digests_[at].high,
                                                  static_cast<std::uint64_t>(tokens_[at])};
      digests_.push_back(xxh3_128(std::as_bytes(std::span(input))));
    }
  }

  void expected_bytes(std::size_t stream, std::int64_t end, std::span<std::byte> target) {
    extend_digests(end);
    const Checksum128& digest = digests_[static_cast<std::size_t>(end)];
    for (std::size_t i = 0; i < target.size(); ++i) {
      const std::uint64_t word = i / 8 % 2 == 0 ? digest.low : digest.high;
      target[i] = static_cast<std::byte>((word >> (8 * (i % 8))) + stream * 31 + i);
    }
  }

  template <class Function>
  bool for_each_row(std::int64_t first, std::int64_t end, const Function& function) {
    const KvLayout& layout = memory_.layout();
    const KvView view = sequence_.view();
    std::vector<std::byte> expected;
    for (std::size_t stream = 0; stream < layout.streams.size(); ++stream) {
      const std::int64_t ratio = layout.streams[stream].tokens_per_row;
      for (std::int64_t row = first / ratio; row < end / ratio; ++row) {
        expected.resize(layout.streams[stream].row_bytes);
        expected_bytes(stream, (row + 1) * ratio, expected);
        if (!function(view.row(stream, row), std::span<const std::byte>(expected))) return false;
      }
    }
    return true;
  }

  ::testing::AssertionResult compare(const KvView&, std::int64_t end) {
    const bool is_same =
        for_each_row(0, end, [](std::span<std::byte> row, std::span<const std::byte> expected) {
          return std::ranges::equal(row, expected);
        });
    if (is_same) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "a row is not that of its tokens";
  }

  void fill_rings(std::int64_t position, std::span<std::byte> rings) {
    expected_bytes(77, position, rings);
  }

  PrefixMemory& memory_;
  std::string tenant_;
  SequenceMemory sequence_;
  std::optional<PrefixLease> lease_;
  Tokens tokens_;
  std::vector<Checksum128> digests_;
};

// Pool, disk and memory, made and closed together.
class MemoryWorld {
 public:
  struct Options {
    std::uint64_t budget_bytes = std::uint64_t{1} << 26;
    std::filesystem::path directory = {};  // empty: memory only
    std::uint64_t quota_bytes = 0;
    std::int32_t name_bits = 256;
    std::size_t row_bytes = 24;
    MemoryIdentity identity = {.model = {}, .numerics_mode = "toy", .tenant = {}};
    std::string public_tenant = {};
  };

  explicit MemoryWorld(const Options& options) : options_(options) { open(); }

  void open() {
    const KvLayout layout = world_layout(options_.row_bytes);
    pool_ = std::make_unique<PagePool>(layout.page_bytes(), options_.budget_bytes);
    if (!options_.directory.empty()) {
      auto disk =
          DiskStore::open({.directory = options_.directory, .quota_bytes = options_.quota_bytes});
      ASSERT_TRUE(disk) << disk.error().message;
      disk_ = std::move(*disk);
    }
    memory_ =
        std::make_unique<PrefixMemory>(layout, *pool_,
                                       PrefixMemoryOptions{.identity = options_.identity,
                                                           .model_label = "toy",
                                                           .restart_tokens = 300,
                                                           .disk = disk_.get(),
                                                           .public_tenant = options_.public_tenant,
                                                           .name_bits = options_.name_bits});
  }
  void close() {
    memory_.reset();
    disk_.reset();
    EXPECT_EQ(pool_->used_bytes(), 0U) << "something was not given back";
  }
  void restart() {
    close();
    open();
  }

  // Reads `tokens` as a request would, checks all that comes from the memory, and gives the hit.
  // Stored bytes that turn out to be gone are a miss: the request begins anew.
  std::int64_t request(const Tokens& tokens, const std::string& tenant = {}) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      WorldSequence sequence(*memory_, *pool_, tenant);
      const Status opened = sequence.open(tokens);
      EXPECT_TRUE(opened) << opened.error().message;
      if (!opened) return -1;
      const Status there = sequence.sequence().view().wait_for_rows();
      if (!there && there.error().code == ErrorCode::kBadMemory) continue;
      EXPECT_TRUE(sequence.check());
      const std::int64_t hit = sequence.hit();
      const Status finished = sequence.finish();
      EXPECT_TRUE(finished) << finished.error().message;
      return hit;
    }
    ADD_FAILURE() << "the same pages are gone again and again";
    return -1;
  }

  PrefixMemory& memory() { return *memory_; }
  PagePool& pool() { return *pool_; }
  DiskStore& disk() { return *disk_; }
  const Options& options() const { return options_; }

 private:
  Options options_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<DiskStore> disk_;
  std::unique_ptr<PrefixMemory> memory_;
};

// A folder of the running test, removed with it.
class TestFolder {
 public:
  explicit TestFolder(const std::string& name)
      : path_(std::filesystem::path(::testing::TempDir()) / ("locket_" + name)) {
    std::filesystem::remove_all(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace locket::cache
