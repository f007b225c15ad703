// Collects what a forward pass computes, joined over its calls, as named tensors: the instrument
// behind `locket trace`. Names:
//   logits                                   [positions, vocabulary]
//   embed.streams, layer.N.streams, .pre     [positions, S, hidden], [positions, S]
//   layer.N.attention, layer.N.moe           [positions, hidden], outputs of the two halves
//   layer.N.attention_input, .moe_input      [positions, hidden], what went in, after the norm
//   router.N.experts, router.N.weights       [positions, k]
//   window.N.rows                            [positions, head_dim], as the memory holds them
//   index.N.rows                             [positions, index_topk], -1 = none
//   index.N.pool                             [positions, pool blocks], block numbers, -1 = none
// Positions of decoder layers start at the decoder's segment.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/forward_context.h"
#include "tensor/shape.h"

namespace locket::engine {

// What to keep; kinds that are not asked for cost nothing.
enum class TraceKind {
  kLogits,
  kStreams,
  kAttention,
  kMoe,
  kRows,  // the memory after the run; read by the caller
  kWindow,
  kIndex,
  kRouter,
  kCount
};

std::string_view trace_kind_name(TraceKind kind);

struct TraceTensor {
  std::int64_t first_position = 0;
  tensor::Shape shape;  // [positions, ...]
  std::vector<float> floats;
  std::vector<std::int32_t> integers;  // one of the two is empty
};

class TraceRecorder : public model::ForwardObserver {
 public:
  // `stream_count` is S, to give streams their shape.
  TraceRecorder(std::set<TraceKind> kinds, std::int64_t stream_count);

  void on_floats(const Place& place, std::span<const float> values) override;
  void on_integers(const Place& place, std::span<const std::int32_t> values) override;

  const std::map<std::string, TraceTensor>& tensors() const { return tensors_; }

 private:
  // Where values of this place go; nullptr: not wanted.
  TraceTensor* find_target(const Place& place, std::size_t value_count);

  std::set<TraceKind> kinds_;
  std::int64_t stream_count_;
  std::map<std::string, TraceTensor> tensors_;
};

}  // namespace locket::engine
