#include "model/generations/lineage_bytes.h"

#include <fmt/format.h>

namespace locket::model {
namespace {

constexpr std::int64_t kBf16Bytes = 2;
constexpr std::int64_t kF32Bytes = 4;
constexpr std::int64_t kWindow = 128;  // tokens in a ring, V4 and V4.1
constexpr std::int64_t kRotary = 64;   // rotary part of a row, V2 to V4

struct Row {
  std::int64_t bytes = 0;
  std::string text;
};

Row bf16_row(std::int64_t width) { return {width * kBf16Bytes, fmt::format("{} x 2 B", width)}; }

// 6 bits an element on average, as published for V2's serving.
Row six_bit_row(std::int64_t width) { return {width * 6 / 8, fmt::format("{} x 6 bit", width)}; }

// Latent in FP8 with an f32 scale per 128, rotary key in bf16.
Row latent_fp8_row(std::int64_t latent, std::int64_t rotary) {
  const std::int64_t scales = latent / 128;
  return {latent + scales * kF32Bytes + rotary * kBf16Bytes,
          fmt::format("{} e4m3 + {} f32 scales + {} bf16", latent, scales, rotary)};
}

Row index_fp8_row(std::int64_t width) {
  return {width + kF32Bytes, fmt::format("{} e4m3 + 1 f32 scale", width)};
}

// FP4 with a power-of-two scale byte per 32.
Row index_fp4_row(std::int64_t width) {
  return {width / 2 + width / 32, fmt::format("{} e2m1 + {} UE8M0", width, width / 32)};
}

// V4: FP8 with a power-of-two scale byte per 64, rotary part in bf16, padded to a multiple of 8.
Row mixed_fp8_row(std::int64_t width, std::int64_t rotary) {
  const std::int64_t plain = width - rotary;
  const std::int64_t scales = plain / 64;
  const std::int64_t pad = (8 - scales % 8) % 8;
  return {plain + rotary * kBf16Bytes + scales + pad,
          fmt::format("{} e4m3 + {} bf16 + {} UE8M0 + {} pad", plain, rotary, scales, pad)};
}

// V4.1: FP4 with an e4m3 scale per 16.
Row main_fp4_row(std::int64_t width) {
  return {width / 2 + width / 16, fmt::format("{} e2m1 + {} e4m3 scales", width, width / 16)};
}

LineageStream stream(std::string name, std::int64_t layers, const Row& row,
                     std::int64_t tokens_per_row = 1) {
  return {std::move(name), layers, row.bytes, tokens_per_row, row.text};
}

// V1: a key and a value per head and layer.
LineageModel heads_model(std::string id, std::string generation, std::int64_t layers,
                         std::int64_t heads, std::int64_t width) {
  const Row row{heads * width * kBf16Bytes, fmt::format("{} heads x {} x 2 B", heads, width)};
  return {std::move(id),
          std::move(generation),
          {{"layers", layers}, {"kv_heads", heads}, {"head_dim", width}},
          {{"bf16", {stream("key", layers, row), stream("value", layers, row)}, {}}}};
}

// V2 and V3: one latent and one rotary key per layer, shared by all heads.
LineageModel latent_model(std::string id, std::string generation, std::int64_t layers,
                          std::int64_t latent) {
  return {
      std::move(id),
      std::move(generation),
      {{"layers", layers}, {"latent", latent}, {"rope", kRotary}},
      {{"bf16",
        {stream("latent", layers, bf16_row(latent)), stream("rope key", layers, bf16_row(kRotary))},
        {}}}};
}

void add_latent_layout(LineageModel& model, std::string name, const Row& row) {
  const std::int64_t layers = model.geometry.front().value;
  model.layouts.push_back({std::move(name), {stream("latent + rope key", layers, row)}, {}});
}

LineageModel v2_model(std::string id, std::string generation, std::int64_t layers,
                      std::string six_bit_name) {
  constexpr std::int64_t kLatent = 512;
  LineageModel model = latent_model(std::move(id), std::move(generation), layers, kLatent);
  add_latent_layout(model, std::move(six_bit_name), six_bit_row(kLatent + kRotary));
  const Row packed = latent_fp8_row(kLatent, kRotary);
  add_latent_layout(model, fmt::format("{} B rows", packed.bytes), packed);
  return model;
}

LineageModel v3_model() {
  constexpr std::int64_t kLatent = 512;
  LineageModel model = latent_model("v3", "V3 / V3.1 / R1", 61, kLatent);
  add_latent_layout(model, "vendor serving", latent_fp8_row(kLatent, kRotary));
  return model;
}

// V3.2: V3 and an index key per layer.
LineageModel v32_model() {
  constexpr std::int64_t kLayers = 61;
  constexpr std::int64_t kIndex = 128;
  LineageModel model = v3_model();
  model.id = "v3.2";
  model.generation = "V3.2 / V3.2-Exp";
  model.geometry.push_back({"index", kIndex});
  model.layouts[0].streams.push_back(stream("index key", kLayers, bf16_row(kIndex)));
  model.layouts[1].streams.push_back(stream("index key", kLayers, index_fp8_row(kIndex)));
  return model;
}

// V4: layers of three kinds. CSA: a row and an index key per 4 tokens; HCA: a row per 128; every
// layer: a window.
struct V4Shape {
  std::int64_t csa = 0;
  std::int64_t hca = 0;
  std::int64_t window_only = 0;
  std::int64_t width = 512;
  std::int64_t index = 128;
};

constexpr std::int64_t kCsaRatio = 4;
constexpr std::int64_t kHcaRatio = 128;

LineageFixedPart window_part(const V4Shape& shape, std::int64_t bytes, std::string bytes_text) {
  const std::int64_t layers = shape.csa + shape.hca + shape.window_only;
  return {"window", fmt::format("{} * {} * {}", layers, kWindow, bytes_text),
          layers * kWindow * bytes};
}

// The open group of each compressor: projections u and z. CSA groups overlap: two groups of 4
// tokens, both halves (a, b) of the width, for rows and index keys alike.
LineageFixedPart compressor_part(const V4Shape& shape) {
  const std::int64_t tokens = 2 * kCsaRatio;
  const std::int64_t row = 2 * tokens * (2 * shape.width) * kF32Bytes;
  const std::int64_t index = 2 * tokens * (2 * shape.index) * kF32Bytes;
  const std::int64_t hca = 2 * kHcaRatio * shape.width * kF32Bytes;
  return {"compressor state, float32 as the vendor's code keeps it",
          fmt::format("{} * (2 * {} * {} * {} + 2 * {} * {} * {}) + {} * 2 * {} * {} * {}",
                      shape.csa, tokens, 2 * shape.width, kF32Bytes, tokens, 2 * shape.index,
                      kF32Bytes, shape.hca, kHcaRatio, shape.width, kF32Bytes),
          shape.csa * (row + index) + shape.hca * hca};
}

LineageLayout v4_layout(std::string name, const V4Shape& shape, const Row& row, const Row& index) {
  return {std::move(name),
          {stream("CSA row", shape.csa, row, kCsaRatio),
           stream("CSA index key", shape.csa, index, kCsaRatio),
           stream("HCA row", shape.hca, row, kHcaRatio)},
          {window_part(shape, row.bytes, fmt::format("{}", row.bytes)), compressor_part(shape)}};
}

LineageModel v4_model(std::string id, std::string generation, const V4Shape& shape) {
  const Row packed = mixed_fp8_row(shape.width, kRotary);
  LineageModel model{
      std::move(id),
      std::move(generation),
      {{"csa", shape.csa},
       {"hca", shape.hca},
       {"window_only", shape.window_only},
       {"head_dim", shape.width},
       {"index", shape.index}},
      {v4_layout("bf16", shape, bf16_row(shape.width), bf16_row(shape.index)),
       v4_layout("vendor serving", shape, packed, index_fp4_row(shape.index)),
       v4_layout("vendor serving with fp8 index", shape, packed, index_fp8_row(shape.index))}};
  model.layouts[0].fixed_parts[0] =
      window_part(shape, shape.width * kBf16Bytes, fmt::format("{} * {}", shape.width, kBf16Bytes));
  return model;
}

// V4.1: rows at three encoder layers (one per two tokens) and at the decoder's first layer (one per
// token); every layer has a window in FP8 with a scale byte per 32.
LineageModel v41_model() {
  constexpr std::int64_t kHalfRate = 3;
  constexpr std::int64_t kFullRate = 1;
  constexpr std::int64_t kLayers = 40;
  constexpr std::int64_t kWidth = 512;
  constexpr std::int64_t kIndex = 128;
  constexpr std::int64_t kScales = kWidth / 32;
  const Row row = main_fp4_row(kWidth);
  const Row index = index_fp4_row(kIndex);
  return {
      "v4.1-flash",
      "V4.1-Flash",
      {{"half_rate", kHalfRate}, {"full_rate", kFullRate}, {"head_dim", kWidth}, {"index", kIndex}},
      {{"vendor serving",
        {stream("row, layers 2, 8, 14", kHalfRate, row, 2),
         stream("index key, layers 2, 8, 14", kHalfRate, index, 2),
         stream("row, layer 20", kFullRate, row), stream("index key, layer 20", kFullRate, index)},
        {{fmt::format("window, {} rings in fp8 with one UE8M0 scale per 32", kLayers),
          fmt::format("{} * {} * ({} + {})", kLayers, kWindow, kWidth, kScales),
          kLayers * kWindow * (kWidth + kScales)}}}}};
}

}  // namespace

std::string LineageStream::formula() const {
  return fmt::format("{} x {} / {}", layers, row_bytes, tokens_per_row);
}

double LineageStream::bytes_per_token() const {
  return static_cast<double>(layers * row_bytes) / static_cast<double>(tokens_per_row);
}

double LineageLayout::bytes_per_token() const {
  double bytes = 0;
  for (const LineageStream& part : streams) bytes += part.bytes_per_token();
  return bytes;
}

std::int64_t LineageLayout::fixed_bytes() const {
  std::int64_t bytes = 0;
  for (const LineageFixedPart& part : fixed_parts) bytes += part.bytes;
  return bytes;
}

std::vector<LineageModel> lineage_models() {
  return {heads_model("v1-67b", "V1 67B", 95, 8, 128),
          heads_model("v1-7b", "V1 7B", 30, 32, 128),
          v2_model("v2", "V2 / V2.5 / Coder-V2", 60, "vendor serving (6 bits on average)"),
          v2_model("v2-lite", "V2-Lite", 27, "6 bits on average (not published for this model)"),
          v3_model(),
          v32_model(),
          v4_model("v4-flash", "V4-Flash", {.csa = 21, .hca = 20, .window_only = 2}),
          v4_model("v4-pro", "V4-Pro", {.csa = 30, .hca = 31, .window_only = 0}),
          v41_model()};
}

}  // namespace locket::model
