#include "kernels/largest_product.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/check.h"
#include "kernels/kernel_table.h"

namespace locket::kernels {
namespace {

// Row groups whose integer sums are made at a time.
constexpr std::size_t kGroupsAtOnce = 8;
// From here on, the candidates are not worth picking.
constexpr std::size_t kMostCandidates = 2;  // one in so many row groups

// Takes one output into account. Rows may come in any order.
void consider(float output, std::size_t row, std::size_t no_row, LargestProduct& best) {
  ++best.computed;
  if (!(output < std::numeric_limits<float>::infinity())) {
    ++best.broken;
    return;
  }
  const bool is_first = best.row == no_row && output > -std::numeric_limits<float>::infinity();
  const bool is_better =
      best.row != no_row && (output > best.value || (output == best.value && row < best.row));
  if (!is_first && !is_better) return;
  best.row = row;
  best.value = output;
}

// The largest bound of every row group, for every row of activations.
class GroupBounds {
 public:
  GroupBounds(const CoarseMatrix& copy, const ActivationRows& x, WorkerPool& workers)
      : copy_(copy), rows_(coarse_rows(x, copy.columns)), groups_(copy.row_groups()) {
    for (std::size_t token = 0; token < rows_.tokens; ++token) {
      bounds_.emplace_back(copy, rows_, token);
    }
    upper_.resize(rows_.tokens * groups_);
    // Bytes take a thread as long as this many multiply-adds.
    constexpr std::size_t kWorkPerCode = 2;
    const std::size_t grain =
        WorkerPool::grain_for(copy.columns * kCoarseLanes * (kWorkPerCode + rows_.tokens));
    workers.parallel_for(groups_, grain,
                         [&](std::size_t begin, std::size_t end) { fill(begin, end); });
  }

  std::span<const double> of(std::size_t token) const {
    return std::span(upper_).subspan(token * groups_, groups_);
  }

 private:
  void fill(std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> sums(rows_.tokens * kGroupsAtOnce * kCoarseLanes);
    for (std::size_t first = begin; first < end; first += kGroupsAtOnce) {
      const std::size_t last = std::min(end, first + kGroupsAtOnce);
      active_kernels().coarse_sums(copy_, rows_, first, last, sums.data());
      const std::size_t stride = (last - first) * kCoarseLanes;
      for (std::size_t token = 0; token < rows_.tokens; ++token) {
        for (std::size_t group = first; group < last; ++group) {
          const std::size_t at = token * stride + (group - first) * kCoarseLanes;
          upper_[token * groups_ + group] = largest(token, group, std::span(sums).subspan(at));
        }
      }
    }
  }

  double largest(std::size_t token, std::size_t group, std::span<const std::int64_t> sums) const {
    const std::size_t first = group * kCoarseLanes;
    const std::size_t count = std::min(kCoarseLanes, copy_.rows - first);
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t lane = 0; lane < count; ++lane) {
      most = std::max(most, bounds_[token].upper(first + lane, sums[lane]));
    }
    return most;
  }

  const CoarseMatrix& copy_;
  CoarseRows rows_;
  std::size_t groups_;
  std::vector<CoarseBound> bounds_;  // [tokens]
  std::vector<double> upper_;        // [tokens, row groups]
};

// The search for one row of activations.
class Search {
 public:
  Search(const WeightMatrix& w, const ActivationRows& x, WorkerPool& workers)
      : w_(w),
        x_(x),
        workers_(workers),
        outputs_(std::make_unique_for_overwrite<float[]>(w.rows)),
        best_({.row = w.rows}) {}

  LargestProduct run(std::span<const double> upper) {
    const auto first = static_cast<std::size_t>(std::ranges::max_element(upper) - upper.begin());
    compute(first);
    consider_group(first);
    std::vector<std::size_t> candidates;
    for (std::size_t group = 0; group < upper.size(); ++group) {
      if (group != first && may_be_best(upper[group])) candidates.push_back(group);
    }
    if (candidates.size() > upper.size() / kMostCandidates) return search_all();
    const std::size_t grain = WorkerPool::grain_for(w_.columns * kCoarseLanes);
    workers_.parallel_for(candidates.size(), grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) compute(candidates[i]);
    });
    for (const std::size_t group : candidates) consider_group(group);
    return best_;
  }

 private:
  bool may_be_best(double upper) const {
    return best_.row == w_.rows || upper >= static_cast<double>(best_.value);
  }

  void compute(std::size_t group) {
    active_kernels().matmul_groups(w_, x_, outputs_.get(), w_.rows, group, group + 1);
  }

  void consider_group(std::size_t group) {
    const std::size_t end = std::min(w_.rows, (group + 1) * kCoarseLanes);
    for (std::size_t row = group * kCoarseLanes; row < end; ++row) {
      consider(outputs_[row], row, w_.rows, best_);
    }
  }

  LargestProduct search_all() {
    matmul(w_, x_, outputs_.get(), w_.rows, workers_);
    return find_largest({outputs_.get(), w_.rows});
  }

  const WeightMatrix& w_;
  const ActivationRows& x_;  // one row
  WorkerPool& workers_;
  std::unique_ptr<float[]> outputs_;  // [rows], of the row groups that were computed
  LargestProduct best_;
};

}  // namespace

LargestProduct find_largest(std::span<const float> outputs) {
  LargestProduct best = {.row = outputs.size()};
  for (std::size_t row = 0; row < outputs.size(); ++row) {
    consider(outputs[row], row, outputs.size(), best);
  }
  return best;
}

std::vector<LargestProduct> largest_products(const WeightMatrix& w, const CoarseMatrix& copy,
                                             const ActivationRows& x, WorkerPool& workers) {
  LOCKET_CHECK(copy.rows == w.rows && copy.columns == w.columns && w.rows > 0);
  const GroupBounds bounds(copy, x, workers);
  std::vector<LargestProduct> largest;
  for (std::size_t token = 0; token < x.tokens; ++token) {
    const ActivationRows row = {
        .data = x.data + token * x.stride, .stride = x.stride, .tokens = 1, .values = x.values};
    largest.push_back(Search(w, row, workers).run(bounds.of(token)));
  }
  return largest;
}

}  // namespace locket::kernels
