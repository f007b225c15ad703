// What every mechanism gets besides its weights and inputs: threads, numerics, a counter of the
// work done, and somebody who may watch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/worker_pool.h"
#include "model/numerics_mode.h"

namespace locket::model {

class ExpertSource;

// Multiply-adds that were executed, by kind.
struct WorkCount {
  std::uint64_t matmul = 0;        // products with weights
  std::uint64_t attention = 0;     // query-row and probability-row products
  std::uint64_t index_scores = 0;  // query-key products of the indexer

  std::uint64_t total() const { return matmul + attention + index_scores; }
  friend bool operator==(const WorkCount&, const WorkCount&) = default;
};

// Receives intermediate results; called from the thread that runs the forward pass. Spans are valid
// during the call only.
class ForwardObserver {
 public:
  ForwardObserver() = default;
  ForwardObserver(const ForwardObserver&) = delete;
  ForwardObserver& operator=(const ForwardObserver&) = delete;
  virtual ~ForwardObserver() = default;

  // A place in the forward pass: values of `layer` for positions from `first_position` on.
  struct Place {
    std::string_view name;  // "streams", "pre", "attention", "moe", "experts", ...
    std::int64_t layer = -1;
    std::int64_t first_position = 0;
    std::size_t width = 0;  // values per position
  };
  virtual void on_floats(const Place& place, std::span<const float> values) = 0;
  virtual void on_integers(const Place& place, std::span<const std::int32_t> values) = 0;
};

struct ForwardContext {
  WorkerPool& workers;
  Numerics numerics;
  WorkCount work = {};
  ForwardObserver* observer = nullptr;
  // Where routed experts come from; null: from the model. For measurements, which choose for it.
  ExpertSource* experts = nullptr;
};

}  // namespace locket::model
