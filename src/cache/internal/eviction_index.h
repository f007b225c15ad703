// What is stored, as a tree in memory, and the choice of what goes first when room is needed: among
// pages that nothing hangs below, and snapshots, the one with the highest age x bytes / tokens that
// its loss would make a start compute again. Pages whose parent is gone can never be found: they go
// before all others. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cache/page_name.h"

namespace locket::cache {

struct NameHash {
  std::size_t operator()(const PageName& name) const {
    std::size_t value = 0;
    std::memcpy(&value, name.data(), sizeof(value));
    return value;
  }
};
using NameSet = std::unordered_set<PageName, NameHash>;

class EvictionIndex {
 public:
  struct Page {
    PageName parent = {};
    std::int64_t begin = 0;  // positions
    std::int64_t end = 0;
    std::uint64_t bytes = 0;
    double last_use = 0;  // of the page or anything below it
    std::uint32_t children = 0;
    bool is_pinned = false;
  };
  struct Snapshot {
    std::int64_t position = 0;
    std::uint64_t bytes = 0;
  };
  enum class Kind { kPage, kSnapshot };
  struct Victim {
    Kind kind = Kind::kPage;
    PageName name = {};
    PageName parent = {};  // of a page
    double last_use = 0;
  };

  // REQUIRES: no page of that name is there.
  void add_page(const PageName& name, const Page& page);
  void add_snapshot(const PageName& boundary, const Snapshot& snapshot);
  void remove_page(const PageName& name);
  void remove_snapshot(const PageName& boundary) { snapshots_.erase(boundary); }
  // The page and all above it were used then; uses never go back.
  void note_use(const PageName& name, double seconds);
  void set_pinned(const PageName& name, bool is_pinned);

  const Page* page(const PageName& name) const;
  const Snapshot* snapshot(const PageName& boundary) const;
  bool is_leaf(const PageName& name) const;
  std::size_t page_count() const { return pages_.size(); }
  // The page and all above it.
  void collect_path(const PageName& name, NameSet& names) const;
  double newest_use() const { return newest_use_; }
  void clear();

  struct Request {
    std::uint64_t bytes = 0;  // to be freed, or as much as there is
    double now = 0;
    std::int64_t restart_tokens = 0;  // the most that a missing snapshot makes a start compute
    NameSet kept;                     // pages, and snapshots at their ends, that must stay
  };
  // What should go, a page after all that hangs below it. Nothing is changed.
  std::vector<Victim> choose(const Request& request) const;

 private:
  class Round;
  // Names of pinned pages and all above them.
  void collect_pinned(NameSet& names) const;

  std::unordered_map<PageName, Page, NameHash> pages_;
  std::unordered_map<PageName, Snapshot, NameHash> snapshots_;
  // Children that came before their parent, or outlived it.
  std::unordered_map<PageName, std::uint32_t, NameHash> orphans_;
  NameSet pinned_;
  double newest_use_ = 0;
};

}  // namespace locket::cache
