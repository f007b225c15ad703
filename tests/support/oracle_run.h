// The whole model over all positions at once, layer by layer, with a hand between the layers: it
// may change the streams by as much as sums in another order would. What such a change alters among
// the stored codes and the choices shows where values stood next to a rounding boundary.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/sequence_memory.h"
#include "tensor/float_matrix.h"
#include "tests/support/oracle_model.h"

namespace locket::test_support {

// Stored codes (as values) or choices of one layer, a row per position or per `tokens_per_row`.
struct StoredRows {
  std::string name;  // "rows of layer 2", "window of layer 0", "experts of layer 5", ...
  std::int64_t tokens_per_row = 1;
  std::vector<std::vector<float>> rows;
};

struct LayeredRun {
  tensor::FloatMatrix logits;      // [positions, vocabulary]
  std::vector<StoredRows> stored;  // in the order of computation
};

// Called before the first layer (-1) and after every layer with the streams [positions, S *
// hidden].
using StreamChange = std::function<void(std::int64_t layer, tensor::FloatMatrix& streams)>;

class LayerStack {
 public:
  LayerStack(OracleModel& oracle, std::span<const std::int32_t> tokens);

  // All layers.
  LayeredRun run(const StreamChange& change = {});
  // The logits that come out if `change` works on the streams that run() had before layer `first`
  // (layer_count: after the last one). Memory that lower layers wrote is used as it lies there.
  // REQUIRES: run() was called; `first` never grows from call to call.
  tensor::FloatMatrix rerun(std::int64_t first,
                            const std::function<void(tensor::FloatMatrix& streams)>& change);

 private:
  // What a layer finds.
  struct State {
    model::ResidualRows rows;
    model::RowSelection selection;
    model::CandidatePool pool;
  };

  OracleModel& oracle_;
  std::vector<std::int32_t> tokens_;
  cache::SequenceMemory memory_;
  cache::KvView view_;
  std::vector<State> before_;  // per layer, and after the last
};

// run() of a fresh stack.
LayeredRun run_layers(OracleModel& oracle, std::span<const std::int32_t> tokens,
                      const StreamChange& change = {});

// Multiplies every value by 1 + size * u, u in [-1, 1]; the same seed gives the same changes.
StreamChange relative_noise(std::uint32_t seed, float size);
// The next bfloat16 value away from zero, or towards it.
enum class UnitStep { kUp, kDown };
float next_bf16(float value, UnitStep step);

// The first entry, in the order of computation, that the two runs hold differently and that a
// position up to `last_position` may have read.
struct StoredDifference {
  std::string name;
  std::int64_t position = 0;  // that completed the row
  std::size_t values = 0;     // that differ in it
};
std::optional<StoredDifference> first_difference(const std::vector<StoredRows>& ours,
                                                 const std::vector<StoredRows>& theirs,
                                                 std::int64_t last_position);
std::string describe(const std::optional<StoredDifference>& difference);

}  // namespace locket::test_support
