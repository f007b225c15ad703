#include "engine/trace_recorder.h"

#include <array>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/check.h"

namespace locket::engine {
namespace {

// How a place of the forward pass is called in a trace.
struct PlaceName {
  std::string_view place;
  TraceKind kind;
  std::string_view format;  // of the layer
};

constexpr std::array kPlaceNames = {
    PlaceName{"logits", TraceKind::kLogits, "logits"},
    PlaceName{"embedding", TraceKind::kStreams, "embed.streams"},
    PlaceName{"streams", TraceKind::kStreams, "layer.{}.streams"},
    PlaceName{"pre", TraceKind::kStreams, "layer.{}.pre"},
    PlaceName{"attention", TraceKind::kAttention, "layer.{}.attention"},
    PlaceName{"attention_input", TraceKind::kAttention, "layer.{}.attention_input"},
    PlaceName{"moe", TraceKind::kMoe, "layer.{}.moe"},
    PlaceName{"moe_input", TraceKind::kMoe, "layer.{}.moe_input"},
    PlaceName{"experts", TraceKind::kRouter, "router.{}.experts"},
    PlaceName{"expert_weights", TraceKind::kRouter, "router.{}.weights"},
    PlaceName{"window", TraceKind::kWindow, "window.{}.rows"},
    PlaceName{"index", TraceKind::kIndex, "index.{}.rows"},
    PlaceName{"pool", TraceKind::kIndex, "index.{}.pool"},
};

}  // namespace

std::string_view trace_kind_name(TraceKind kind) {
  switch (kind) {
    case TraceKind::kLogits:
      return "logits";
    case TraceKind::kStreams:
      return "streams";
    case TraceKind::kAttention:
      return "attention";
    case TraceKind::kMoe:
      return "moe";
    case TraceKind::kRows:
      return "rows";
    case TraceKind::kWindow:
      return "window";
    case TraceKind::kIndex:
      return "index";
    case TraceKind::kRouter:
      return "router";
    case TraceKind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

TraceRecorder::TraceRecorder(std::set<TraceKind> kinds, std::int64_t stream_count)
    : kinds_(std::move(kinds)), stream_count_(stream_count) {}

TraceTensor* TraceRecorder::find_target(const Place& place, std::size_t value_count) {
  for (const PlaceName& name : kPlaceNames) {
    if (name.place != place.name) continue;
    if (!kinds_.contains(name.kind)) return nullptr;
    TraceTensor& target = tensors_[fmt::format(fmt::runtime(name.format), place.layer)];
    const auto width = static_cast<std::int64_t>(place.width);
    if (target.shape.empty()) {
      const bool has_streams = name.place == "streams" || name.place == "embedding";
      target.first_position = place.first_position;
      target.shape = has_streams ? tensor::Shape{0, stream_count_, width / stream_count_}
                                 : tensor::Shape{0, width};
    }
    LOCKET_CHECK(target.first_position + target.shape[0] == place.first_position);
    target.shape[0] += static_cast<std::int64_t>(value_count) / width;
    return &target;
  }
  return nullptr;
}

void TraceRecorder::on_floats(const Place& place, std::span<const float> values) {
  TraceTensor* target = find_target(place, values.size());
  if (target != nullptr) {
    target->floats.insert(target->floats.end(), values.begin(), values.end());
  }
}

void TraceRecorder::on_integers(const Place& place, std::span<const std::int32_t> values) {
  TraceTensor* target = find_target(place, values.size());
  if (target != nullptr) {
    target->integers.insert(target->integers.end(), values.begin(), values.end());
  }
}

}  // namespace locket::engine
