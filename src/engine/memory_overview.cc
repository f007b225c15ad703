#include "engine/memory_overview.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/clock.h"
#include "base/hash.h"

namespace locket::engine {
namespace {

using cache::MemorySurvey;
using cache::PageName;
using cache::SurveyedPage;

constexpr std::size_t kMostPages = 200'000;  // of memory and disk each
constexpr std::size_t kNameDigits = 12;
constexpr double kSecondsBetweenLooks = 2;
// Looking takes at most one part in this many of a core.
constexpr double kRestShare = 20;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// A name is a digest: any of its bytes are a hash.
struct FirstBytes {
  std::size_t operator()(const PageName& name) const {
    std::size_t hash = 0;
    std::memcpy(&hash, name.data(), sizeof(hash));
    return hash;
  }
};

class Drawing {
 public:
  void add_ram(const MemorySurvey& survey) {
    for (const SurveyedPage& page : survey.pages) merged(page).ram_bytes += page.bytes;
    is_complete_ = is_complete_ && survey.is_complete;
  }
  void add_disk(const MemorySurvey& survey) {
    for (const SurveyedPage& page : survey.pages) merged(page).disk_bytes += page.bytes;
    is_complete_ = is_complete_ && survey.is_complete;
  }

  MemoryOverview draw(std::size_t most_nodes) {
    find_parents();
    add_up();
    group();
    return choose(most_nodes);
  }

 private:
  struct Page {
    SurveyedPage page;
    std::uint64_t ram_bytes = 0;
    std::uint64_t disk_bytes = 0;
    std::size_t parent = kNone;
    std::size_t group = kNone;      // kNone: its way to the root is not there
    std::uint64_t bytes_below = 0;  // its own, too
    std::uint32_t children = 0;
    bool is_reachable = false;
  };
  struct Group {
    OverviewNode node;
    std::size_t parent = kNone;
    std::uint64_t bytes_below = 0;
    std::size_t last = kNone;  // page
  };

  Page& merged(const SurveyedPage& page) {
    const auto [found, is_new] = indices_.try_emplace(page.name, pages_.size());
    if (is_new) pages_.push_back({.page = page});
    Page& known = pages_[found->second];
    known.page.is_pinned |= page.is_pinned;
    known.page.is_in_use |= page.is_in_use;
    known.page.last_use_seconds = std::max(known.page.last_use_seconds, page.last_use_seconds);
    return known;
  }

  // Parents stand before their children in order_.
  void find_parents() {
    order_.resize(pages_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, [this](std::size_t left, std::size_t right) {
      const SurveyedPage& a = pages_[left].page;
      const SurveyedPage& b = pages_[right].page;
      return a.begin != b.begin ? a.begin < b.begin : a.name < b.name;
    });
    for (const std::size_t index : order_) {
      Page& page = pages_[index];
      page.is_reachable = page.page.begin == 0;
      if (page.is_reachable) continue;
      const auto found = indices_.find(page.page.parent);
      if (found == indices_.end() || !pages_[found->second].is_reachable) continue;
      page.is_reachable = true;
      page.parent = found->second;
      pages_[page.parent].children += 1;
    }
  }

  // What hangs below counts for a page, too.
  void add_up() {
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      Page& page = pages_[*at];
      page.bytes_below += page.ram_bytes + page.disk_bytes;
      if (page.parent == kNone) continue;
      Page& parent = pages_[page.parent];
      parent.bytes_below += page.bytes_below;
      parent.page.is_in_use |= page.page.is_in_use;
      parent.page.last_use_seconds =
          std::max(parent.page.last_use_seconds, page.page.last_use_seconds);
    }
  }

  static bool is_same_place(const Page& a, const Page& b) {
    return (a.ram_bytes > 0) == (b.ram_bytes > 0) && (a.disk_bytes > 0) == (b.disk_bytes > 0);
  }

  // Whether nothing is to be seen between a page and the one before it.
  bool continues_parent(const Page& page) const {
    if (page.parent == kNone) return false;
    const Page& parent = pages_[page.parent];
    return parent.children == 1 && !parent.page.is_pinned && is_same_place(page, parent) &&
           page.page.is_in_use == parent.page.is_in_use;
  }

  void group() {
    for (const std::size_t index : order_) {
      Page& page = pages_[index];
      if (!page.is_reachable) continue;
      const bool is_new = !continues_parent(page);
      page.group = is_new ? groups_.size() : pages_[page.parent].group;
      if (is_new) {
        groups_.push_back({});
        groups_.back().parent = page.parent == kNone ? kNone : pages_[page.parent].group;
        groups_.back().bytes_below = page.bytes_below;
      }
      Group& group = groups_[page.group];
      group.last = index;
      group.node.tokens += page.page.tokens;
      group.node.ram_bytes += page.ram_bytes;
      group.node.disk_bytes += page.disk_bytes;
      group.node.is_pinned |= page.page.is_pinned;
      group.node.is_in_use |= page.page.is_in_use;
      group.node.last_use_seconds =
          std::max(group.node.last_use_seconds, page.page.last_use_seconds);
    }
  }

  // No group has more below it than its parent, which stands before it: who is chosen has its
  // parent chosen.
  MemoryOverview choose(std::size_t most_nodes) {
    std::vector<std::size_t> chosen(groups_.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    std::ranges::sort(chosen, [this](std::size_t left, std::size_t right) {
      const std::uint64_t a = groups_[left].bytes_below;
      const std::uint64_t b = groups_[right].bytes_below;
      return a != b ? a > b : left < right;
    });
    chosen.resize(std::min(chosen.size(), most_nodes));
    MemoryOverview overview;
    overview.is_complete = is_complete_;
    overview.nodes_left_out = groups_.size() - chosen.size();
    std::vector<std::int64_t> places(groups_.size(), -1);
    for (const std::size_t index : chosen) {
      Group& group = groups_[index];
      places[index] = static_cast<std::int64_t>(overview.nodes.size());
      group.node.parent = group.parent == kNone ? -1 : places[group.parent];
      group.node.name = to_hex(pages_[group.last].page.name).substr(0, kNameDigits);
      overview.nodes.push_back(std::move(group.node));
    }
    return overview;
  }

  std::unordered_map<PageName, std::size_t, FirstBytes> indices_;
  std::vector<Page> pages_;
  std::vector<std::size_t> order_;
  std::vector<Group> groups_;
  bool is_complete_ = true;
};

}  // namespace

MemoryOverview draw_overview(const MemorySurvey& ram, const MemorySurvey& disk,
                             std::size_t most_nodes) {
  Drawing drawing;
  drawing.add_ram(ram);
  drawing.add_disk(disk);
  return drawing.draw(most_nodes);
}

std::shared_ptr<const MemoryOverview> MemoryWatch::latest() {
  const std::lock_guard lock(mutex_);
  if (memory_ != nullptr && !is_looking_ && monotonic_seconds() >= next_look_) {
    is_looking_ = true;
    thread_.post([this] { look(); });
  }
  return latest_;
}

void MemoryWatch::look() {
  const double start = monotonic_seconds();
  cache::DiskStore* const disk = memory_->disk();
  const MemorySurvey on_disk =
      disk == nullptr ? MemorySurvey{} : cache::survey_disk(*disk, kMostPages);
  auto overview =
      std::make_shared<MemoryOverview>(draw_overview(memory_->survey(kMostPages), on_disk));
  const std::lock_guard lock(mutex_);
  overview->version = latest_->version + 1;
  latest_ = std::move(overview);
  const double end = monotonic_seconds();
  next_look_ = end + std::max(kSecondsBetweenLooks, kRestShare * (end - start));
  is_looking_ = false;
}

}  // namespace locket::engine
