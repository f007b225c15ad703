#include "kernels/kernel_table.h"

#if defined(__x86_64__)
#include "kernels/cpu/tables.h"
#endif
#include "kernels/reference/reference.h"
#include "kernels/sum_order.h"
#include "numerics/group_scaled.h"

namespace locket::kernels {
namespace {

const KernelTable kReference = {
    .name = "reference",
    .matmul_groups = reference::matmul_groups,
    .sparse_attention = reference::sparse_attention,
    .index_scores = reference::index_scores,
    .index_scan = reference::index_scan,
    .selection = {.ranks_from = reference::ranks_from, .block_maxima = reference::block_maxima},
    .elementwise = {.rms_norm = reference::rms_norm,
                    .swiglu = reference::swiglu,
                    .rotate_pairs = reference::rotate_pairs,
                    .fake_quantize_fp8 = numerics::fake_quantize_fp8},
    .streams = {.dots_in_double = reference::dots_in_double,
                .collapse = reference::collapse_streams,
                .expand = reference::expand_streams,
                .mix_coefficients = reference::mix_coefficients,
                .round_to_bf16 = reference::round_to_bf16},
    .int8 = {.quantize_row = reference::quantize_int8_row,
             .matmul_groups = reference::int8_matmul_groups},
    .coarse_sums = reference::coarse_sums,
};

const KernelTable* g_active = nullptr;

}  // namespace

const KernelTable& reference_kernels() { return kReference; }

const std::vector<const KernelTable*>& available_kernels() {
  static const std::vector<const KernelTable*> tables = [] {
    std::vector<const KernelTable*> found = {&kReference};
#if defined(__x86_64__)
    for (const KernelTable* table : cpu::supported_tables()) found.push_back(table);
#endif
    return found;
  }();
  return tables;
}

const KernelTable& active_kernels() {
  return g_active != nullptr ? *g_active : *available_kernels().back();
}

void set_active_kernels(const KernelTable* table) { g_active = table; }

void matmul(const WeightMatrix& w, const ActivationRows& x, float* out, std::size_t out_stride,
            WorkerPool& workers) {
  const KernelTable& table = active_kernels();
  const std::size_t grain = WorkerPool::grain_for(x.tokens * w.columns * kLanes);
  workers.parallel_for(w.row_groups(), grain, [&](std::size_t first, std::size_t last) {
    table.matmul_groups(w, x, out, out_stride, first, last);
  });
}

void sparse_attention(const AttentionInput& input, std::span<float> out) {
  active_kernels().sparse_attention(input, out);
}

void index_scores(const IndexScoreInput& input, std::span<float> scores) {
  active_kernels().index_scores(input, scores);
}

void index_scan(const IndexScan& scan) { active_kernels().index_scan(scan); }

}  // namespace locket::kernels
