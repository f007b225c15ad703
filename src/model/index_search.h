// The search behind the indexer: which rows each position of a step looks at, their scores, and the
// best of them. Keys stream past queries in stretches that stay in the cache, and nothing of the
// size of the context is kept. What is found does not depend on how the work is shared out: the
// best of all are the best of the best of any parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/index_scan.h"
#include "kernels/top_k.h"
#include "model/even_shares.h"
#include "model/indexer.h"

namespace locket::model {

// What positions ask with. Must outlive the search.
struct IndexQueries {
  tensor::FloatMatrix heads;    // [rows, heads * dim], rotated and quantized
  tensor::FloatMatrix weights;  // [rows, heads]
};

class IndexSearch {
 public:
  IndexSearch(ForwardContext& context, const IndexerConfig& config, const IndexQueries& queries,
              std::size_t key_stream, Step& step);

  // Sets step.selection and, where the layer builds it, step.pool.
  void run();

  // Keys that were scored, over all positions.
  std::uint64_t scored_keys() const;

 private:
  enum class Look { kNowhere, kAtAll, kAtPool };

  // What one position does.
  struct Plan {
    std::int64_t visible = 0;
    Look look = Look::kNowhere;
    bool builds_pool = false;
    std::int64_t keys = 0;  // that it scores
  };

  // A share of the work: positions with one kind of look, cut by rows, by keys or by pool blocks.
  struct Task {
    enum class Cut { kRows, kKeys, kBlocks };
    Cut cut = Cut::kRows;
    std::size_t first_row = 0;  // of the step
    std::size_t last_row = 0;
  };

  // What a share has found for one position. Rows of a pool are counted through its blocks.
  struct Found {
    std::size_t row = 0;
    kernels::TopKSelector rows;
    kernels::TopKSelector blocks;
  };

  // Room that one thread works with.
  struct Scratch {
    std::vector<kernels::KeyRun> runs;
    std::vector<float> scores;
    std::vector<float> maxima;
  };

  // A range of keys for a range of rows.
  struct Stretch {
    std::size_t first_row = 0;
    std::size_t last_row = 0;
    std::int64_t first_key = 0;
    std::int64_t last_key = 0;
  };

  void plan_rows();
  void plan_row(const StepPart& part, std::size_t row);
  void add_tasks();
  std::size_t add_task(std::size_t row, std::size_t end);
  void add_scans(std::size_t first_row, std::size_t last_row);
  std::int64_t unit_keys() const;
  Found start(std::size_t row) const;
  std::vector<Found> work(Share share) const;
  void scan_keys(const Stretch& stretch, std::span<Found> found, Scratch& scratch) const;
  void take_scores(const Stretch& stretch, std::span<const float> scores, Found& found,
                   Scratch& scratch) const;
  void scan_blocks(Share blocks, Found& found, Scratch& scratch) const;
  void scan_rows(std::size_t first_row, std::size_t last_row, std::vector<Found>& found,
                 Scratch& scratch) const;
  void add_runs(std::size_t row, std::int64_t first, std::int64_t last, Scratch& scratch) const;
  std::size_t score(std::size_t first_row, std::size_t last_row, Scratch& scratch) const;
  void finish(std::size_t row, Found* found);

  ForwardContext& context_;
  const IndexerConfig& config_;
  const IndexQueries& queries_;
  std::size_t key_stream_;
  Step& step_;
  std::vector<Plan> plans_;                    // [rows]
  std::vector<kernels::IndexQuery> prepared_;  // [rows], of those that look
  std::vector<Task> tasks_;
  EvenShares shares_;
};

}  // namespace locket::model
