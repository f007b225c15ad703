// What stands in the memory's folder, for people: list, count, verify, pin, remove, explain. Works
// on an open DiskStore; changing it needs a writable one (kBadRequest names who writes otherwise).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/disk_store.h"

namespace locket::cache {

// One remembered prefix: it ends with a page that nothing hangs below, or with a pinned one.
struct StoredPrefix {
  RootLabel root;
  PageName name = {};               // of its last page
  std::int64_t tokens = 0;          // of the whole prefix
  std::int64_t pages = 0;           // of the whole prefix, shared ones counted too
  std::int64_t own_pages = 0;       // pages that no other prefix shares
  std::uint64_t payload_bytes = 0;  // of the whole prefix, snapshots counted too
  std::uint64_t own_bytes = 0;      // what removing it would free
  std::int64_t snapshots = 0;
  double last_use_seconds = 0;  // wall clock
  double created_seconds = 0;
  std::uint64_t hits = 0;
  bool is_pinned = false;
};

struct CatalogTotals {
  std::uint64_t folder_bytes = 0;
  std::uint64_t quota_bytes = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t snapshot_bytes = 0;
  std::int64_t pages = 0;
  std::int64_t tails = 0;
  std::int64_t snapshots = 0;
  std::int64_t tokens = 0;
  std::int64_t unreachable_pages = 0;  // their parent is gone
  std::vector<RootLabel> roots;
};

inline constexpr std::size_t kMostFindings = 100;

struct VerifyReport {
  std::int64_t values = 0;    // payloads that were read
  std::int64_t left_out = 0;  // payloads that verify_sample() did not read
  std::uint64_t bytes = 0;
  std::int64_t damaged = 0;
  std::vector<std::string> findings;  // one line per damaged value, at most kMostFindings
};

// Why the memory of a prefix ends where it does.
enum class MissReason {
  kNone,     // everything is there
  kNothing,  // nothing is stored under this root
  kParting,  // the next stored tokens are others
  kEnd,      // nothing longer was ever stored
  kEvicted,
  kDamaged,
  kRemoved,     // by a user
  kOtherModel,  // the prefix is there, of another model, mode or revision
  kOtherTenant,
  kCount
};
std::string_view miss_reason_name(MissReason reason);

struct MissExplanation {
  MissReason reason = MissReason::kNone;
  std::int64_t hit_tokens = 0;              // stored, token-granular
  std::vector<std::int32_t> shared_tokens;  // the last ones before that, some
  std::vector<std::int32_t> wanted_tokens;  // what the request has from there on, some
  std::vector<std::int32_t> stored_tokens;  // what was stored instead, for kParting
  std::optional<RootLabel> other_root;      // for kOtherModel, kOtherTenant
  std::int64_t nearest_snapshot = 0;        // position; 0: none
  std::vector<std::int64_t> snapshots;      // the nearest few positions, highest first
  PageName ended_in = {};                   // the last page that was of use, or the root
  double seconds = 0;                       // when it was evicted, dropped or removed; 0: unknown
};

// The last used first.
std::vector<StoredPrefix> list_prefixes(DiskStore& store);
CatalogTotals count_stored(DiskStore& store);

enum class Repair { kReport, kDropDamaged };
// Reads every payload and recomputes every name. `on_progress` may be empty. Dropping: kBadRequest
// if this process only reads.
[[nodiscard]] Result<VerifyReport> verify_stored(
    DiskStore& store, Repair repair,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress);

// The same of at most `most_bytes` of payloads, spread over everything; changes nothing.
[[nodiscard]] Result<VerifyReport> verify_sample(DiskStore& store, std::uint64_t most_bytes);

// The prefix whose last page's name begins with these hexadecimal digits. kNotFound; kBadRequest if
// several do.
[[nodiscard]] Result<PageName> find_prefix(DiskStore& store, std::string_view hex);
// All pages of the prefix that ends with `name`, first page first. kNotFound.
[[nodiscard]] Result<std::vector<StoredPage>> pages_of(DiskStore& store, const PageName& name);

struct StoredSnapshot {
  PrefixPoint point;
  StoredValue value;
};
// The snapshots at the ends of these pages, in their order.
std::vector<StoredSnapshot> snapshots_of(DiskStore& store, std::span<const StoredPage> pages);
// Whose memory stands under a root; only the name is set if the store does not say.
RootLabel label_of(DiskStore& store, const PageName& root);

enum class Pin { kOn, kOff };
// A pinned prefix is never evicted.
[[nodiscard]] Status set_pin(DiskStore& store, const PageName& name, Pin pin);
// Removes the pages that no other prefix shares; the bytes of payloads freed. kBadRequest if it is
// pinned.
[[nodiscard]] Result<std::uint64_t> remove_prefix(DiskStore& store, const PageName& name);
// Removes all pages and snapshots, pinned ones, too, and the recorded misses.
[[nodiscard]] Result<std::uint64_t> remove_all(DiskStore& store);

// Why a look-up of `tokens` under `root` ends where it does now. Costs about as much as the
// look-up, of what follows `known` only: a point up to which all is there. Snapshots before it are
// not seen.
MissExplanation explain_miss(DiskStore& store, const RootLabel& root,
                             std::span<const std::int32_t> tokens, const PageSizes& sizes,
                             const std::optional<PrefixPoint>& known = {});

// The last look-ups that found less than the whole prompt, newest first (at most 64 are kept).
struct RecordedMiss {
  RootLabel root;
  std::int64_t prompt_tokens = 0;
  double seconds = 0;  // when
  MissExplanation explanation;
};
std::vector<RecordedMiss> recorded_misses(DiskStore& store);
[[nodiscard]] Status forget_misses(DiskStore& store);
// Not an error if it cannot be kept.
void record_miss(DiskStore& store, const RecordedMiss& miss);

}  // namespace locket::cache
