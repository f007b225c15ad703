#include "cache/internal/eviction_index.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/check.h"

namespace locket::cache {

void EvictionIndex::add_page(const PageName& name, const Page& page) {
  const auto [place, is_new] = pages_.emplace(name, page);
  LOCKET_CHECK(is_new);
  const auto waiting = orphans_.find(name);
  place->second.children = waiting == orphans_.end() ? 0 : waiting->second;
  if (waiting != orphans_.end()) orphans_.erase(waiting);
  if (pinned_.contains(name)) place->second.is_pinned = true;
  const auto parent = pages_.find(page.parent);
  if (parent != pages_.end()) {
    ++parent->second.children;
  } else {
    ++orphans_[page.parent];
  }
  newest_use_ = std::max(newest_use_, page.last_use);
}

void EvictionIndex::add_snapshot(const PageName& boundary, const Snapshot& snapshot) {
  snapshots_[boundary] = snapshot;
}

void EvictionIndex::remove_page(const PageName& name) {
  const auto found = pages_.find(name);
  if (found == pages_.end()) return;
  const PageName parent = found->second.parent;
  if (found->second.children > 0) orphans_[name] = found->second.children;
  pages_.erase(found);
  const auto above = pages_.find(parent);
  if (above != pages_.end()) {
    if (above->second.children > 0) --above->second.children;
    return;
  }
  const auto waiting = orphans_.find(parent);
  if (waiting != orphans_.end() && --waiting->second == 0) orphans_.erase(waiting);
}

void EvictionIndex::note_use(const PageName& name, double seconds) {
  newest_use_ = std::max(newest_use_, seconds);
  auto at = pages_.find(name);
  while (at != pages_.end() && at->second.last_use < seconds) {
    at->second.last_use = seconds;
    const std::int64_t begin = at->second.begin;
    at = pages_.find(at->second.parent);
    if (at != pages_.end() && at->second.end != begin) break;
  }
}

void EvictionIndex::set_pinned(const PageName& name, bool is_pinned) {
  if (is_pinned) {
    pinned_.insert(name);
  } else {
    pinned_.erase(name);
  }
  const auto found = pages_.find(name);
  if (found != pages_.end()) found->second.is_pinned = is_pinned;
}

const EvictionIndex::Page* EvictionIndex::page(const PageName& name) const {
  const auto found = pages_.find(name);
  return found == pages_.end() ? nullptr : &found->second;
}

const EvictionIndex::Snapshot* EvictionIndex::snapshot(const PageName& boundary) const {
  const auto found = snapshots_.find(boundary);
  return found == snapshots_.end() ? nullptr : &found->second;
}

bool EvictionIndex::is_leaf(const PageName& name) const {
  const Page* found = page(name);
  return found != nullptr && found->children == 0;
}

void EvictionIndex::collect_path(const PageName& name, NameSet& names) const {
  PageName at = name;
  // A name that is there already has its path there too.
  while (pages_.contains(at) && names.insert(at).second) at = pages_.at(at).parent;
}

void EvictionIndex::collect_pinned(NameSet& names) const {
  for (const PageName& name : pinned_) collect_path(name, names);
}

void EvictionIndex::clear() {
  pages_.clear();
  snapshots_.clear();
  orphans_.clear();
  pinned_.clear();
}

// One choice of victims: what is gone so far is kept beside the index.
class EvictionIndex::Round {
 public:
  Round(const EvictionIndex& index, const Request& request)
      : index_(index), request_(request), kept_(request.kept) {
    index.collect_pinned(kept_);
    for (const auto& [name, page] : index.pages_) {
      if (page.children == 0) offer_page(name);
    }
    for (const auto& [name, snapshot] : index.snapshots_) offer_snapshot(name, snapshot);
  }

  std::vector<Victim> run() {
    while (freed_ < request_.bytes && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      take(best);
    }
    return std::move(victims_);
  }

 private:
  struct Candidate {
    double score = 0;
    Kind kind = Kind::kPage;
    PageName name = {};
    // Equal scores go by name, so that the choice does not depend on the order of a hash table.
    bool operator<(const Candidate& other) const {
      return std::pair(score, other.name) < std::pair(other.score, name);
    }
  };

  double age_of(double last_use) const { return 1 + std::max(0.0, request_.now - last_use); }

  bool is_reachable(const Page& page) const {
    return page.begin == 0 || index_.pages_.contains(page.parent);
  }

  // What a start would compute again without the snapshot: from the next lower one, or from as far
  // back as a start without any reaches.
  std::int64_t snapshot_cost(const PageName& boundary) const {
    const Page* page = index_.page(boundary);
    std::int64_t cost = 0;
    while (page != nullptr && cost < request_.restart_tokens) {
      cost += page->end - page->begin;
      const PageName& below = page->parent;
      if (index_.snapshots_.contains(below) && !gone_snapshots_.contains(below)) break;
      page = index_.page(below);
    }
    return std::clamp<std::int64_t>(cost, 1, std::max<std::int64_t>(1, request_.restart_tokens));
  }

  double page_score(const PageName& name, const Page& page) const {
    if (!is_reachable(page)) return std::numeric_limits<double>::infinity();
    std::uint64_t bytes = page.bytes;
    std::int64_t cost = page.end - page.begin;
    const Snapshot* snapshot = index_.snapshot(name);
    if (snapshot != nullptr && !gone_snapshots_.contains(name)) {
      bytes += snapshot->bytes;
      cost += snapshot_cost(name);
    }
    return age_of(page.last_use) * static_cast<double>(bytes) / static_cast<double>(cost);
  }

  double snapshot_score(const PageName& name, const Snapshot& snapshot) const {
    const Page* page = index_.page(name);
    if (page == nullptr) return std::numeric_limits<double>::infinity();
    return age_of(page->last_use) * static_cast<double>(snapshot.bytes) /
           static_cast<double>(snapshot_cost(name));
  }

  void offer_page(const PageName& name) {
    if (kept_.contains(name)) return;
    heap_.push({page_score(name, index_.pages_.at(name)), Kind::kPage, name});
  }

  void offer_snapshot(const PageName& name, const Snapshot& snapshot) {
    if (kept_.contains(name)) return;
    heap_.push({snapshot_score(name, snapshot), Kind::kSnapshot, name});
  }

  void take(const Candidate& best) {
    if (best.kind == Kind::kSnapshot) {
      take_snapshot(best);
    } else {
      take_page(best);
    }
  }

  void take_snapshot(const Candidate& best) {
    if (gone_snapshots_.contains(best.name)) return;
    const Snapshot& snapshot = index_.snapshots_.at(best.name);
    const double score = snapshot_score(best.name, snapshot);
    if (score < best.score) {  // a lower snapshot has gone meanwhile
      heap_.push({score, Kind::kSnapshot, best.name});
      return;
    }
    remove_snapshot(best.name, snapshot);
  }

  void remove_snapshot(const PageName& name, const Snapshot& snapshot) {
    gone_snapshots_.insert(name);
    freed_ += snapshot.bytes;
    victims_.push_back({.kind = Kind::kSnapshot, .name = name, .parent = {}, .last_use = 0});
  }

  void take_page(const Candidate& best) {
    const Page& page = index_.pages_.at(best.name);
    const Snapshot* snapshot = index_.snapshot(best.name);
    if (snapshot != nullptr && !gone_snapshots_.contains(best.name)) {
      remove_snapshot(best.name, *snapshot);
    }
    freed_ += page.bytes;
    victims_.push_back(
        {.kind = Kind::kPage, .name = best.name, .parent = page.parent, .last_use = page.last_use});
    const auto above = index_.pages_.find(page.parent);
    if (above == index_.pages_.end()) return;
    if (++gone_children_[page.parent] == above->second.children) offer_page(page.parent);
  }

  const EvictionIndex& index_;
  const Request& request_;
  NameSet kept_;
  std::priority_queue<Candidate> heap_;
  NameSet gone_snapshots_;
  std::unordered_map<PageName, std::uint32_t, NameHash> gone_children_;
  std::vector<Victim> victims_;
  std::uint64_t freed_ = 0;
};

std::vector<EvictionIndex::Victim> EvictionIndex::choose(const Request& request) const {
  return Round(*this, request).run();
}

}  // namespace locket::cache
