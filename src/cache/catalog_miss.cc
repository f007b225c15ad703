// The part of disk_catalog.h that explains look-ups.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "cache/disk_catalog.h"
#include "cache/internal/disk_store_impl.h"
#include "cache/internal/miss_codec.h"
#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

constexpr std::size_t kPageTokens = static_cast<std::size_t>(kTokensPerPage);
constexpr std::size_t kShownTokens = 48;  // on each side of the place where a look-up ends
constexpr std::size_t kKnownSnapshots = 8;
constexpr std::uint64_t kMostMisses = 64;

using Tokens = std::span<const std::int32_t>;

std::size_t common_length(Tokens a, Tokens b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t length = 0;
  while (length < most && a[length] == b[length]) ++length;
  return length;
}

std::vector<std::int32_t> first_of(Tokens tokens) {
  const Tokens shown = tokens.first(std::min(tokens.size(), kShownTokens));
  return {shown.begin(), shown.end()};
}

std::vector<std::int32_t> last_of(Tokens tokens) {
  const Tokens shown = tokens.last(std::min(tokens.size(), kShownTokens));
  return {shown.begin(), shown.end()};
}

MissReason reason_of(GoneReason reason) {
  switch (reason) {
    case GoneReason::kEvicted:
      return MissReason::kEvicted;
    case GoneReason::kDamaged:
      return MissReason::kDamaged;
    case GoneReason::kRemoved:
      return MissReason::kRemoved;
  }
  LOCKET_CHECK(false);
}

class Explainer {
 public:
  Explainer(DiskStore& store, const RootLabel& root, Tokens tokens, const PageSizes& sizes)
      : store_(store), root_(root), tokens_(tokens), sizes_(sizes) {}

  MissExplanation explain(const PrefixPoint& known) {
    const Tokens unknown = tokens_.subspan(static_cast<std::size_t>(known.position));
    match_ = store_.find(known, unknown, sizes_);
    at_ = match_.pages.empty() ? known : match_.pages.back().end;
    const std::size_t in_pages = static_cast<std::size_t>(at_.position);
    const std::size_t hit = in_pages + static_cast<std::size_t>(match_.parting_tokens);
    found_.hit_tokens = static_cast<std::int64_t>(hit);
    found_.shared_tokens = last_of(tokens_.first(hit));
    found_.wanted_tokens = first_of(tokens_.subspan(hit));
    found_.ended_in = match_.parting ? match_.parting->end.name : at_.name;
    find_snapshots();
    if (hit == tokens_.size()) return std::move(found_);
    found_.reason = MissReason::kEnd;
    const Tokens rest = tokens_.subspan(in_pages);
    if (find_tombstone(rest) || find_other_root() || find_parting(rest)) return std::move(found_);
    if (hit == 0 && store_.impl().children_of(root_.root).empty()) {
      found_.reason = MissReason::kNothing;
    }
    return std::move(found_);
  }

 private:
  void find_snapshots() {
    for (std::size_t i = match_.pages.size(); i > 0; --i) {
      const PrefixPoint& end = match_.pages[i - 1].end;
      if (!store_.find_snapshot(end, sizes_)) continue;
      found_.snapshots.push_back(end.position);
      if (found_.snapshots.size() == kKnownSnapshots) break;
    }
    if (!found_.snapshots.empty()) found_.nearest_snapshot = found_.snapshots.front();
  }

  // Whether the page that is missing, or a tail in its place, was there once.
  bool find_tombstone(Tokens rest) {
    const auto agreed = static_cast<std::size_t>(match_.parting_tokens);
    for (std::size_t count = std::min(rest.size(), kPageTokens); count > agreed; --count) {
      const auto gone = store_.impl().tombstone_of(next_point(at_, rest.first(count)).name);
      if (!gone) continue;
      found_.reason = reason_of(gone->reason);
      found_.seconds = gone->seconds;
      return true;
    }
    return false;
  }

  // Whether another root has the first page, or all tokens if they are fewer.
  bool find_other_root() {
    if (at_.position > 0) return false;
    std::vector<RootLabel> others;
    store_.impl().scan_roots([&](const RootLabel& label) {
      if (label.root != root_.root) others.push_back(label);
      return true;
    });
    const auto has_prefix = [this](const RootLabel& other) { return is_below(other); };
    // Another tenant of the same model explains more than another model does.
    const auto is_same_model = [this](const RootLabel& other) {
      return other.identity.model == root_.identity.model &&
             other.identity.numerics_mode == root_.identity.numerics_mode &&
             other.identity.numerics_revision == root_.identity.numerics_revision;
    };
    std::stable_partition(others.begin(), others.end(), is_same_model);
    const auto other = std::ranges::find_if(others, has_prefix);
    if (other == others.end()) return false;
    found_.reason = is_same_model(*other) ? MissReason::kOtherTenant : MissReason::kOtherModel;
    found_.other_root = *other;
    return true;
  }

  bool is_below(const RootLabel& other) const {
    const PrefixPoint point = root_point(other.root);
    if (tokens_.size() >= kPageTokens) {
      const PrefixPoint end = next_point(point, tokens_.first(kPageTokens));
      return store_.has_pages({&point, 1}, {&end, 1}).front();
    }
    const auto children = store_.impl().children_of(other.root);
    return std::ranges::any_of(children, [this](const PageRecord& child) {
      return common_length(child.page.tokens, tokens_) == tokens_.size();
    });
  }

  bool find_parting(Tokens rest) {
    Tokens stored;
    std::vector<PageRecord> children;
    if (match_.parting) {
      stored = match_.parting->tokens;
    } else {
      children = store_.impl().children_of(at_.name);
      if (!children.empty()) stored = children.front().page.tokens;
    }
    const std::size_t agreed = common_length(stored, rest);
    if (agreed == stored.size()) return false;
    found_.reason = MissReason::kParting;
    found_.stored_tokens = first_of(stored.subspan(agreed));
    return true;
  }

  DiskStore& store_;
  const RootLabel& root_;
  Tokens tokens_;
  const PageSizes& sizes_;
  DiskMatch match_;
  PrefixPoint at_;  // where the last full page ends
  MissExplanation found_;
};

std::vector<std::uint64_t> miss_numbers(const DiskStore::Impl& store) {
  std::vector<std::uint64_t> numbers;
  store.records().scan(record_key(RecordSpace::kMiss, std::string_view{}),
                       [&numbers](std::string_view key, std::string_view) {
                         if (const auto number = number_of_miss(key)) numbers.push_back(*number);
                         return true;
                       });
  return numbers;
}

}  // namespace

std::string_view miss_reason_name(MissReason reason) {
  switch (reason) {
    case MissReason::kNone:
      return "none";
    case MissReason::kNothing:
      return "nothing_stored";
    case MissReason::kParting:
      return "other_tokens";
    case MissReason::kEnd:
      return "end";
    case MissReason::kEvicted:
      return "evicted";
    case MissReason::kDamaged:
      return "damaged";
    case MissReason::kRemoved:
      return "removed";
    case MissReason::kOtherModel:
      return "other_model";
    case MissReason::kOtherTenant:
      return "other_tenant";
    case MissReason::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

MissExplanation explain_miss(DiskStore& store, const RootLabel& root,
                             std::span<const std::int32_t> tokens, const PageSizes& sizes,
                             const std::optional<PrefixPoint>& known) {
  const PrefixPoint point = known.value_or(root_point(root.root));
  LOCKET_CHECK(point.position <= static_cast<std::int64_t>(tokens.size()));
  return Explainer(store, root, tokens, sizes).explain(point);
}

std::vector<RecordedMiss> recorded_misses(DiskStore& store) {
  store.impl().catch_up();
  std::vector<RecordedMiss> misses;
  store.impl().records().scan(record_key(RecordSpace::kMiss, std::string_view{}),
                              [&misses](std::string_view key, std::string_view value) {
                                auto miss = decode_miss(key, value);
                                if (miss) misses.push_back(std::move(*miss));
                                return true;
                              });
  std::ranges::reverse(misses);
  return misses;
}

Status forget_misses(DiskStore& store) {
  RecordBatch batch;
  for (const std::uint64_t number : miss_numbers(store.impl())) batch.remove(miss_key(number));
  return store.impl().write_records(batch);
}

void record_miss(DiskStore& store, const RecordedMiss& miss) {
  if (!store.is_writable()) return;
  RecordBatch batch;
  const std::vector<std::uint64_t> numbers = miss_numbers(store.impl());
  for (std::size_t i = 0; i + kMostMisses <= numbers.size(); ++i) {
    batch.remove(miss_key(numbers[i]));
  }
  RecordedMiss timed = miss;
  if (timed.seconds == 0) timed.seconds = wall_seconds();
  const std::string key = miss_key(numbers.empty() ? 1 : numbers.back() + 1);
  batch.put(key, encode_miss(key, timed));
  // Nothing depends on it.
  static_cast<void>(store.impl().write_records(batch));
}

}  // namespace locket::cache
