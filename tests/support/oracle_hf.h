// The vectors of Hugging Face transformers in float32 (tests/data/oracle/hf): prompts with logits,
// and traces. What is missing throws std::runtime_error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/numerics_mode.h"
#include "tensor/float_matrix.h"
#include "tests/support/oracle_data.h"
#include "tests/support/oracle_layer.h"
#include "tests/support/oracle_model.h"
#include "tests/support/oracle_run.h"

namespace locket::test_support {

struct HfCase {
  std::string name;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> appended;
  std::size_t first_position = 0;  // of `logits`
  tensor::FloatMatrix logits;      // prompt's positions from first_position on, then decode steps
  std::vector<float> noise;        // per row of `logits`: how far the references are apart there

  std::vector<std::int32_t> tokens() const;
};

// `set`: "wide", or "wide_noq" without cache quantizers.
std::vector<HfCase> read_hf_cases(std::string_view shape, const std::string& set);

class HfTrace {
 public:
  // `file`: "trace_wide_n3.safetensors".
  HfTrace(std::string_view shape, const std::string& file);

  const std::string& name() const { return name_; }
  model::NumericsMode mode() const { return mode_; }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  const OracleTrace& trace() const { return trace_; }

  // Cache of a KV source with the rows of all positions.
  tensor::FloatMatrix rows(std::int64_t source) const;
  tensor::FloatMatrix keys(std::int64_t source) const;
  // What `layer` takes over from earlier layers at `position`.
  LayerBench::Reused reused(const model::V41Config& config, std::int64_t layer,
                            std::size_t position) const;
  // In the form of run_layers().
  std::vector<StoredRows> stored(const model::V41Config& config) const;

 private:
  std::string name_;
  model::NumericsMode mode_;
  OracleFile file_;
  std::vector<std::int32_t> tokens_;
  OracleTrace trace_;
};

// Files of a shape's traces.
std::vector<std::string> hf_trace_files(std::string_view shape);
// The trace of prompt `name` of set `wide`; empty if there is none.
std::string hf_trace_of(std::string_view shape, const std::string& name);

}  // namespace locket::test_support
