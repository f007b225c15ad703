// Prefixes for tests of the disk store: token ids, pages and snapshots whose bytes follow from
// their names, so that whatever comes back can be checked without anything that was kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cache/disk_store.h"
#include "cache/storage_faults.h"

namespace locket::test_support {

// A folder under the test's temporary folder, empty at first, removed with the object. The folder
// itself is not made.
class StoreFolder {
 public:
  explicit StoreFolder(const std::string& name);
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;
  ~StoreFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct PayloadSizes {
  std::int64_t key_bytes_per_token = 17;
  std::int64_t row_bytes_per_token = 71;
  std::size_t snapshot_bytes = 5'003;

  cache::PageSizes page_sizes() const;
};

// `count` ids that follow from `seed`.
std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed);

// A root that follows from the store's secret and a label.
cache::RootLabel root_of(const cache::DiskStore& store, const std::string& tenant = {});

// One turn over a prefix, with the bytes that it points to.
struct PrefixTurn {
  cache::TurnWrite write;
  std::vector<std::vector<std::byte>> bytes;
};

struct PrefixWishes {
  std::size_t from_page = 0;                 // pages before it are not part of the turn
  std::vector<std::int64_t> snapshots = {};  // positions, page boundaries
  PayloadSizes sizes = {};
};

// All pages of `tokens` from one on, the last perhaps a tail.
PrefixTurn make_turn(const cache::RootLabel& root, const std::vector<std::int32_t>& tokens,
                     const PrefixWishes& wishes = {});
// The points after each page of `tokens`, the root's first.
std::vector<cache::PrefixPoint> points_of(const cache::RootLabel& root,
                                          const std::vector<std::int32_t>& tokens);

// The bytes that a page or snapshot of that name must have. `kind`: 'k', 'r' or 's'.
std::vector<std::byte> payload_of(const cache::PageName& name, char kind, std::size_t size);

// What a look-up gives, after everything it names was loaded and compared with what it must be.
struct Recalled {
  std::int64_t tokens = 0;     // right ones, from the start, without a gap
  std::int64_t damaged = 0;    // values that load() refused, and that were dropped
  std::int64_t wrong = 0;      // values that were given out and are wrong: never
  std::int64_t snapshots = 0;  // right ones, at the ends of the pages
};
Recalled recall(cache::DiskStore& store, const cache::RootLabel& root,
                const std::vector<std::int32_t>& tokens, const PayloadSizes& sizes = {});

// REQUIRES: it can be opened.
std::unique_ptr<cache::DiskStore> open_store(const std::filesystem::path& folder,
                                             std::uint64_t quota_bytes = 0,
                                             std::shared_ptr<cache::StorageFaults> faults = {});

}  // namespace locket::test_support
