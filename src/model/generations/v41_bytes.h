// What the weights of a DeepSeek-V4.1 model take in memory, and what one generated token reads of
// them: counted from the tensors of a checkpoint, or from its config alone where there are none.
// Drafts and vision, which are not loaded, are not counted. Pure functions.
#pragma once

#include <cstdint>

#include "checkpoint/checkpoint.h"
#include "model/generations/v41_config.h"

namespace locket::model {

struct V41Bytes {
  bool is_estimate = false;           // from the config, with the release's number formats
  std::uint64_t dense = 0;            // everything but routed experts and Engram tables
  std::uint64_t engram_resident = 0;  // tables that are held in memory
  std::uint64_t engram_on_disk = 0;   // and those that are read row by row
  std::uint64_t expert = 0;           // memory that the largest routed expert takes
  std::uint64_t expert_read = 0;      // what is read to compute with it
  std::uint64_t load_scratch = 0;     // held for a moment while weights are read
  std::uint64_t token_dense = 0;      // read for one generated token, without routed experts
  std::uint64_t work_per_row = 0;     // intermediate values of one token of a step
};

V41Bytes estimate_v41_bytes(const V41Config& config);
V41Bytes count_v41_bytes(const V41Config& config, const checkpoint::Checkpoint& checkpoint);

}  // namespace locket::model
