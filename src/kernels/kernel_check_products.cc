#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/kernel_check_cases.h"
#include "kernels/weight_matrix.h"
#include "numerics/group_scaled.h"

namespace locket::kernels {
namespace {

WeightMatrix random_weights(WeightFormat format, std::size_t rows, std::size_t columns,
                            CheckDraws& draws) {
  constexpr std::array<std::size_t, 4> kBits = {16, 8, 4, 32};
  const std::size_t count = rows * columns;
  std::vector<std::byte> values;
  if (format == WeightFormat::kF32 || format == WeightFormat::kBf16) {
    const std::size_t skipped = format == WeightFormat::kBf16 ? 2 : 0;
    for (const float value : draws.bf16_values(count)) {
      const auto bytes = std::bit_cast<std::array<std::byte, 4>>(value);
      values.insert(values.end(), bytes.begin() + static_cast<std::ptrdiff_t>(skipped),
                    bytes.end());
    }
  } else {
    values.resize(count * kBits[static_cast<std::size_t>(format)] / 8);
    for (std::byte& code : values) {
      code = static_cast<std::byte>(draws.below(256));
      const bool is_nan = (code & std::byte{0x7F}) == std::byte{0x7F};
      if (format == WeightFormat::kFp8 && is_nan) code = std::byte{0x7E};
    }
  }
  const std::size_t scale_rows = format == WeightFormat::kFp8 ? (rows + 31) / 32 : rows;
  std::vector<std::byte> scales;
  if (tile_scales(format) > 0) scales.resize(scale_rows * ((columns + 31) / 32));
  for (std::byte& scale : scales) scale = draws.scale_code();
  Result<WeightMatrix> packed = pack_weights(
      {.format = format, .rows = rows, .columns = columns, .values = values, .scales = scales});
  LOCKET_CHECK(packed.has_value());
  return std::move(*packed);
}

template <WeightFormat kFormat>
CheckOutcome matmul_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t rows = 1 + draws.below(70);
  const std::size_t columns = 32 * (1 + draws.below(5)) - 2 * draws.below(8);
  const std::size_t tokens = draws.flip() ? 1 : 1 + draws.below(20);
  const WeightMatrix weights = random_weights(
      kFormat, rows, kFormat == WeightFormat::kFp4 ? columns / 32 * 32 + 32 : columns, draws);
  const Rounding rounding = draws.rounding();
  const std::vector<float> x = draws.values(tokens * weights.columns, rounding);
  const ActivationRows input = {
      .data = x.data(),
      .stride = weights.columns,
      .tokens = tokens,
      .values = rounding == Rounding::kBf16 ? ActivationValues::kBf16 : ActivationValues::kF32};
  CheckOutcome outcome = {
      .actual = std::vector<float>(tokens * rows),
      .expected = std::vector<float>(tokens * rows),
      .shape = check_shape({{"tokens", tokens}, {"rows", rows}, {"columns", columns}})};
  // In two parts, as threads have it.
  const std::size_t cut = draws.below(weights.row_groups() + 1);
  table.matmul_groups(weights, input, outcome.actual.data(), rows, 0, cut);
  table.matmul_groups(weights, input, outcome.actual.data(), rows, cut, weights.row_groups());
  reference_kernels().matmul_groups(weights, input, outcome.expected.data(), rows, 0,
                                    weights.row_groups());
  return outcome;
}

// Rows as a memory stores them, in any of its formats, and slots without one.
struct StoredSlots {
  std::vector<std::byte> bytes;
  std::vector<AttentionRow> rows;
};

StoredSlots random_slots(std::size_t slots, std::size_t dim, CheckDraws& draws) {
  constexpr std::array<RowFormat, 3> kFormats = {RowFormat::kFp4Main, RowFormat::kFp8,
                                                 RowFormat::kF32};
  StoredSlots stored;
  std::vector<std::size_t> starts;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const RowFormat format = kFormats[draws.below(kFormats.size())];
    starts.push_back(stored.bytes.size());
    stored.bytes.resize(stored.bytes.size() + row_bytes(format, dim));
    encode_row(format, draws.values(dim), std::span(stored.bytes).subspan(starts.back()));
    stored.rows.push_back({.bytes = nullptr, .format = format});
  }
  for (std::size_t slot = 0; slot < slots; ++slot) {
    if (draws.below(5) > 0) stored.rows[slot].bytes = stored.bytes.data() + starts[slot];
  }
  return stored;
}

CheckOutcome attention_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t heads = 1 + draws.below(6);
  const std::size_t dim = 32 * (1 + draws.below(3));
  const std::size_t slots = 1 + draws.below(150);
  const Rounding rounding = draws.rounding();
  const std::vector<float> query = draws.values(heads * dim, rounding);
  const std::vector<float> sink = draws.usual_values(heads);
  const StoredSlots stored = random_slots(slots, dim, draws);
  const AttentionInput input = {.heads = heads,
                                .head_dim = dim,
                                .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
                                .query = query,
                                .rows = stored.rows,
                                .sink = sink,
                                .rounding = rounding};
  CheckOutcome outcome = {
      .actual = std::vector<float>(heads * dim),
      .expected = std::vector<float>(heads * dim),
      .shape = check_shape({{"heads", heads}, {"dims", dim}, {"slots", slots}})};
  table.sparse_attention(input, outcome.actual);
  reference_kernels().sparse_attention(input, outcome.expected);
  return outcome;
}

CheckOutcome index_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t heads = 1 + draws.below(33);
  const std::size_t dim = 32 * (1 + draws.below(4));
  const std::size_t keys = 1 + draws.below(70);
  const std::vector<float> query = draws.bf16_values(heads * dim);
  const std::vector<float> weights = draws.usual_values(heads);
  const std::vector<float> rows = draws.bf16_values(keys * dim);
  const IndexScoreInput input = {
      .heads = heads,
      .dim = dim,
      .query = query,
      .weights = weights,
      .keys = rows,
      .rounding = draws.flip() ? IndexScoreRounding::kF32 : IndexScoreRounding::kBf16};
  CheckOutcome outcome = {.actual = std::vector<float>(keys),
                          .expected = std::vector<float>(keys),
                          .shape = check_shape({{"heads", heads}, {"dims", dim}, {"keys", keys}})};
  table.index_scores(input, outcome.actual);
  reference_kernels().index_scores(input, outcome.expected);
  return outcome;
}

CheckOutcome scan_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t heads = 1 + draws.below(33);
  const std::size_t dim = draws.flip() ? 128 : 32 * (1 + draws.below(4));
  const std::size_t keys = 1 + draws.below(100);
  const std::size_t key_bytes = row_bytes(RowFormat::kFp4Index, dim);
  std::vector<std::byte> rows(keys * key_bytes);
  for (std::size_t key = 0; key < keys; ++key) {
    encode_row(RowFormat::kFp4Index, draws.values(dim),
               std::span(rows).subspan(key * key_bytes, key_bytes));
  }
  std::vector<float> values = draws.values(heads * dim);
  numerics::fake_quantize_fp4_index(values);
  const std::vector<float> weights = draws.usual_values(heads);
  const std::array<IndexQuery, 1> queries = {prepare_index_query(
      {.heads = heads, .dim = dim, .values = values, .weights = weights, .integers = {}})};
  const std::size_t cut = draws.below(keys + 1);
  const std::array<KeyRun, 2> runs = {
      KeyRun{.rows = rows.data(), .count = cut},
      KeyRun{.rows = rows.data() + cut * key_bytes, .count = keys - cut}};
  CheckOutcome outcome = {.actual = std::vector<float>(keys),
                          .expected = std::vector<float>(keys),
                          .shape = check_shape({{"heads", heads}, {"dims", dim}, {"keys", keys}})};
  IndexScan scan = {.format = RowFormat::kFp4Index,
                    .runs = runs,
                    .queries = queries,
                    .scores = outcome.actual.data(),
                    .stride = keys};
  table.index_scan(scan);
  scan.scores = outcome.expected.data();
  reference_kernels().index_scan(scan);
  return outcome;
}

// Quantizer and product of mode `fast`.
CheckOutcome int8_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t rows = 1 + draws.below(50);
  const std::size_t columns = 32 * (1 + draws.below(9));
  const std::size_t tokens = draws.flip() ? 1 : 1 + draws.below(20);
  const WeightMatrix weights = random_weights(WeightFormat::kFp4, rows, columns, draws);
  const std::vector<float> x = draws.values(tokens * columns);
  CheckOutcome outcome;
  outcome.shape = check_shape({{"tokens", tokens}, {"rows", rows}, {"columns", columns}});
  const auto run = [&](const Int8Functions& functions, std::vector<float>& out) {
    Int8Matrix matrix(tokens, columns);
    for (std::size_t token = 0; token < tokens; ++token) {
      functions.quantize_row(std::span(x).subspan(token * columns, columns), matrix.row(token));
    }
    out.resize(tokens * rows);
    functions.matmul_groups(weights, matrix.rows(), out.data(), rows, 0, weights.row_groups());
  };
  run(table.int8, outcome.actual);
  run(reference_kernels().int8, outcome.expected);
  return outcome;
}

constexpr CheckCase kProducts[] = {
    {"matmul bf16", matmul_case<WeightFormat::kBf16>},
    {"matmul fp8", matmul_case<WeightFormat::kFp8>},
    {"matmul fp4", matmul_case<WeightFormat::kFp4>},
    {"matmul f32", matmul_case<WeightFormat::kF32>},
    {"matmul int8", int8_case},
    {"sparse attention", attention_case},
    {"index scores", index_case},
    {"index scan", scan_case},
};

}  // namespace

std::span<const CheckCase> product_checks() { return kProducts; }

}  // namespace locket::kernels
