#include "kernels/cpu/tables.h"

#include "hwy/targets.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/bf16_fma.h"
#include "kernels/cpu/coarse_sums.h"
#include "kernels/cpu/drivers.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/fp4_digits.h"
#include "kernels/cpu/index_scan.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/int8_kernels.h"
#include "kernels/cpu/int8_quantize.h"
#include "kernels/cpu/selection.h"
#include "kernels/cpu/streams.h"

namespace locket::kernels::cpu {
namespace {

template <InstructionSet kSet>
void f32_matmul(const WeightMatrix& w, const ActivationRows& x, float* out, std::size_t out_stride,
                std::size_t first, std::size_t last) {
  matmul_part(
      f32_panel_kernels(kSet), value_scan(kSet),
      {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
}

template <InstructionSet kSet>
void f32_attention(const AttentionInput& input, std::span<float> out) {
  attend(kSet, input, out);
}

template <InstructionSet kSet>
void f32_index_scores(const IndexScoreInput& input, std::span<float> scores) {
  score_keys({.exact = &f32_panel_kernels(kSet),
              .bf16 = nullptr,
              .math = &attention_math(kSet),
              .scan = &value_scan(kSet)},
             input, scores);
}

const PanelKernels& panels_for(const WeightMatrix& w, const ActivationRows& x) {
  if (x.values != ActivationValues::kBf16 || w.format == WeightFormat::kF32 ||
      is_affine(w.format)) {
    return f32_panel_kernels(InstructionSet::kAvx512);
  }
  // Below, lookups cost more than products.
  constexpr std::size_t kFewestForFma = 3;
  const bool by_fma = prefers_fma() && x.tokens >= kFewestForFma;
  return by_fma ? bf16_fma_panel_kernels() : bf16_panel_kernels();
}

void bf16_matmul(const WeightMatrix& w, const ActivationRows& x, float* out, std::size_t out_stride,
                 std::size_t first, std::size_t last) {
  const ValueScan& scan = value_scan(InstructionSet::kAvx512);
  if (w.format == WeightFormat::kFp4 && x.values == ActivationValues::kBf16 &&
      x.tokens <= kMostDigitTokens) {
    return digit_matmul_part(
        scan,
        {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
  }
  if (decoded_shift(w.format) > 0 && (x.values == ActivationValues::kF32 || prefers_fma())) {
    return fp8_matmul_part(
        scan,
        {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
  }
  matmul_part(
      panels_for(w, x), scan,
      {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
}

void amx_matmul(const WeightMatrix& w, const ActivationRows& x, float* out, std::size_t out_stride,
                std::size_t first, std::size_t last) {
  // Below, integers are faster.
  constexpr std::size_t kFewestForTiles = 3;
  if (w.format != WeightFormat::kFp4 || x.values != ActivationValues::kBf16 ||
      x.tokens < kFewestForTiles) {
    return bf16_matmul(w, x, out, out_stride, first, last);
  }
  amx_matmul_part(
      value_scan(InstructionSet::kAvx512),
      {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
}

void bf16_index_scores(const IndexScoreInput& input, std::span<float> scores) {
  score_keys({.exact = &f32_panel_kernels(InstructionSet::kAvx512),
              .bf16 = &bf16_panel_kernels(),
              .math = &attention_math(InstructionSet::kAvx512),
              .scan = &value_scan(InstructionSet::kAvx512)},
             input, scores);
}

template <InstructionSet kSet>
void f32_index_scan(const IndexScan& scan) {
  scan_keys({.blocks = nullptr, .exact = f32_index_scores<kSet>}, scan);
}

template <const IndexBlockKernels& (*kKernels)()>
void integer_index_scan(const IndexScan& scan) {
  scan_keys({.blocks = &kKernels(), .exact = bf16_index_scores}, scan);
}

template <const Int8Kernels& (*kKernels)()>
void int8_matmul(const WeightMatrix& w, const Int8Rows& x, float* out, std::size_t out_stride,
                 std::size_t first, std::size_t last) {
  int8_matmul_part(
      kKernels(),
      {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
}

template <InstructionSet kSet>
const KernelTable& f32_table(std::string_view name) {
  static const KernelTable table = {
      .name = name,
      .matmul_groups = f32_matmul<kSet>,
      .sparse_attention = f32_attention<kSet>,
      .index_scores = f32_index_scores<kSet>,
      .index_scan = f32_index_scan<kSet>,
      .selection = selection_kernels(kSet),
      .elementwise = elementwise_kernels(kSet),
      .streams = stream_kernels(kSet),
      .int8 = {.quantize_row = int8_quantizer(kSet),
               .matmul_groups = int8_matmul<avx2_int8_kernels>},
      .coarse_sums = avx2_coarse_sums,
  };
  return table;
}

const KernelTable& bf16_table() {
  static const KernelTable table = {
      .name = "avx512_bf16",
      .matmul_groups = bf16_matmul,
      .sparse_attention = f32_attention<InstructionSet::kAvx512>,
      .index_scores = bf16_index_scores,
      .index_scan = integer_index_scan<vnni_index_kernels>,
      .selection = selection_kernels(InstructionSet::kAvx512),
      .elementwise = elementwise_kernels(InstructionSet::kAvx512),
      .streams = stream_kernels(InstructionSet::kAvx512),
      .int8 = {.quantize_row = int8_quantizer(InstructionSet::kAvx512),
               .matmul_groups = int8_matmul<vnni_int8_kernels>},
      .coarse_sums = vnni_coarse_sums,
  };
  return table;
}

// As bf16_table(), with tiles where they pay.
const KernelTable& amx_table() {
  static const KernelTable table = [] {
    KernelTable tiles = bf16_table();
    tiles.name = "avx512_amx";
    tiles.matmul_groups = amx_matmul;
    tiles.index_scan = integer_index_scan<amx_index_kernels>;
    tiles.int8.matmul_groups = int8_matmul<amx_int8_kernels>;
    return tiles;
  }();
  return table;
}

// Highway knows whether the operating system saves the wide registers; it has no names for the
// these extensions.
bool has_avx512_bf16() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vnni");
}

}  // namespace

std::vector<const KernelTable*> supported_tables() {
  const auto targets = hwy::SupportedTargets();
  std::vector<const KernelTable*> tables;
  if ((targets & HWY_AVX2) != 0) tables.push_back(&f32_table<InstructionSet::kAvx2>("avx2"));
  if ((targets & HWY_AVX3) == 0) return tables;
  tables.push_back(&f32_table<InstructionSet::kAvx512>("avx512"));
  if (!has_avx512_bf16()) return tables;
  tables.push_back(&bf16_table());
  if (amx_is_usable()) tables.push_back(&amx_table());
  return tables;
}

}  // namespace locket::kernels::cpu
