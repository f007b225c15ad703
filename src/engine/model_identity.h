// What a model's memory depends on, as one digest: config.json and tokenizer.json byte for byte,
// and of every tensor its name, shape, dtype and content. Of routed experts and Engram tables,
// which can be far larger than memory, a fixed sample of the bytes is read: a change elsewhere in
// them is not noticed (docs/formats/kv_store.md).
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "checkpoint/checkpoint.h"

namespace locket::engine {

// kIo if a file cannot be read.
[[nodiscard]] Result<Sha256Digest> model_identity(const checkpoint::Checkpoint& checkpoint,
                                                  WorkerPool& workers);

}  // namespace locket::engine
