// What goes where before anything is loaded: which weights lie in memory, which stay on disk, what
// is left for the memory of texts, and what speed the bytes allow. A plan that cannot hold is
// refused with the numbers, instead of a machine that pages. Pure functions; plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/kv_layout.h"
#include "model/weight_bytes.h"

namespace locket::engine {

// A compact copy of the head (half its size), with which greedy decoding reads half as much of it.
enum class HeadCopy {
  kWherePays,  // where the head is large, and everything else is in memory anyway
  kAlways,
  kNever,
  kCount
};

struct WeightPlanWishes {
  std::uint64_t available_bytes = 0;  // memory that may be taken; 0: not known
  std::uint64_t expert_bytes = 0;     // of routed experts held in memory; 0: the plan says
  std::uint64_t pool_bytes = 0;       // of the memory of texts; 0: the plan says
  HeadCopy head_copy = HeadCopy::kWherePays;
};

// Bytes a second; 0: not known.
struct ReadRates {
  double memory = 0;
  double disk = 0;
};

struct WeightPlan {
  model::WeightBytes model;
  std::uint64_t available_bytes = 0;  // 0: not known
  bool streams = false;               // experts stay on disk, and a cache of them in memory
  std::uint64_t expert_bytes = 0;     // most bytes of experts held
  std::uint64_t read_buffers = 0;     // of those who read experts
  std::uint64_t head_copy_bytes = 0;  // 0: there is none
  std::uint64_t pool_bytes = 0;       // most bytes of the memory of texts
  double bytes_per_token = 0;         // of that memory, for each token of a text
  std::size_t slice_tokens = 0;       // prompt tokens that go through a layer at once
  std::uint64_t work_bytes = 0;       // intermediate values of such a slice
  std::uint64_t program_bytes = 0;    // the program itself, tokenizer and bookkeeping

  std::uint64_t all_expert_bytes() const { return model.experts * model.expert; }
  // Memory of the experts that a token goes through, and what is read of them.
  std::uint64_t working_set_bytes() const { return model.token_experts * model.expert; }
  std::uint64_t routed_token_bytes() const { return model.token_experts * model.expert_read; }
  // The most that the process takes; the memory of texts grows to its share only with use.
  std::uint64_t peak_bytes() const;
  // Tokens a second that reading the weights allows, if this share of the experts that a token goes
  // through has to come from disk; 0: a rate that is needed is not known.
  double tokens_per_second(const ReadRates& rates, double miss) const;
};

// kOverBudget, with the numbers: experts below one token's working set, or more than is available.
[[nodiscard]] Result<WeightPlan> plan_weights(const model::WeightBytes& bytes,
                                              const cache::KvLayout& layout,
                                              const WeightPlanWishes& wishes);

// The plan in lines for people.
std::vector<std::string> describe_plan(const WeightPlan& plan, const ReadRates& rates);

}  // namespace locket::engine
