// One layer alone, one position at a time, on recorded inputs: before a position runs, everything
// that it reads is what the record says, so a distance is this layer's own at this position.
// Positions must come in order, each once (groups of the compressor wait for their last token).
// Not thread-safe; the model must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/sequence_memory.h"
#include "model/generations/v41.h"
#include "tests/support/oracle_model.h"

namespace locket::test_support {

class LayerBench {
 public:
  LayerBench(OracleModel& oracle, std::int64_t layer, std::size_t positions);

  // Selection and pool of an earlier layer; not used by layers that make their own.
  struct Reused {
    std::vector<std::int32_t> rows;
    std::vector<std::int32_t> pool_blocks;
  };
  struct Input {
    std::span<const std::int32_t> tokens;  // all up to this position
    std::span<const float> streams;        // [S * hidden]
    std::span<const float> pre;            // [S]; empty: the collapse takes the first stream
    Reused reused = {};
  };
  // The whole layer at position tokens.size() - 1. "streams", "pre", "attention", ... in the
  // result.
  void run(const Input& input, Capture& result);
  // Its attention half alone, from the attention input u [hidden]; "attention", "window", "index",
  // "pool", and for KV sources "latents".
  void run_attention(std::int64_t position, std::span<const float> u, const Reused& reused,
                     Capture& result);

  // The memory, as values; rows and keys are those of the KV source that the layer reads.
  void set_window(std::int64_t position, std::span<const float> values);
  void set_row(std::int64_t row, std::span<const float> values);
  void set_key(std::int64_t row, std::span<const float> values);
  std::vector<float> window(std::int64_t position) const;
  std::vector<float> row(std::int64_t row) const;
  std::vector<float> key(std::int64_t row) const;
  // The memory as stored: codes, then scales.
  std::vector<std::uint8_t> window_bytes(std::int64_t position) const;
  std::vector<std::uint8_t> row_bytes(std::int64_t row) const;
  std::vector<std::uint8_t> key_bytes(std::int64_t row) const;

 private:
  const model::LayerMemory& place() const;
  model::Step make_step(std::int64_t position, std::span<const std::int32_t> tokens,
                        const Reused& reused) const;
  void write_rows(std::int64_t position, std::span<const float> u, Capture& result);

  OracleModel& oracle_;
  std::int64_t layer_;
  cache::SequenceMemory memory_;
  cache::KvView view_;
  model::SequenceState state_;
};

// Block numbers of a recorded pool, given as one flag per row, that a position with `visible` rows
// can see.
std::vector<std::int32_t> pool_blocks(std::span<const std::uint8_t> flags, std::int64_t visible,
                                      std::int64_t block_size);

// Entries that are not -1.
std::vector<std::int32_t> chosen_rows(std::span<const std::int32_t> recorded);

}  // namespace locket::test_support
