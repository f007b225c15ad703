// The whole model over all positions at once, layer by layer, with a hand between the layers: it may
// change the streams by as much as sums in another order would. What such a change alters among the
// stored codes and the choices shows where values stood next to a rounding boundary.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

// Called before the first layer (-1) and after every layer with the streams [positions, S * hidden].
using StreamChange = std::function<void(std::int64_t layer, tensor::FloatMatrix& streams)>;

LayeredRun run_layers(OracleModel& oracle, std::span<const std::int32_t> tokens,
                      const StreamChange& change = {});

// The same seed gives the same changes. Multiplies every value by 1 + size * u, u in [-1, 1].
StreamChange relative_noise(std::uint32_t seed, float size);
// Moves a value of the streams of one position by one bfloat16 unit with the given chance.
StreamChange unit_noise(std::uint32_t seed, double chance, std::size_t position);

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
