// The recorded vectors of the generations before V4.1 (tests/data/oracle/lineage/<generation>), the
// tiny checkpoint they were made from as a loaded model, and runs of a session to compare. What is
// missing throws std::runtime_error. Not thread-safe.
//
// A test of a generation: for every prompt, run_lineage() with several slicings, then
// expect_same_logits(); for the prompts with insides compare what the run saw and kept, by the
// names that the model gives to its observer and the numbers of its streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/language_model.h"
#include "model/numerics_mode.h"
#include "tensor/float_matrix.h"
#include "tests/support/oracle_data.h"

namespace locket::test_support {

// "v1", "v2", "v2lite", "v3", "v32", "v4flash", "v4pro".
std::filesystem::path lineage_checkpoint(const std::string& generation);

class LineageModel {
 public:
  // Loaded at the first call and kept until the program ends.
  static LineageModel& get(const std::string& generation,
                           model::NumericsMode mode = model::NumericsMode::kPlain);

  const model::LanguageModel& model() const { return *model_; }
  const OracleFile& vectors() const { return vectors_; }
  cache::PagePool& pool() { return *pool_; }
  WorkerPool& workers() { return workers_; }

 private:
  LineageModel(const std::string& generation, model::NumericsMode mode);

  OracleFile vectors_;
  checkpoint::Checkpoint checkpoint_;
  std::unique_ptr<model::LanguageModel> model_;
  std::unique_ptr<cache::PagePool> pool_;
  WorkerPool workers_{2};
};

struct LineagePrompt {
  std::string name;                         // "p3"
  std::string inside;                       // "short", "medium": prefix of its insides; or empty
  std::vector<std::int32_t> tokens;         // the prompt
  std::vector<std::int32_t> decode_tokens;  // fed one by one after it
  std::vector<std::int32_t> positions;      // of the rows of `logits`
  tensor::FloatMatrix logits;               // [positions, vocabulary]
  tensor::FloatMatrix decode_logits;        // [decode_tokens, vocabulary]
};

// All prompts of a generation, in order.
std::vector<LineagePrompt> lineage_prompts(const OracleFile& vectors);

// The memory as it lay there, decoded. Rows hold float32 in mode `plain`; other modes give nothing.
struct LineageMemory {
  std::vector<tensor::FloatMatrix> streams;  // [layout.streams][rows in use, width]
  std::vector<tensor::FloatMatrix>
      rings;  // [layout.rings][slots, width], slot = position mod slots
};

struct LineageRun {
  tensor::FloatMatrix logits;  // [prompt + decode tokens, vocabulary]
  // What the model gave to its observer, by "l3.attention": all positions below each other.
  std::map<std::string, tensor::FloatMatrix> floats;
  std::map<std::string, std::vector<std::vector<std::int32_t>>> integers;
  LineageMemory after_prompt;
  LineageMemory after_decode;
};

// The prompt in slices of random length (seed 0: in one), then the other tokens one by one; every
// layer runs over every position.
LineageRun run_lineage(LineageModel& lineage, const LineagePrompt& prompt,
                       std::uint32_t slice_seed);

// Every recorded row within `tolerance` (relative L2), and the recorded greedy tokens. Prints the
// largest distances.
void expect_same_logits(const std::string& generation, const LineagePrompt& prompt,
                        const LineageRun& run, double tolerance = 1e-5);

// Rows of `ours` from 0 on against the rows of a recorded tensor whose rows are the last extent;
// the number of rows must be equal. Gives the largest relative L2 and prints nothing.
double largest_distance(const tensor::FloatMatrix& ours, const tensor::FloatMatrix& theirs);

// Columns [first, first + count) of some rows.
tensor::FloatMatrix columns_of(const tensor::FloatMatrix& rows, std::size_t first,
                               std::size_t count);

}  // namespace locket::test_support
