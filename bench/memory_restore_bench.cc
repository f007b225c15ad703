// What a restart costs: the real store writes a prefix in turns, then a process that knows nothing
// finds and loads it into fresh memory, beside a plain read of the same bytes (O_DIRECT, 1 MB, 4
// threads), in turn. Also the size of the folder and what was written to make it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/append_file.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/direct_file.h"
#include "base/folder.h"
#include "base/memory_region.h"
#include "cache/disk_store.h"
#include "cache/kv_layout.h"
#include "measure.h"

namespace locket {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kKeyBytes = 170;  // a token
constexpr std::size_t kRowBytes = 720;
constexpr std::size_t kPageTokens = static_cast<std::size_t>(cache::kTokensPerPage);
constexpr std::size_t kSnapshotBytes = 1'351'680;
constexpr std::size_t kSnapshotEvery = 8'192;
constexpr std::size_t kSnapshotsBesides = 3;
constexpr std::size_t kPlainBlock = std::size_t{1} << 20;
constexpr std::size_t kPlainThreads = 4;
constexpr std::size_t kTurns = 20;

struct Wishes {
  std::vector<std::size_t> tokens = {131'072, 1'048'576};
  std::size_t runs = 7;
  std::size_t threads = cache::DiskOptions{}.read_threads;
  std::string directory = "/tmp";
  double benchmark_min_time = 0;
};

cache::PageSizes page_sizes() {
  return {.key_bytes = [](std::int64_t n) { return static_cast<std::size_t>(n) * kKeyBytes; },
          .row_bytes = [](std::int64_t n) { return static_cast<std::size_t>(n) * kRowBytes; },
          .snapshot_bytes = kSnapshotBytes};
}

std::uint64_t mix(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return state ^ (state >> 29);
}

void fill(std::span<std::byte> bytes, std::uint64_t& state) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    const std::uint64_t word = mix(state);
    std::memcpy(bytes.data() + at, &word, 8);
  }
}

cache::RootLabel root_of(const cache::DiskStore& store) {
  cache::RootLabel label = {.root = {}, .model = "synthetic", .identity = {}};
  label.root = cache::root_name(store.secret(), label.identity);
  return label;
}

struct Prefix {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> snapshots;  // positions
};

Prefix make_prefix(std::size_t count) {
  Prefix prefix;
  std::uint64_t state = 11;
  for (std::size_t i = 0; i < count; ++i) {
    prefix.tokens.push_back(static_cast<std::int32_t>(mix(state) % 129'280));
  }
  for (std::size_t at = kSnapshotEvery; at <= count; at += kSnapshotEvery) {
    prefix.snapshots.push_back(at);
  }
  for (std::size_t i = 1; i <= kSnapshotsBesides && count >= 8 * kPageTokens; ++i) {
    prefix.snapshots.push_back(count - i * kPageTokens);
  }
  std::sort(prefix.snapshots.begin(), prefix.snapshots.end());
  return prefix;
}

// The bytes of one turn; every page has its own.
struct Turn {
  cache::TurnWrite write;
  std::vector<std::byte> bytes;
};

Turn make_turn(const Prefix& prefix, std::size_t begin, std::size_t end, cache::PrefixPoint& at,
               std::uint64_t& state) {
  Turn turn;
  const std::size_t pages = (end - begin) / kPageTokens;
  const auto in_turn = [&](std::size_t position) { return position > begin && position <= end; };
  const auto snapshots = static_cast<std::size_t>(
      std::count_if(prefix.snapshots.begin(), prefix.snapshots.end(), in_turn));
  constexpr std::size_t kPageBytes = kPageTokens * (kKeyBytes + kRowBytes);
  turn.bytes.resize(pages * kPageBytes + snapshots * kSnapshotBytes);
  fill(turn.bytes, state);
  std::span<const std::byte> left = turn.bytes;
  const auto take = [&](std::size_t count) {
    const auto part = left.first(count);
    left = left.subspan(count);
    return part;
  };
  for (std::size_t position = begin; position < end; position += kPageTokens) {
    const auto tokens = std::span(prefix.tokens).subspan(position, kPageTokens);
    const cache::PrefixPoint next = cache::next_point(at, tokens);
    turn.write.pages.push_back({.parent = at,
                                .end = next,
                                .tokens = {tokens.begin(), tokens.end()},
                                .keys = take(kPageTokens * kKeyBytes),
                                .rows = take(kPageTokens * kRowBytes)});
    at = next;
    if (std::binary_search(prefix.snapshots.begin(), prefix.snapshots.end(),
                           position + kPageTokens)) {
      turn.write.snapshots.push_back({.point = at, .rings = take(kSnapshotBytes)});
    }
  }
  turn.write.newest = at.name;
  return turn;
}

// Bytes written to the disk for each byte stored.
double write_prefix(const fs::path& folder, const Prefix& prefix) {
  auto opened = cache::DiskStore::open({.directory = folder});
  LOCKET_CHECK(opened.has_value());
  cache::DiskStore& store = **opened;
  cache::PrefixPoint at = cache::root_point(root_of(store).root);
  std::uint64_t state = 5;
  const std::size_t pages = prefix.tokens.size() / kPageTokens;
  const std::uint64_t before = written_bytes();
  for (std::size_t i = 0; i < kTurns; ++i) {
    Turn turn = make_turn(prefix, pages * i / kTurns * kPageTokens,
                          pages * (i + 1) / kTurns * kPageTokens, at, state);
    turn.write.root = root_of(store);
    LOCKET_CHECK(store.write_turn(turn.write).has_value());
  }
  LOCKET_CHECK(store.counts().pages_written == pages);
  const std::uint64_t written = written_bytes() - before;
  return static_cast<double>(written) / static_cast<double>(store.counts().payload_bytes_written);
}

// Files that lie in the page cache would make a restart look better than it is.
void forget_cached(const fs::path& folder) {
  ::sync();
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) drop_cached_file(entry.path());
  }
}

struct Restore {
  double open = 0;
  double find = 0;   // from here on without open
  double first = 0;  // keys and the snapshot are there
  double all = 0;
};

constexpr std::size_t kPageBytes = kPageTokens * (kKeyBytes + kRowBytes);
// Pages lie in the pool as here: each begins at a sector.
constexpr std::size_t kStride = (kPageBytes + kSectorBytes - 1) / kSectorBytes * kSectorBytes;

// `held`: memory that the process has already; empty: it comes new from the system.
Restore restore(const fs::path& folder, const Prefix& prefix, std::size_t threads,
                const DirectBuffer& held) {
  Restore seconds;
  double begin = monotonic_seconds();
  auto opened = cache::DiskStore::open({.directory = folder, .read_threads = threads});
  LOCKET_CHECK(opened.has_value());
  const cache::DiskStore& store = **opened;
  seconds.open = monotonic_seconds() - begin;
  begin = monotonic_seconds();
  const cache::PrefixPoint root = cache::root_point(root_of(store).root);
  const cache::DiskMatch match = store.find(root, prefix.tokens, page_sizes());
  LOCKET_CHECK(match.pages.size() == prefix.tokens.size() / kPageTokens);
  const auto snapshot = store.find_snapshot(match.pages.back().end, page_sizes());
  seconds.find = monotonic_seconds() - begin;
  // New memory as the page pool takes it.
  MemoryRegion fresh(
      std::max<std::size_t>(1, held.bytes().empty() ? match.pages.size() * kStride : 0),
      MemoryRegion::Pages::kLarge);
  const std::span<std::byte> pages =
      held.bytes().empty() ? std::span(fresh.data(), fresh.size()) : held.bytes();
  const DirectBuffer rings(kSnapshotBytes);
  std::vector<cache::PayloadLoad> first;
  std::vector<cache::PayloadLoad> rows;
  for (std::size_t i = 0; i < match.pages.size(); ++i) {
    const auto page = pages.subspan(i * kStride, kPageBytes);
    rows.push_back({match.pages[i].rows, page.first(kPageTokens * kRowBytes)});
    first.push_back({match.pages[i].keys, page.subspan(kPageTokens * kRowBytes)});
  }
  if (snapshot) first.push_back({*snapshot, rings.bytes().first(kSnapshotBytes)});
  LOCKET_CHECK(store.load(first).empty());
  seconds.first = monotonic_seconds() - begin;
  LOCKET_CHECK(store.load(rows).empty());
  seconds.all = monotonic_seconds() - begin;
  return seconds;
}

void make_plain_file(const fs::path& path, std::size_t bytes) {
  auto file = AppendFile::create(path);
  LOCKET_CHECK(file.has_value());
  std::vector<std::byte> block(kPlainBlock);
  std::uint64_t state = 3;
  for (std::size_t at = 0; at < bytes; at += block.size()) {
    fill(block, state);
    LOCKET_CHECK(file->append(std::span(block).first(std::min(block.size(), bytes - at))));
  }
  LOCKET_CHECK(file->sync().has_value());
}

enum class Target {
  kReused,  // one block for each thread, so small that it stays in the processor's caches
  kHeld,    // memory for all bytes that the process has already
  kFresh    // memory for all bytes, new from the system, as a restart needs it
};

// `held` has room for all bytes and a block more.
double read_plain(const fs::path& path, std::size_t bytes, Target target,
                  const DirectBuffer& held) {
  const auto file = DirectFile::open(path);
  LOCKET_CHECK(file.has_value());
  std::atomic<std::size_t> next = 0;
  const double begin = monotonic_seconds();
  const MemoryRegion all(target == Target::kFresh ? bytes + kPlainBlock : 1,
                         MemoryRegion::Pages::kLarge);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kPlainThreads; ++i) {
    threads.emplace_back([&] {
      const DirectBuffer buffer(kPlainBlock);
      for (std::size_t at = kPlainBlock * next++; at < bytes; at = kPlainBlock * next++) {
        std::span<std::byte> block = buffer.bytes();
        if (target == Target::kFresh) block = {all.data() + at, kPlainBlock};
        if (target == Target::kHeld) block = held.bytes().subspan(at, kPlainBlock);
        LOCKET_CHECK(file->read(at, block).has_value());
      }
    });
  }
  threads.clear();
  return monotonic_seconds() - begin;
}

void measure(const Wishes& wishes, std::size_t tokens) {
  const fs::path folder = fs::path(wishes.directory) / fmt::format("restore_bench_{}", ::getpid());
  const fs::path plain = folder.string() + ".plain";
  const Prefix prefix = make_prefix(tokens);
  const double written = write_prefix(folder, prefix);
  const std::size_t bytes = tokens * (kKeyBytes + kRowBytes) + kSnapshotBytes;
  make_plain_file(plain, bytes);
  std::vector<double> opens, finds, firsts, alls, plains, plain_held, fresh, held_alls, ratios,
      held_ratios, parts;
  const DirectBuffer held(tokens / kPageTokens * kStride + kSnapshotBytes + 2 * kPlainBlock);
  std::memset(held.bytes().data(), 1, held.bytes().size());
  for (std::size_t run = 0; run < wishes.runs; ++run) {
    forget_cached(folder);
    plains.push_back(read_plain(plain, bytes, Target::kReused, held));
    plain_held.push_back(read_plain(plain, bytes, Target::kHeld, held));
    fresh.push_back(read_plain(plain, bytes, Target::kFresh, held));
    const Restore seconds = restore(folder, prefix, wishes.threads, DirectBuffer());
    opens.push_back(seconds.open);
    finds.push_back(seconds.find);
    firsts.push_back(seconds.first);
    alls.push_back(seconds.all);
    ratios.push_back(seconds.all / fresh.back());
    forget_cached(folder);
    held_alls.push_back(restore(folder, prefix, wishes.threads, held).all);
    held_ratios.push_back(held_alls.back() / plain_held.back());
    parts.push_back(seconds.first / seconds.all);
  }
  const double snapshots = static_cast<double>(prefix.snapshots.size() * kSnapshotBytes);
  const auto size = static_cast<double>(allocated_bytes_below(folder));
  const auto count = static_cast<double>(tokens);
  fmt::print(
      "{{\"tokens\": {}, \"open_ms\": {:.1f}, \"find_ms\": {:.1f}, \"keys_first_ms\": {:.1f}, "
      "\"restore_ms\": {:.1f}, \"restore_held_ms\": {:.1f}, \"plain_fresh_ms\": {:.1f}, "
      "\"plain_held_ms\": {:.1f}, \"plain_ms\": {:.1f}, \"restore_per_plain_fresh\": {:.3f}, "
      "\"restore_held_per_plain_held\": {:.3f}, \"restore_per_plain\": {:.3f}, "
      "\"keys_first_per_restore\": {:.3f}, \"bytes_per_token\": {:.1f}, "
      "\"snapshot_bytes_per_token\": {:.1f}, \"written_per_stored\": {:.3f}}}\n",
      tokens, 1e3 * median(opens), 1e3 * median(finds), 1e3 * median(firsts), 1e3 * median(alls),
      1e3 * median(held_alls), 1e3 * median(fresh), 1e3 * median(plain_held), 1e3 * median(plains),
      median(ratios), median(held_ratios), median(alls) / median(plains), median(parts),
      (size - snapshots) / count, snapshots / count, written);
  fs::remove_all(folder);
  fs::remove(plain);
}

}  // namespace
}  // namespace locket

int main(int argc, char** argv) {
  locket::Wishes wishes;
  CLI::App app("Restores a stored prefix after a restart, beside a plain read of the same bytes.");
  app.add_option("--tokens", wishes.tokens, "lengths of the prefix, multiples of 128")
      ->delimiter(',');
  app.add_option("--runs", wishes.runs, "runs of each, in turn; the medians are printed");
  app.add_option("--threads", wishes.threads, "reading threads of the store");
  app.add_option("--directory", wishes.directory, "where the files are made");
  app.add_option("--benchmark_min_time", wishes.benchmark_min_time, "given: only a short trial");
  CLI11_PARSE(app, argc, argv);
  if (wishes.benchmark_min_time > 0) {
    wishes.tokens = {4'096};
    wishes.runs = 1;
  }
  for (const std::size_t tokens : wishes.tokens) locket::measure(wishes, tokens);
  return 0;
}
