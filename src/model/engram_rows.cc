#include "model/engram_rows.h"

#include <algorithm>

#include "base/check.h"

namespace locket::model {
namespace {

// A read of memory is short, one of disk is not.
constexpr std::size_t kRowsPerPart = 64;
constexpr std::size_t kPositionsPerPart = 16;

// The different rows that one lookup wants.
struct WantedRows {
  const EngramTable* table = nullptr;
  std::vector<std::int64_t> ids;  // ascending, none twice
  tensor::FloatMatrix rows;       // [ids, head_dim]
  std::vector<Status> statuses;   // [ids]

  std::size_t place_of(std::int64_t id) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(ids, id) - ids.begin());
  }
  void read(std::size_t index) { statuses[index] = table->read_row(ids[index], rows.row(index)); }
};

WantedRows wanted_rows(const EngramLookup& lookup) {
  WantedRows wanted = {.table = lookup.table, .ids = lookup.ids, .rows = {}, .statuses = {}};
  std::ranges::sort(wanted.ids);
  wanted.ids.erase(std::unique(wanted.ids.begin(), wanted.ids.end()), wanted.ids.end());
  wanted.rows = tensor::FloatMatrix(wanted.ids.size(), lookup.table->head_dim());
  wanted.statuses.resize(wanted.ids.size());
  return wanted;
}

// Rows on disk of all lookups are under way together.
void read_all(std::vector<WantedRows>& wanted, WorkerPool& workers, TaskPool* readers) {
  std::vector<std::pair<WantedRows*, std::size_t>> on_disk;
  for (WantedRows& one : wanted) {
    if (!one.table->is_resident() && readers != nullptr) {
      for (std::size_t i = 0; i < one.ids.size(); ++i) on_disk.emplace_back(&one, i);
      continue;
    }
    workers.parallel_for(one.ids.size(), kRowsPerPart, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) one.read(i);
    });
  }
  if (on_disk.empty()) return;
  readers->run_all(on_disk.size(),
                   [&](std::size_t i) { on_disk[i].first->read(on_disk[i].second); });
}

}  // namespace

EngramRows gather_engram_rows(std::span<const EngramLookup> lookups, std::size_t columns,
                              WorkerPool& workers, TaskPool* readers) {
  EngramRows gathered;
  if (lookups.empty()) return gathered;
  const std::size_t positions = lookups.front().ids.size() / columns;
  std::vector<WantedRows> wanted;
  for (const EngramLookup& lookup : lookups) {
    LOCKET_CHECK(lookup.ids.size() == positions * columns);
    wanted.push_back(wanted_rows(lookup));
    gathered.rows.emplace_back(positions, columns * lookup.table->head_dim());
  }
  read_all(wanted, workers, readers);
  gathered.statuses.resize(positions);
  for (std::size_t index = 0; index < lookups.size(); ++index) {
    const WantedRows& source = wanted[index];
    const std::size_t width = source.table->head_dim();
    const auto copy = [&](std::size_t position) {
      for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t place = source.place_of(lookups[index].ids[position * columns + column]);
        std::ranges::copy(source.rows.row(place),
                          gathered.rows[index].row(position).subspan(column * width).begin());
        Status& status = gathered.statuses[position];
        if (status && !source.statuses[place]) status = source.statuses[place];
      }
    };
    workers.parallel_for(positions, kPositionsPerPart, [&](std::size_t begin, std::size_t end) {
      for (std::size_t position = begin; position < end; ++position) copy(position);
    });
  }
  return gathered;
}

}  // namespace locket::model
