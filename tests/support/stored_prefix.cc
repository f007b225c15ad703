#include "tests/support/stored_prefix.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"
#include "cache/kv_layout.h"

namespace locket::test_support {
namespace {

using cache::DiskMatch;
using cache::DiskStore;
using cache::kTokensPerPage;
using cache::PrefixPoint;
using cache::RootLabel;
using cache::StoredPage;

std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

// Loads one value and compares it.
bool check_value(DiskStore& store, const cache::StoredValue& value,
                 const std::vector<std::byte>& expected, Recalled& recalled) {
  std::vector<std::byte> target(value.bytes);
  const cache::PayloadLoad load = {.value = value, .target = target};
  if (!store.load(std::span(&load, 1)).empty()) {
    ++recalled.damaged;
    return false;
  }
  if (target != expected) ++recalled.wrong;
  return target == expected;
}

bool check_page(DiskStore& store, const StoredPage& page, const PayloadSizes& sizes,
                Recalled& recalled) {
  const auto tokens = static_cast<std::int64_t>(page.tokens.size());
  const cache::PageSizes bytes = sizes.page_sizes();
  const cache::PageName& name = page.end.name;
  const bool is_right =
      check_value(store, page.keys, payload_of(name, 'k', bytes.key_bytes(tokens)), recalled) &&
      check_value(store, page.rows, payload_of(name, 'r', bytes.row_bytes(tokens)), recalled);
  if (!is_right) store.drop_page(page);
  return is_right;
}

void check_snapshot(DiskStore& store, const PrefixPoint& point, const PayloadSizes& sizes,
                    Recalled& recalled) {
  const auto value = store.find_snapshot(point, sizes.page_sizes());
  if (!value) return;
  const auto expected = payload_of(point.name, 's', sizes.snapshot_bytes);
  if (check_value(store, *value, expected, recalled)) {
    ++recalled.snapshots;
  } else {
    store.drop_snapshot(point);
  }
}

}  // namespace

StoreFolder::StoreFolder(const std::string& name)
    : path_(std::filesystem::path(::testing::TempDir()) /
            ("locket_" + name + "_" + std::to_string(::getpid()))) {
  std::filesystem::remove_all(path_);
}

StoreFolder::~StoreFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

cache::PageSizes PayloadSizes::page_sizes() const {
  const auto per_token = [](std::int64_t bytes) {
    return [bytes](std::int64_t tokens) { return static_cast<std::size_t>(tokens * bytes); };
  };
  return {.key_bytes = per_token(key_bytes_per_token),
          .row_bytes = per_token(row_bytes_per_token),
          .snapshot_bytes = snapshot_bytes};
}

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed) {
  std::vector<std::int32_t> tokens(count);
  std::uint64_t state = seed * 7919 + 1;
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(next_random(state) % 129'280);
  }
  return tokens;
}

RootLabel root_of(const DiskStore& store, const std::string& tenant) {
  RootLabel label = {.root = {}, .model = "test model", .identity = {}};
  label.identity.numerics_mode = "reference";
  label.identity.tenant = tenant;
  label.root = cache::root_name(store.secret(), label.identity);
  return label;
}

std::vector<std::byte> payload_of(const cache::PageName& name, char kind, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = 0;
  std::memcpy(&state, name.data(), sizeof(state));
  state ^= static_cast<std::uint64_t>(kind) << 56;
  for (std::size_t at = 0; at < size; at += sizeof(state)) {
    const std::uint64_t word = next_random(state);
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), size - at));
  }
  return bytes;
}

std::vector<PrefixPoint> points_of(const RootLabel& root, const std::vector<std::int32_t>& tokens) {
  std::vector<PrefixPoint> points = {cache::root_point(root.root)};
  constexpr auto kPage = static_cast<std::size_t>(kTokensPerPage);
  for (std::size_t at = 0; at < tokens.size(); at += kPage) {
    const std::size_t count = std::min(kPage, tokens.size() - at);
    points.push_back(cache::next_point(points.back(), std::span(tokens).subspan(at, count)));
  }
  return points;
}

PrefixTurn make_turn(const RootLabel& root, const std::vector<std::int32_t>& tokens,
                     const PrefixWishes& wishes) {
  PrefixTurn turn;
  turn.write.root = root;
  turn.write.restart_tokens = 2'540;
  const cache::PageSizes sizes = wishes.sizes.page_sizes();
  const std::vector<PrefixPoint> points = points_of(root, tokens);
  turn.bytes.reserve(2 * points.size() + wishes.snapshots.size());
  for (std::size_t i = wishes.from_page; i + 1 < points.size(); ++i) {
    const auto count = points[i + 1].position - points[i].position;
    const auto* begin = tokens.data() + points[i].position;
    const cache::PageName& name = points[i + 1].name;
    const auto& keys = turn.bytes.emplace_back(payload_of(name, 'k', sizes.key_bytes(count)));
    const auto& rows = turn.bytes.emplace_back(payload_of(name, 'r', sizes.row_bytes(count)));
    turn.write.pages.push_back({.parent = points[i],
                                .end = points[i + 1],
                                .tokens = {begin, begin + count},
                                .keys = keys,
                                .rows = rows});
  }
  for (const std::int64_t position : wishes.snapshots) {
    LOCKET_CHECK(position % kTokensPerPage == 0);
    const PrefixPoint& point = points.at(static_cast<std::size_t>(position / kTokensPerPage));
    const auto& rings = turn.bytes.emplace_back(payload_of(point.name, 's', sizes.snapshot_bytes));
    turn.write.snapshots.push_back({.point = point, .rings = rings});
  }
  turn.write.newest = points.back().name;
  return turn;
}

Recalled recall(DiskStore& store, const RootLabel& root, const std::vector<std::int32_t>& tokens,
                const PayloadSizes& sizes) {
  Recalled recalled;
  const DiskMatch match = store.find(cache::root_point(root.root), tokens, sizes.page_sizes());
  bool has_gap = false;
  for (const StoredPage& page : match.pages) {
    const auto begin = static_cast<std::size_t>(page.parent.position);
    const bool is_wanted = std::equal(page.tokens.begin(), page.tokens.end(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(begin));
    if (!is_wanted) ++recalled.wrong;
    if (!check_page(store, page, sizes, recalled)) has_gap = true;
    if (!has_gap) recalled.tokens = page.end.position;
    check_snapshot(store, page.end, sizes, recalled);
  }
  if (match.parting && !has_gap && check_page(store, *match.parting, sizes, recalled)) {
    recalled.tokens += match.parting_tokens;
  }
  return recalled;
}

std::unique_ptr<DiskStore> open_store(const std::filesystem::path& folder,
                                      std::uint64_t quota_bytes,
                                      std::shared_ptr<cache::StorageFaults> faults) {
  auto store = DiskStore::open({.directory = folder,
                                .quota_bytes = quota_bytes,
                                .read_threads = 2,
                                .access = cache::DiskOptions::Access::kWriteIfPossible,
                                .faults = std::move(faults)});
  LOCKET_CHECK(store.has_value());
  return std::move(*store);
}

}  // namespace locket::test_support
