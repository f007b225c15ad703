// What the memory of one sequence costs on a running machine: a sequence is filled, and both the
// page pool's account and the growth of the process's resident memory are taken. The rows come
// either from a real session, or, where only a configuration is at hand, from random values that go
// through the model's row encodings into pages and rings as a session's rows do.
//
// Free functions; the resident memory is the whole process's, so nothing else should run beside
// them.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/sequence_memory.h"
#include "engine/sampler.h"
#include "model/language_model.h"

namespace locket::engine {

struct LiveCacheSize {
  std::int64_t tokens = 0;
  std::uint64_t page_bytes = 0;      // pages in use, as the pool counts them
  std::uint64_t ring_bytes = 0;      // rings of the sequence
  std::uint64_t resident_bytes = 0;  // growth of the resident memory: pages, rings and what else

  double page_bytes_per_token() const;
  // The growth without the rings; may be negative where the pages are few.
  double resident_bytes_per_token() const;
};

// Tokens with these positions leave rows behind. Values are random, the same for a row everywhere.
struct SyntheticTokens {
  std::int64_t first = 0;  // a multiple of cache::kTokensPerPage
  std::int64_t count = 0;
};

// Takes pages one by one, as a growing sequence does, and writes every row that the tokens
// complete; rings get the newest tokens. kOverBudget if the pool is full.
[[nodiscard]] Status write_synthetic_tokens(const model::MemoryDescription& memory,
                                            const SyntheticTokens& tokens,
                                            cache::SequenceMemory& sequence);

// A sequence of synthetic tokens. kOverBudget, with the numbers, if it would not fit into the
// memory that is free.
[[nodiscard]] Result<LiveCacheSize> fill_live_cache(const model::MemoryDescription& memory,
                                                    std::int64_t token_count);

// A session that reads `prompt`. It runs twice, both alive at the end, and the second one is
// measured: what the model needs to compute with is there by then. Errors of Session.
[[nodiscard]] Result<LiveCacheSize> measure_live_session(const model::LanguageModel& model,
                                                         WorkerPool& workers,
                                                         std::span<const TokenId> prompt);

}  // namespace locket::engine
