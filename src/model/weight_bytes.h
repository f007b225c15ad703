// What the weights of a model take in memory, and what one generated token reads of them: counted
// from the tensors of a checkpoint, or from its config alone where there are none. What is not
// loaded (drafts, vision) is not counted. Plain data.
#pragma once

#include <cstdint>

namespace locket::model {

struct WeightBytes {
  bool is_estimate = false;           // from the config, with the release's number formats
  std::uint64_t dense = 0;            // everything but routed experts and Engram tables
  std::uint64_t engram_resident = 0;  // tables that are held in memory
  std::uint64_t engram_on_disk = 0;   // and those that are read row by row
  std::uint64_t experts = 0;          // routed experts of all layers
  std::uint64_t token_experts = 0;    // of them, those that one token goes through
  std::uint64_t expert_layers = 0;    // layers that have some
  std::uint64_t expert = 0;           // memory that the largest routed expert takes
  std::uint64_t expert_read = 0;      // what is read to compute with it
  std::uint64_t load_scratch = 0;     // held for a moment while weights are read
  std::uint64_t head_copy = 0;        // may be held besides, for greedy decoding; 0: not made
  std::uint64_t token_dense = 0;      // read for one generated token, without routed experts
  std::uint64_t work_per_row = 0;     // intermediate values of one token of a step
  bool can_stream = false;            // routed experts may stay on disk
};

}  // namespace locket::model
