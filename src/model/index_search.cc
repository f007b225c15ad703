#include "model/index_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/row_work.h"

namespace locket::model {
namespace {

// Keys that are scored at once: for one position and for several, and how many positions.
constexpr std::int64_t kKeysForOne = 2048;
constexpr std::int64_t kKeysForMany = 256;
constexpr std::size_t kRowsAtOnce = 64;

// Multiply-adds of codes that take as long as one of a product with weights.
constexpr std::uint64_t kCodesAreFaster = 8;

// Preparing a query, in multiply-adds a value.
constexpr std::size_t kPreparing = 16;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

IndexSearch::IndexSearch(ForwardContext& context, const IndexerConfig& config,
                         const IndexQueries& queries, std::size_t key_stream, Step& step)
    : context_(context),
      config_(config),
      queries_(queries),
      key_stream_(key_stream),
      step_(step),
      plans_(step.rows()),
      prepared_(step.rows()) {
  plan_rows();
  add_tasks();
}

std::uint64_t IndexSearch::scored_keys() const {
  std::uint64_t keys = 0;
  for (const Plan& plan : plans_) keys += static_cast<std::uint64_t>(plan.keys);
  return keys;
}

void IndexSearch::plan_rows() {
  for (const StepPart& part : step_.parts) {
    if (!part.status) continue;
    for (std::size_t i = 0; i < part.count; ++i) plan_row(part, part.first_row + i);
  }
}

void IndexSearch::plan_row(const StepPart& part, std::size_t row) {
  Plan& plan = plans_[row];
  const auto size = static_cast<std::int64_t>(config_.pool_block_size);
  plan.visible = (part.position(row) + 1) / config_.ratio;
  const bool chooses = plan.visible > static_cast<std::int64_t>(config_.topk);
  // The pool restricts only where there are more blocks than it holds.
  const std::int64_t blocks = (plan.visible + size - 1) / size;
  plan.builds_pool = config_.pool == IndexerConfig::Pool::kBuild &&
                     blocks > static_cast<std::int64_t>(config_.pool_blocks);
  const bool restricted =
      config_.pool == IndexerConfig::Pool::kUse && !step_.pool.positions[row].holds_all;
  if (plan.builds_pool || (chooses && !restricted)) {
    plan.look = Look::kAtAll;
    plan.keys = plan.visible;
  } else if (chooses) {
    plan.look = Look::kAtPool;
    for (const std::int32_t block : step_.pool.positions[row].chosen) {
      plan.keys += std::min(size, plan.visible - block * size);
    }
  }
}

// The unit in which keys are cut: whole blocks of the pool.
std::int64_t IndexSearch::unit_keys() const {
  return round_up(kKeysForMany, static_cast<std::int64_t>(config_.pool_block_size));
}

void IndexSearch::add_tasks() {
  for (const StepPart& part : step_.parts) {
    const std::size_t end = part.first_row + part.count;
    for (std::size_t row = part.first_row; row < end;) row = add_task(row, end);
  }
}

// The task of the rows from `row` on, as far as they do the same; returns the next row.
std::size_t IndexSearch::add_task(std::size_t row, std::size_t end) {
  const Plan& plan = plans_[row];
  std::size_t next = row + 1;
  if (plan.look == Look::kAtAll) {
    while (next < end && plans_[next].look == Look::kAtAll) ++next;
    add_scans(row, next);
  } else if (plan.look == Look::kAtPool && plan.keys > 0) {
    tasks_.push_back({.cut = Task::Cut::kBlocks, .first_row = row, .last_row = next});
    shares_.add(step_.pool.positions[row].chosen.size(),
                static_cast<std::uint64_t>(plan.keys) * config_.heads * config_.dim);
  }
  return next;
}

// Many positions are cut into rows, few look at fewer keys each.
void IndexSearch::add_scans(std::size_t first_row, std::size_t last_row) {
  std::uint64_t keys = 0;
  for (std::size_t row = first_row; row < last_row; ++row) {
    keys += static_cast<std::uint64_t>(plans_[row].keys);
  }
  const std::size_t rows = last_row - first_row;
  const bool many = rows >= 8 * context_.workers.thread_count();
  tasks_.push_back({.cut = many ? Task::Cut::kRows : Task::Cut::kKeys,
                    .first_row = first_row,
                    .last_row = last_row});
  const std::int64_t units = round_up(plans_[last_row - 1].visible, unit_keys()) / unit_keys();
  shares_.add(many ? rows : static_cast<std::size_t>(units), keys * config_.heads * config_.dim);
}

void IndexSearch::run() {
  for_each_row(
      context_, step_.rows(), config_.heads * config_.dim * kPreparing, [&](std::size_t row) {
        if (plans_[row].look == Look::kNowhere) return;
        prepared_[row] = kernels::prepare_index_query({.heads = config_.heads,
                                                       .dim = config_.dim,
                                                       .values = queries_.heads.row(row),
                                                       .weights = queries_.weights.row(row),
                                                       .rounding = context_.numerics.index_scores,
                                                       .integers = {}});
      });
  const std::uint64_t cost = scored_keys() * config_.heads * config_.dim;
  const std::size_t parts = context_.workers.parts_for(cost / kCodesAreFaster);
  std::vector<std::vector<Found>> found(parts);
  context_.workers.parallel_for(parts, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      found[part] = work(shares_.part(part, parts));
    }
  });
  std::vector<Found*> of_row(step_.rows(), nullptr);
  for (std::vector<Found>& share : found) {
    for (Found& one : share) {
      Found*& first = of_row[one.row];
      if (first == nullptr) {
        first = &one;
        continue;
      }
      first->rows.merge(one.rows);
      first->blocks.merge(one.blocks);
    }
  }
  for_each_row(context_, step_.rows(), config_.topk * kPreparing,
               [&](std::size_t row) { finish(row, of_row[row]); });
}

IndexSearch::Found IndexSearch::start(std::size_t row) const {
  Found found{.row = row, .rows = {}, .blocks = {}};
  found.rows.reset(config_.topk);
  found.blocks.reset(config_.pool_blocks);
  return found;
}

std::vector<IndexSearch::Found> IndexSearch::work(Share share) const {
  std::vector<Found> found;
  Scratch scratch;
  shares_.for_each(share, [&](std::size_t entry, Share units) {
    const Task& task = tasks_[entry];
    if (task.cut == Task::Cut::kBlocks) {
      found.push_back(start(task.first_row));
      scan_blocks(units, found.back(), scratch);
      return;
    }
    if (task.cut == Task::Cut::kRows) {
      scan_rows(task.first_row + units.begin, task.first_row + units.end, found, scratch);
      return;
    }
    const std::size_t first = found.size();
    for (std::size_t row = task.first_row; row < task.last_row; ++row) {
      found.push_back(start(row));
    }
    const std::int64_t visible = plans_[task.last_row - 1].visible;
    scan_keys({.first_row = task.first_row,
               .last_row = task.last_row,
               .first_key = static_cast<std::int64_t>(units.begin) * unit_keys(),
               .last_key = std::min(visible, static_cast<std::int64_t>(units.end) * unit_keys())},
              std::span(found).subspan(first), scratch);
  });
  return found;
}

// All keys for some rows, as many rows at once as find room in the cache.
void IndexSearch::scan_rows(std::size_t first_row, std::size_t last_row, std::vector<Found>& found,
                            Scratch& scratch) const {
  for (std::size_t row = first_row; row < last_row; row += kRowsAtOnce) {
    const std::size_t end = std::min(last_row, row + kRowsAtOnce);
    const std::size_t first = found.size();
    for (std::size_t i = row; i < end; ++i) found.push_back(start(i));
    scan_keys(
        {.first_row = row, .last_row = end, .first_key = 0, .last_key = plans_[end - 1].visible},
        std::span(found).subspan(first), scratch);
  }
}

void IndexSearch::scan_keys(const Stretch& stretch, std::span<Found> found,
                            Scratch& scratch) const {
  const std::int64_t at_once =
      round_up(found.size() == 1 ? kKeysForOne : kKeysForMany, unit_keys());
  std::size_t row = stretch.first_row;
  for (std::int64_t key = stretch.first_key; key < stretch.last_key; key += at_once) {
    // Later positions see more.
    while (plans_[row].visible <= key) ++row;
    const Stretch part = {.first_row = row,
                          .last_row = stretch.last_row,
                          .first_key = key,
                          .last_key = std::min(key + at_once, stretch.last_key)};
    scratch.runs.clear();
    add_runs(row, part.first_key, part.last_key, scratch);
    const std::size_t stride = score(row, part.last_row, scratch);
    for (std::size_t i = row; i < part.last_row; ++i) {
      take_scores(part, std::span(scratch.scores).subspan((i - row) * stride, stride),
                  found[i - stretch.first_row], scratch);
    }
  }
}

void IndexSearch::take_scores(const Stretch& stretch, std::span<const float> scores, Found& found,
                              Scratch& scratch) const {
  const Plan& plan = plans_[found.row];
  const std::int64_t end = std::min(plan.visible, stretch.last_key);
  scores = scores.first(static_cast<std::size_t>(end - stretch.first_key));
  found.rows.add(scores, static_cast<std::int32_t>(stretch.first_key));
  if (!plan.builds_pool) return;
  const std::size_t size = config_.pool_block_size;
  scratch.maxima.resize((scores.size() + size - 1) / size);
  kernels::block_maxima(scores, size, scratch.maxima);
  // The block of the newest row is always in.
  if (end == plan.visible) scratch.maxima.back() = HUGE_VALF;
  found.blocks.add(scratch.maxima,
                   static_cast<std::int32_t>(stretch.first_key / static_cast<std::int64_t>(size)));
}

// Rows of blocks of the pool; the last block, which may be short, is the last of all.
void IndexSearch::scan_blocks(Share blocks, Found& found, Scratch& scratch) const {
  const std::vector<std::int32_t>& chosen = step_.pool.positions[found.row].chosen;
  const std::size_t size = config_.pool_block_size;
  const std::size_t at_once = std::max<std::size_t>(1, kKeysForOne / size);
  for (std::size_t first = blocks.begin; first < blocks.end; first += at_once) {
    const std::size_t last = std::min(blocks.end, first + at_once);
    scratch.runs.clear();
    for (std::size_t block = first; block < last; ++block) {
      const std::int64_t row = chosen[block] * static_cast<std::int64_t>(size);
      add_runs(found.row, row,
               std::min(row + static_cast<std::int64_t>(size), plans_[found.row].visible), scratch);
    }
    const std::size_t count = score(found.row, found.row + 1, scratch);
    found.rows.add(std::span(scratch.scores).first(count), static_cast<std::int32_t>(first * size));
  }
}

// Keys [first, last) of the sequence of `row`, page by page.
void IndexSearch::add_runs(std::size_t row, std::int64_t first, std::int64_t last,
                           Scratch& scratch) const {
  const cache::KvView& memory = *step_.part(row).memory;
  const std::int64_t per_page = memory.layout().streams[key_stream_].rows_per_page();
  while (first < last) {
    const std::int64_t end = std::min(last, (first / per_page + 1) * per_page);
    scratch.runs.push_back({.rows = memory.row(key_stream_, first).data(),
                            .count = static_cast<std::size_t>(end - first)});
    first = end;
  }
}

// Scores of the runs for the queries of some rows; returns how many a row has.
std::size_t IndexSearch::score(std::size_t first_row, std::size_t last_row,
                               Scratch& scratch) const {
  const std::size_t rows = last_row - first_row;
  kernels::IndexScan scan = {.format = step_.formats.index_keys,
                             .runs = scratch.runs,
                             .queries = std::span(prepared_).subspan(first_row, rows)};
  scan.stride = scan.key_count();
  scratch.scores.resize(std::max(scratch.scores.size(), rows * scan.stride));
  scan.scores = scratch.scores.data();
  kernels::index_scan(scan);
  return scan.stride;
}

void IndexSearch::finish(std::size_t row, Found* found) {
  const Plan& plan = plans_[row];
  std::vector<std::int32_t>& rows = step_.selection.rows[row];
  if (plan.visible <= static_cast<std::int64_t>(config_.topk)) {
    rows.resize(static_cast<std::size_t>(plan.visible));
    std::iota(rows.begin(), rows.end(), 0);
  } else if (found != nullptr) {
    found->rows.take_ascending(rows);
  }
  if (plan.look == Look::kAtPool) {
    const std::vector<std::int32_t>& chosen = step_.pool.positions[row].chosen;
    const auto size = static_cast<std::int32_t>(config_.pool_block_size);
    for (std::int32_t& at : rows) {
      at = chosen[static_cast<std::size_t>(at / size)] * size + at % size;
    }
  }
  if (plan.builds_pool) {
    step_.pool.positions[row].holds_all = false;
    found->blocks.take_ascending(step_.pool.positions[row].chosen);
  }
}

}  // namespace locket::model
