#include "kernels/cpu/tables.h"

#include "hwy/targets.h"
#include "kernels/cpu/drivers.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/instruction_sets.h"

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
  attend(f32_panel_kernels(kSet), attention_math(kSet), input, out);
}

template <InstructionSet kSet>
void f32_index_scores(const IndexScoreInput& input, std::span<float> scores) {
  score_keys({.exact = &f32_panel_kernels(kSet),
              .bf16 = nullptr,
              .math = &attention_math(kSet),
              .scan = &value_scan(kSet)},
             input, scores);
}

void bf16_matmul(const WeightMatrix& w, const ActivationRows& x, float* out, std::size_t out_stride,
                 std::size_t first, std::size_t last) {
  const bool pairs = x.values == ActivationValues::kBf16 && w.format != WeightFormat::kF32;
  matmul_part(
      pairs ? bf16_panel_kernels() : f32_panel_kernels(InstructionSet::kAvx512),
      value_scan(InstructionSet::kAvx512),
      {.weights = w, .x = x, .out = out, .out_stride = out_stride, .first = first, .last = last});
}

void bf16_attention(const AttentionInput& input, std::span<float> out) {
  const AttentionMath& math = attention_math(InstructionSet::kAvx512);
  const ValueScan& scan = value_scan(InstructionSet::kAvx512);
  const bool pairs = input.rounding == Rounding::kBf16 && scan.holds_bf16(input.query) &&
                     scan.holds_bf16(input.rows);
  attend(pairs ? bf16_panel_kernels() : f32_panel_kernels(InstructionSet::kAvx512), math, input,
         out);
}

void bf16_index_scores(const IndexScoreInput& input, std::span<float> scores) {
  score_keys({.exact = &f32_panel_kernels(InstructionSet::kAvx512),
              .bf16 = &bf16_panel_kernels(),
              .math = &attention_math(InstructionSet::kAvx512),
              .scan = &value_scan(InstructionSet::kAvx512)},
             input, scores);
}

template <InstructionSet kSet>
const KernelTable& f32_table(std::string_view name) {
  static const KernelTable table = {
      .name = name,
      .matmul_groups = f32_matmul<kSet>,
      .sparse_attention = f32_attention<kSet>,
      .index_scores = f32_index_scores<kSet>,
      .elementwise = elementwise_kernels(kSet),
  };
  return table;
}

const KernelTable& bf16_table() {
  static const KernelTable table = {
      .name = "avx512_bf16",
      .matmul_groups = bf16_matmul,
      .sparse_attention = bf16_attention,
      .index_scores = bf16_index_scores,
      .elementwise = elementwise_kernels(InstructionSet::kAvx512),
  };
  return table;
}

// Highway knows whether the operating system saves the wide registers; it has no names for the
// two extensions.
bool has_avx512_bf16() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi");
}

}  // namespace

std::vector<const KernelTable*> supported_tables() {
  const auto targets = hwy::SupportedTargets();
  std::vector<const KernelTable*> tables;
  if ((targets & HWY_AVX2) != 0) tables.push_back(&f32_table<InstructionSet::kAvx2>("avx2"));
  if ((targets & HWY_AVX3) == 0) return tables;
  tables.push_back(&f32_table<InstructionSet::kAvx512>("avx512"));
  if (has_avx512_bf16()) tables.push_back(&bf16_table());
  return tables;
}

}  // namespace locket::kernels::cpu
