// The vectors of the vendor's own code (tests/data/oracle/official): prompts with logits of the
// code as it is and of the same roundings with exact sums, and traces. What is missing throws
// std::runtime_error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/float_matrix.h"
#include "tests/support/oracle_data.h"
#include "tests/support/oracle_layer.h"
#include "tests/support/oracle_model.h"
#include "tests/support/oracle_run.h"

namespace locket::test_support {

struct OfficialPrompt {
  std::string name;  // "28c"
  bool is_traced = false;
  std::size_t first_position = 0;  // of `logits` and `exact_logits`
  double prefill_noise = 0;        // largest distance of exact from official logits in prefill
  double decode_noise = 0;         // and in decode steps
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> appended;
  tensor::FloatMatrix logits;  // of prompt positions from first_position on
  tensor::FloatMatrix exact_logits;
  tensor::FloatMatrix decode_logits;  // of the appended tokens
  tensor::FloatMatrix exact_decode_logits;

  std::vector<std::int32_t> tokens() const;
};

std::vector<OfficialPrompt> read_official_prompts(std::string_view shape);

// The trace of one prompt and its first two decode steps.
class OfficialTrace {
 public:
  OfficialTrace(const OracleFile& trace_file, const OfficialPrompt& prompt);

  const std::string& name() const { return name_; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const OracleTrace& trace() const { return trace_; }
  LayerBench::Reused reused(const model::V41Config& config, std::int64_t layer,
                            std::size_t position) const;
  // In the form of run_layers().
  std::vector<StoredRows> stored(const model::V41Config& config) const;

 private:
  std::string name_;
  std::vector<std::int32_t> tokens_;
  OracleTrace trace_;
};

OracleFile read_official_trace_file(std::string_view shape);

// The slot lists of one position's attention: which tile of the kernel every row in use falls into.
// The official lists are no function of the position alone: a prompt shorter than the window has
// fewer window slots, and a decode step while the ring fills has its empty slots first.
struct TilePlan {
  std::vector<std::size_t> window;    // slot of every window row, oldest first
  std::vector<std::size_t> selected;  // slot of every selected row
  std::size_t slots = 0;
};
struct TilePlace {
  std::size_t position = 0;
  std::size_t prompt_tokens = 0;
  std::size_t window = 0;  // slots of the ring
  std::size_t selected = 0;
};
TilePlan our_tile_plan(const TilePlace& place);
TilePlan official_tile_plan(const TilePlace& place);
// Whether the rows in use are cut into tiles in the same way.
bool has_same_tiles(const TilePlan& a, const TilePlan& b);

}  // namespace locket::test_support
