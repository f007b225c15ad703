// Entries of work, each of equal units, cut into parts of about the same cost: a part takes a run
// of units that may begin and end inside an entry. Which part does what never changes a result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/worker_pool.h"

namespace locket::model {

// Units [begin, end).
struct Share {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class EvenShares {
 public:
  // `cost` of all units, in multiply-adds. REQUIRES: units > 0, cost > 0.
  void add(std::size_t units, std::uint64_t cost) {
    entries_.push_back({.first_unit = units_, .units = units, .first_cost = cost_, .cost = cost});
    units_ += units;
    cost_ += cost;
  }

  // The units of part `part` of `parts`, counted through all entries.
  Share part(std::size_t part, std::size_t parts) const {
    return {.begin = cut(part, parts), .end = cut(part + 1, parts)};
  }

  // Calls function(entry, units of the entry) for every entry that `share` has units of.
  template <class Function>
  void for_each(Share share, const Function& function) const {
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      const Entry& entry = entries_[index];
      const Share units = {.begin = std::max(share.begin, entry.first_unit),
                           .end = std::min(share.end, entry.first_unit + entry.units)};
      if (units.begin >= units.end) continue;
      function(index,
               Share{.begin = units.begin - entry.first_unit, .end = units.end - entry.first_unit});
    }
  }

  // Calls function(share) for shares as small as the cost is worth.
  template <class Function>
  void run(WorkerPool& workers, const Function& function) const {
    const std::size_t parts = std::min(units_, workers.pieces_for(cost_));
    workers.parallel_for(parts, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t index = begin; index < end; ++index) function(part(index, parts));
    });
  }

 private:
  struct Entry {
    std::size_t first_unit;
    std::size_t units;
    std::uint64_t first_cost;
    std::uint64_t cost;
  };

  std::size_t cut(std::size_t part, std::size_t parts) const {
    if (part == parts) return units_;
    const std::uint64_t wanted = cost_ * part / parts;
    std::size_t at = 0;
    for (const Entry& entry : entries_) {
      if (entry.first_cost > wanted) break;
      const std::uint64_t into = (wanted - entry.first_cost) * entry.units;
      at = entry.first_unit + (into + entry.cost / 2) / entry.cost;
    }
    return at;
  }

  std::vector<Entry> entries_;
  std::size_t units_ = 0;
  std::uint64_t cost_ = 0;
};

}  // namespace locket::model
