// Engram of V4.1: which rows a step wants, read ahead of its layers, and added layer by layer.
#include <algorithm>
#include <utility>

#include "model/engram_rows.h"
#include "model/generations/v41.h"

namespace locket::model {
namespace {

// Reads of single rows that are under way at once: a device answers many in the time of one.
constexpr std::size_t kRowReaders = 16;

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// [rows, columns]
std::vector<std::int64_t> row_ids(const EngramHash& hash, std::size_t engram_index,
                                  const Step& step) {
  std::vector<std::int64_t> ids(step.rows() * hash.columns());
  std::vector<std::int32_t> recent;
  for (std::size_t row = 0; row < step.rows(); ++row) {
    const std::size_t position = to_size(step.position(row));
    recent.clear();
    for (std::size_t back = 0; back < hash.max_ngram_size() && back <= position; ++back) {
      recent.push_back(step.part(row).tokens[position - back]);
    }
    hash.row_ids(engram_index, recent,
                 std::span(ids).subspan(row * hash.columns(), hash.columns()));
  }
  return ids;
}

}  // namespace

void V41Model::open_row_readers() {
  const bool reads = std::ranges::any_of(weights_.layers, [](const V41LayerWeights& layer) {
    return layer.engram_table && !layer.engram_table->is_resident();
  });
  if (reads) row_readers_ = std::make_unique<TaskPool>(kRowReaders);
}

void V41Model::read_engram_ahead(ForwardContext& context, std::int64_t first, std::int64_t last,
                                 Step& step) const {
  if (engram_hash_.empty()) return;
  const EngramHash& hash = engram_hash_.front();
  std::vector<EngramLookup> lookups;
  std::vector<std::size_t> places;  // [lookups], in step.engram_rows
  for (std::int64_t layer = first; layer <= last; ++layer) {
    if (role(layer).engram_index < 0) continue;
    places.push_back(to_size(role(layer).engram_index));
    lookups.push_back({.table = &*weights_.layers[to_size(layer)].engram_table,
                       .ids = row_ids(hash, places.back(), step)});
  }
  if (lookups.empty()) return;
  EngramRows gathered =
      gather_engram_rows(lookups, hash.columns(), context.workers, row_readers_.get());
  step.engram_rows.resize(hash.layer_count());
  for (std::size_t i = 0; i < places.size(); ++i) {
    step.engram_rows[places[i]] = std::move(gathered.rows[i]);
  }
  for (std::size_t row = 0; row < gathered.statuses.size(); ++row) {
    StepPart& part = step.parts[step.part_of_row[row]];
    if (!gathered.statuses[row] && part.status) part.status = std::move(gathered.statuses[row]);
  }
}

void V41Model::add_engram(ForwardContext& context, std::int64_t layer, Step& step,
                          ResidualRows& rows) const {
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  if (!weights.engram) return;
  const std::size_t place = to_size(role(layer).engram_index);
  // A layer that runs alone.
  if (place >= step.engram_rows.size() || step.engram_rows[place].rows() == 0) {
    read_engram_ahead(context, layer, layer, step);
  }
  const tensor::FloatMatrix gathered = std::move(step.engram_rows[place]);
  step.engram_rows[place] = {};
  engram_forward(context, *weights.engram, config_.rms_norm_eps, gathered, rows.streams);
  if (context.observer == nullptr) return;
  context.observer->on_floats({.name = "engram",
                               .layer = layer,
                               .first_position = step.first_position(),
                               .width = rows.streams.columns()},
                              rows.streams.values());
}

}  // namespace locket::model
