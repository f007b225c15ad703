// Decode steps of a loaded model over a context that nobody had to compute: pages and rings are
// filled with random rows in the model's own formats, so a million tokens are there in a second.
// What a step costs does not depend on the values. Not thread-safe; the engine must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cache/page_pool.h"
#include "cache/sequence_memory.h"
#include "engine/engine.h"
#include "model/generations/v41_config.h"

namespace locket::cli {

// Fills every row of the first `tokens` positions, and every slot of the rings. REQUIRES: room is
// reserved; `tokens` is a multiple of cache::kTokensPerPage; not the formats of mode `plain`.
void fill_random_rows(const model::MemoryDescription& memory, std::int64_t tokens,
                      const cache::KvView& view, WorkerPool& workers);

class DecodeSteps {
 public:
  struct Wish {
    std::int64_t context = 1024;  // a multiple of cache::kTokensPerPage
    std::size_t sequences = 1;
    model::ExpertSource* experts = nullptr;  // instead of the model's
  };
  // kOverBudget if the context needs more than half of the free memory.
  [[nodiscard]] static Result<std::unique_ptr<DecodeSteps>> make(engine::Engine& engine,
                                                                 const Wish& wish);

  // Empty; make() fills it.
  DecodeSteps(engine::Engine& engine, const Wish& wish);

  // One token of every sequence through all layers and the head, always at position `context`; the
  // sequences have the same token, another one each step, so they choose the same experts.
  void run();
  // Errors of the steps so far.
  const Status& status() const { return status_; }

 private:
  [[nodiscard]] Status fill();

  engine::Engine& engine_;
  Wish wish_;
  cache::PagePool pool_;
  std::vector<std::unique_ptr<cache::SequenceMemory>> sequences_;
  std::vector<cache::KvView> views_;  // [sequences]
  std::vector<std::int32_t> tokens_;  // [context + 1]
  std::int32_t next_token_ = 0;
  Status status_;
};

// Bytes of weights that one generated token reads: everything but the embedding table, and of the
// routed experts those that a token chooses.
std::uint64_t decode_weight_bytes(const checkpoint::Checkpoint& checkpoint,
                                  const model::V41Config& config);

}  // namespace locket::cli
