// Brings one routed expert from disk into its packed form: in pieces of whole row groups, each
// packed by the thread that read it while it is still in that thread's cache.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "checkpoint/tensor_reads.h"
#include "model/expert_source.h"
#include "model/stored_weight.h"

namespace locket::model {

struct StoredExpert {
  StoredWeight gate;
  StoredWeight up;
  StoredWeight down;

  std::size_t packed_bytes() const {
    return gate.packed_bytes() + up.packed_bytes() + down.packed_bytes();
  }
};

// Queues the reads and returns at once. `done` is called once, by a background thread, when all of
// the expert lies in `target`, or with the first error, which names tensor and file: `target` is
// then without meaning. The memory of `target` is used again if the shapes are the same. Who
// cancels the ticket may get the call (kCancelled) in his own thread.
// REQUIRES: `stored` and `target` stay where they are, and nobody looks at `target`, until then.
checkpoint::TensorReads::Ticket load_expert(
    checkpoint::TensorReads& reads, const StoredExpert& stored, ExpertWeights& target,
    std::function<void(Status)> done,
    checkpoint::TensorReads::Turn turn = checkpoint::TensorReads::Turn::kNow);

}  // namespace locket::model
