#include "cli/restore_trial.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "base/append_file.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/memory_region.h"
#include "base/thread_group.h"
#include "cache/disk_store.h"
#include "cache/kv_layout.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyBytes = 170;  // a token, as the release has it
constexpr std::size_t kRowBytes = 720;
constexpr std::size_t kPageTokens = static_cast<std::size_t>(cache::kTokensPerPage);
constexpr std::size_t kPageBytes = kPageTokens * (kKeyBytes + kRowBytes);
// Pages lie in a pool: each begins at a sector.
constexpr std::size_t kStride = (kPageBytes + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
constexpr std::size_t kSnapshotBytes = 1'351'680;
constexpr std::size_t kSnapshotEvery = 8'192;
constexpr std::size_t kSnapshotsBesides = 3;
constexpr std::size_t kPlainBlock = std::size_t{1} << 20;
constexpr std::size_t kPlainThreads = 4;
constexpr std::size_t kTurns = 20;

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
  for (std::size_t at = 0; at + sizeof state <= bytes.size(); at += sizeof state) {
    const std::uint64_t word = mix(state);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

cache::RootLabel root_of(const cache::DiskStore& store) {
  cache::RootLabel label = {.root = {}, .model = "synthetic", .identity = {}};
  label.root = cache::root_name(store.secret(), label.identity);
  return label;
}

std::vector<std::int32_t> make_tokens(std::size_t count) {
  constexpr std::uint64_t kVocabulary = 129'280;
  std::vector<std::int32_t> tokens;
  std::uint64_t state = 11;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(mix(state) % kVocabulary));
  }
  return tokens;
}

std::vector<std::size_t> make_snapshots(std::size_t tokens) {
  std::vector<std::size_t> positions;
  for (std::size_t at = kSnapshotEvery; at <= tokens; at += kSnapshotEvery) positions.push_back(at);
  for (std::size_t i = 1; i <= kSnapshotsBesides && tokens >= 8 * kPageTokens; ++i) {
    positions.push_back(tokens - i * kPageTokens);
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

// The bytes of one turn; every page has its own.
struct Turn {
  cache::TurnWrite write;
  std::vector<std::byte> bytes;
};

struct Writing {
  std::span<const std::int32_t> tokens;
  std::span<const std::size_t> snapshots;
  cache::PrefixPoint at;
  std::uint64_t state = 5;  // of the noise
};

Turn make_turn(Writing& writing, std::size_t begin, std::size_t end) {
  Turn turn;
  const std::size_t pages = (end - begin) / kPageTokens;
  const auto in_turn = [&](std::size_t position) { return position > begin && position <= end; };
  const auto snapshots =
      static_cast<std::size_t>(std::ranges::count_if(writing.snapshots, in_turn));
  turn.bytes.resize(pages * kPageBytes + snapshots * kSnapshotBytes);
  fill(turn.bytes, writing.state);
  std::span<const std::byte> left = turn.bytes;
  const auto take = [&](std::size_t count) {
    const auto part = left.first(count);
    left = left.subspan(count);
    return part;
  };
  for (std::size_t position = begin; position < end; position += kPageTokens) {
    const auto tokens = writing.tokens.subspan(position, kPageTokens);
    const cache::PrefixPoint next = cache::next_point(writing.at, tokens);
    turn.write.pages.push_back({.parent = writing.at,
                                .end = next,
                                .tokens = {tokens.begin(), tokens.end()},
                                .keys = take(kPageTokens * kKeyBytes),
                                .rows = take(kPageTokens * kRowBytes)});
    writing.at = next;
    if (std::ranges::binary_search(writing.snapshots, position + kPageTokens)) {
      turn.write.snapshots.push_back({.point = next, .rings = take(kSnapshotBytes)});
    }
  }
  turn.write.newest = writing.at.name;
  return turn;
}

// Files that lie in the page cache would make a restart look better than it is.
void forget_cached(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) drop_cached_file(entry.path());
  }
}

// Bytes for a restore or a plain read: fresh ones, or those that are held.
class Target {
 public:
  Target(RestoreTarget kind, std::size_t bytes, const DirectBuffer& held)
      : fresh_(kind == RestoreTarget::kFresh ? bytes : 1, MemoryRegion::Pages::kLarge),
        bytes_(kind == RestoreTarget::kFresh ? std::span(fresh_.data(), fresh_.size())
                                             : held.bytes()) {}
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  MemoryRegion fresh_;
  std::span<std::byte> bytes_;
};

}  // namespace

RestoreTrial::RestoreTrial(fs::path folder, std::size_t tokens)
    : folder_(std::move(folder)),
      tokens_(make_tokens(tokens)),
      snapshots_(make_snapshots(tokens)),
      held_(tokens / kPageTokens * kStride + kSnapshotBytes + 2 * kPlainBlock) {
  std::memset(held_.bytes().data(), 1, held_.bytes().size());
}

RestoreTrial::RestoreTrial(RestoreTrial&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      tokens_(std::move(other.tokens_)),
      snapshots_(std::move(other.snapshots_)),
      held_(std::move(other.held_)),
      payload_bytes_(other.payload_bytes_) {}

RestoreTrial::~RestoreTrial() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  fs::remove(plain_path(), ignored);
}

Result<RestoreTrial> RestoreTrial::make(const fs::path& scratch, std::size_t tokens) {
  std::array<std::byte, 8> unique = {};
  random_bytes(unique);
  RestoreTrial trial(scratch / ("locket-restore-trial-" + to_hex(unique)), tokens);
  LOCKET_TRY_STATUS(trial.write_prefix());
  LOCKET_TRY_STATUS(trial.write_plain_file());
  return trial;
}

std::size_t RestoreTrial::byte_count() const {
  return tokens_.size() * (kKeyBytes + kRowBytes) + kSnapshotBytes;
}

std::size_t RestoreTrial::snapshot_bytes() const { return kSnapshotBytes; }

std::uint64_t RestoreTrial::disk_bytes() const { return allocated_bytes_below(folder_); }

Status RestoreTrial::write_prefix() {
  LOCKET_TRY(const auto store, cache::DiskStore::open({.directory = folder_}));
  Writing writing = {
      .tokens = tokens_, .snapshots = snapshots_, .at = cache::root_point(root_of(*store).root)};
  const std::size_t pages = tokens_.size() / kPageTokens;
  for (std::size_t i = 0; i < kTurns; ++i) {
    Turn turn = make_turn(writing, pages * i / kTurns * kPageTokens,
                          pages * (i + 1) / kTurns * kPageTokens);
    turn.write.root = root_of(*store);
    LOCKET_TRY_STATUS(store->write_turn(turn.write));
  }
  payload_bytes_ = store->counts().payload_bytes_written;
  return {};
}

Status RestoreTrial::write_plain_file() const {
  LOCKET_TRY(AppendFile file, AppendFile::create(plain_path()));
  std::vector<std::byte> block(kPlainBlock);
  std::uint64_t state = 3;
  for (std::size_t at = 0; at < byte_count(); at += block.size()) {
    fill(block, state);
    LOCKET_TRY_STATUS(
        file.append(std::span(block).first(std::min(block.size(), byte_count() - at))));
  }
  return file.sync();
}

Result<RestoreSeconds> RestoreTrial::restore(RestoreTarget target, std::size_t threads) const {
  forget_cached(folder_);
  RestoreSeconds seconds;
  double begin = monotonic_seconds();
  LOCKET_TRY(const auto store,
             cache::DiskStore::open({.directory = folder_, .read_threads = threads}));
  seconds.open = monotonic_seconds() - begin;
  begin = monotonic_seconds();
  const cache::PrefixPoint root = cache::root_point(root_of(*store).root);
  const cache::DiskMatch match = store->find(root, tokens_, page_sizes());
  if (match.pages.size() != tokens_.size() / kPageTokens) {
    return fail(ErrorCode::kBadMemory, fmt::format("{} of {} pages were found", match.pages.size(),
                                                   tokens_.size() / kPageTokens));
  }
  const auto snapshot = store->find_snapshot(match.pages.back().end, page_sizes());
  seconds.find = monotonic_seconds() - begin;
  const Target memory(target, match.pages.size() * kStride, held_);
  const DirectBuffer rings(kSnapshotBytes);
  std::vector<cache::PayloadLoad> first;
  std::vector<cache::PayloadLoad> rows;
  for (std::size_t i = 0; i < match.pages.size(); ++i) {
    const auto page = memory.bytes().subspan(i * kStride, kPageBytes);
    rows.push_back({match.pages[i].rows, page.first(kPageTokens * kRowBytes)});
    first.push_back({match.pages[i].keys, page.subspan(kPageTokens * kRowBytes)});
  }
  if (snapshot) first.push_back({*snapshot, rings.bytes().first(kSnapshotBytes)});
  const bool has_keys = store->load(first).empty();
  seconds.first = monotonic_seconds() - begin;
  const bool has_rows = store->load(rows).empty();
  seconds.all = monotonic_seconds() - begin;
  if (has_keys && has_rows) return seconds;
  return fail(ErrorCode::kBadMemory, "stored pages cannot be read back");
}

Result<double> RestoreTrial::read_plainly(RestoreTarget target) const {
  LOCKET_TRY(const DirectFile file, DirectFile::open(plain_path()));
  const std::size_t bytes = byte_count();
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> has_failed = false;
  const double begin = monotonic_seconds();
  const Target memory(target, bytes + kPlainBlock, held_);
  {
    const ThreadGroup readers(kPlainThreads, [&] {
      const DirectBuffer own(kPlainBlock);
      for (std::size_t at = kPlainBlock * next++; at < bytes; at = kPlainBlock * next++) {
        const std::span<std::byte> block = target == RestoreTarget::kReused
                                               ? own.bytes()
                                               : memory.bytes().subspan(at, kPlainBlock);
        if (!file.read(at, block)) has_failed = true;
      }
    });
  }
  const double seconds = monotonic_seconds() - begin;
  if (has_failed) return fail(ErrorCode::kIo, "cannot read back " + plain_path().string());
  return seconds;
}

}  // namespace locket::cli
