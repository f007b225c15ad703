// What the engine knows of a model, whatever its generation. Layers below `boundary` are needed for
// every token of a prompt (the encoder of V4.1; all layers of every earlier generation); the layers
// from there on run over the end of a prompt only.
//
//   encode()  tokens -> layers below the boundary, everything that is kept of the context
//   decode()  the rows of encode() -> the other layers
//   logits()  norm and head of chosen rows
//
// What a position gives does not depend on how positions are grouped into calls, nor on the other
// sequences of a call. A model is immutable after load and may be shared by threads; one sequence
// may be in one call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cache/kv_layout.h"
#include "kernels/row_codec.h"
#include "model/forward_context.h"
#include "model/largest_logit.h"
#include "model/sequence_state.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

class StreamedExperts;

// What a config.json says that the engine needs.
struct ModelShape {
  std::string generation;  // "V4.1", for people
  std::int64_t layer_count = 0;
  std::int64_t hidden = 0;
  std::int64_t stream_count = 1;  // residual streams of a position
  std::int64_t vocabulary_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t bos_token_id = -1;  // -1: none
  std::int64_t eos_token_id = -1;
  std::int64_t boundary = 0;  // layers that every token of a prompt runs through
  std::int64_t window = 1;    // positions that a window sees, its own included; 1: no windows

  // Positions over which a start without rings is not exact yet.
  std::int64_t restart_tokens() const { return boundary * (window - 1); }
};

// How the values of a row become its bytes.
struct RowEncoding {
  kernels::RowFormat format = kernels::RowFormat::kF32;
  std::size_t width = 0;  // values
};

// What a model keeps of its context, and how each row is encoded.
struct MemoryDescription {
  cache::KvLayout layout = {};
  std::vector<RowEncoding> stream_rows = {};  // [layout.streams]
  std::vector<RowEncoding> ring_rows = {};    // [layout.rings]
};

// All that is known of a model without its weights.
struct ModelOutline {
  ModelShape shape;
  MemoryDescription memory;
};

// The residual of the rows of a step. Hyper-connections keep several streams and the weights that
// collapse them at the next site; other models have one stream and no weights.
struct ResidualRows {
  tensor::FloatMatrix streams;  // [count, S * hidden]
  tensor::FloatMatrix pre;      // [count, S], or [count, 0]

  std::size_t count() const { return streams.rows(); }
};

// Some rows, in the order given. REQUIRES: every number is below their count.
tensor::FloatMatrix pick_rows(const tensor::FloatMatrix& rows,
                              std::span<const std::size_t> numbers);
ResidualRows pick_rows(const ResidualRows& rows, std::span<const std::size_t> numbers);

class LanguageModel {
 public:
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;
  virtual ~LanguageModel() = default;

  virtual const ModelOutline& outline() const = 0;
  const ModelShape& shape() const { return outline().shape; }
  const cache::KvLayout& layout() const { return outline().memory.layout; }
  virtual const Numerics& numerics() const = 0;

  // Null: all experts are in memory.
  virtual StreamedExperts* streamed_experts() const { return nullptr; }
  // One line about tensors that were recognised and not loaded; may be empty.
  virtual const std::string& skipped_tensors() const = 0;

  ForwardContext make_context(WorkerPool& workers) const {
    return {.workers = workers, .numerics = numerics()};
  }
  virtual SequenceState make_state() const = 0;

  // The parts with what their positions need, for one call of encode() or decode(). In a call the
  // status of a part becomes kIo if weights cannot be read, kBadMemory if stored rows cannot be
  // had; the other parts go on. An expert that cannot be read fails all parts.
  // REQUIRES: ids in the vocabulary; write_from is a multiple of the layout's largest
  // tokens_per_row; a part's memory has room for its tokens and holds what earlier calls wrote for
  // positions below first_position.
  virtual Step make_step(std::vector<StepPart> parts) const = 0;

  // One state per part; the step's segment_start is where the windows of these layers begin. Every
  // layer gives its result to the observer as "streams" (and "pre", if it has them).
  virtual ResidualRows encode(ForwardContext& context, Step& step,
                              std::span<SequenceState* const> states) const = 0;

  // The layers from the boundary on, in place.
  virtual void decode(ForwardContext& context, Step& step, ResidualRows& rows) const = 0;

  // Logits [count, vocabulary] of rows as decode() leaves them. Rows of any layer may be given:
  // what it would say.
  virtual tensor::FloatMatrix logits(ForwardContext& context, const ResidualRows& rows) const = 0;

  // The largest of the same logits, in less time. Nothing: there is no way that is shorter than
  // logits() for so many rows.
  virtual std::vector<LargestLogit> largest_logits(ForwardContext& /*context*/,
                                                   const ResidualRows& /*rows*/) const {
    return {};
  }
  // Makes what that needs, if this generation has it; a part of loading.
  virtual void make_head_copy(WorkerPool& /*workers*/) {}

 protected:
  LanguageModel() = default;
  LanguageModel(LanguageModel&&) = default;
  LanguageModel& operator=(LanguageModel&&) = default;
};

}  // namespace locket::model
