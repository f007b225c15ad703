#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/kernel_check_cases.h"
#include "kernels/row_codec.h"
#include "kernels/weight_matrix.h"

namespace locket::kernels {
namespace {

// The bytes of bfloat16 or float32 values.
void append_floats(WeightFormat format, std::span<const float> values,
                   std::vector<std::byte>& bytes) {
  const std::ptrdiff_t skipped = format == WeightFormat::kBf16 ? 2 : 0;
  for (const float value : values) {
    const auto all = std::bit_cast<std::array<std::byte, 4>>(value);
    bytes.insert(bytes.end(), all.begin() + skipped, all.end());
  }
}

std::vector<std::byte> random_codes(WeightFormat format, std::size_t count, CheckDraws& draws) {
  std::vector<std::byte> codes(count);
  for (std::byte& code : codes) {
    code = static_cast<std::byte>(draws.below(256));
    const bool is_nan = (code & std::byte{0x7F}) == std::byte{0x7F};
    if (!needs_whole_groups(format) && is_nan) code = std::byte{0x7E};
  }
  return codes;
}

WeightMatrix random_weights(WeightFormat format, std::size_t rows, std::size_t columns,
                            CheckDraws& draws) {
  std::vector<std::byte> values;
  if (format == WeightFormat::kF32 || format == WeightFormat::kBf16) {
    append_floats(format, draws.bf16_values(rows * columns), values);
  } else {
    values = random_codes(format, rows * stored_row_bytes(format, columns), draws);
  }
  const std::size_t scale_bytes = stored_scale_bytes(format, rows, columns);
  std::vector<std::byte> scales;
  if (format == WeightFormat::kFp8F32 || is_affine(format)) {
    append_floats(format, draws.values(scale_bytes / sizeof(float)), scales);
  } else {
    scales.resize(scale_bytes);
    for (std::byte& scale : scales) scale = draws.scale_code();
  }
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
      kFormat, rows, needs_whole_groups(kFormat) ? columns / 32 * 32 + 32 : columns, draws);
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
  constexpr std::array kFormats = {RowFormat::kFp4Main, RowFormat::kFp8,    RowFormat::kF32,
                                   RowFormat::kBf16,    RowFormat::kMlaFp8, RowFormat::kV4Fp8};
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
  const std::size_t width = 32 * (1 + draws.below(3));
  const std::size_t slots = 1 + draws.below(150);
  const Rounding rounding = draws.rounding();
  // Rows that are key and value at once, or of which both are parts.
  const bool is_whole = draws.flip();
  const std::size_t dim = is_whole ? width : 1 + draws.below(width);
  const std::size_t value_first = is_whole ? 0 : draws.below(width);
  const std::size_t value_dim = is_whole ? width : 1 + draws.below(width - value_first);
  const std::vector<float> query = draws.values(heads * dim, rounding);
  const std::vector<float> sink = draws.usual_values(draws.flip() ? heads : 0);
  const StoredSlots stored = random_slots(slots, width, draws);
  const AttentionInput input = {.heads = heads,
                                .head_dim = dim,
                                .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
                                .query = query,
                                .rows = stored.rows,
                                .sink = sink,
                                .rounding = rounding,
                                .row_width = width,
                                .value_first = value_first,
                                .value_dim = value_dim};
  CheckOutcome outcome = {.actual = std::vector<float>(heads * value_dim),
                          .expected = std::vector<float>(heads * value_dim),
                          .shape = check_shape({{"heads", heads},
                                                {"dims", dim},
                                                {"row values", width},
                                                {"first value", value_first},
                                                {"values", value_dim},
                                                {"slots", slots}})};
  table.sparse_attention(input, outcome.actual);
  reference_kernels().sparse_attention(input, outcome.expected);
  return outcome;
}

// Rows of mode `fast`, of these values.
void quantize_rows(const Int8Functions& functions, std::span<const float> x, Int8Matrix& rows) {
  for (std::size_t token = 0; token < rows.tokens(); ++token) {
    functions.quantize_row(x.subspan(token * rows.columns(), rows.columns()), rows.row(token));
  }
}

CheckOutcome int8_rows_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t columns = 32 * (1 + draws.below(9));
  const std::size_t tokens = 1 + draws.below(3);
  std::vector<float> x = draws.values(tokens * columns);
  if (draws.below(8) == 0) x[draws.below(x.size())] = draws.flip() ? HUGE_VALF : std::nanf("");
  CheckOutcome outcome;
  outcome.shape = check_shape({{"tokens", tokens}, {"columns", columns}});
  const auto run = [&](const Int8Functions& functions, std::vector<float>& out) {
    Int8Matrix matrix(tokens, columns);
    quantize_rows(functions, x, matrix);
    const Int8Rows rows = matrix.rows();
    const std::size_t groups = tokens * rows.groups();
    out.assign(rows.codes, rows.codes + groups * kInt8GroupColumns);
    out.insert(out.end(), rows.scales, rows.scales + groups);
    for (const std::int32_t offset : std::span(rows.offsets, groups * kInt8GroupBlocks)) {
      append_exactly(static_cast<std::uint32_t>(offset), out);
    }
  };
  run(table.int8, outcome.actual);
  run(reference_kernels().int8, outcome.expected);
  return outcome;
}

CheckOutcome int8_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t rows = 1 + draws.below(50);
  const std::size_t columns = 32 * (1 + draws.below(9));
  const std::size_t tokens = draws.flip() ? 1 : 1 + draws.below(20);
  const WeightMatrix weights = random_weights(WeightFormat::kFp4, rows, columns, draws);
  Int8Matrix matrix(tokens, columns);
  quantize_rows(reference_kernels().int8, draws.values(tokens * columns), matrix);
  CheckOutcome outcome = {
      .actual = std::vector<float>(tokens * rows),
      .expected = std::vector<float>(tokens * rows),
      .shape = check_shape({{"tokens", tokens}, {"rows", rows}, {"columns", columns}})};
  const Int8Rows input = matrix.rows();
  const std::size_t last = weights.row_groups();
  const std::size_t cut = draws.below(last + 1);
  table.int8.matmul_groups(weights, input, outcome.actual.data(), rows, 0, cut);
  table.int8.matmul_groups(weights, input, outcome.actual.data(), rows, cut, last);
  reference_kernels().int8.matmul_groups(weights, input, outcome.expected.data(), rows, 0, last);
  return outcome;
}

// Sums of integers below 2^40, each as the two halves of its bits.
CheckOutcome coarse_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t rows = 1 + draws.below(70);
  const std::size_t columns = 1 + draws.below(700);
  const std::size_t tokens = 1 + draws.below(kMostCoarseRows);
  WorkerPool workers(1);
  const CoarseMatrix copy =
      coarse_copy(random_weights(WeightFormat::kBf16, rows, columns, draws), workers);
  const std::vector<float> x = draws.values(tokens * columns);
  const CoarseRows input =
      coarse_rows({.data = x.data(), .stride = columns, .tokens = tokens}, columns);
  CheckOutcome outcome;
  outcome.shape = check_shape({{"tokens", tokens}, {"rows", rows}, {"columns", columns}});
  const std::size_t cut = draws.below(copy.row_groups());
  const auto run = [&](const KernelTable& kernels, std::vector<float>& out) {
    std::vector<std::int64_t> sums(tokens * copy.row_groups() * kCoarseLanes);
    kernels.coarse_sums(copy, input, cut, copy.row_groups(), sums.data());
    for (const std::int64_t sum : sums) append_exactly(static_cast<std::uint64_t>(sum), out);
  };
  run(table, outcome.actual);
  run(reference_kernels(), outcome.expected);
  return outcome;
}

constexpr CheckCase kProducts[] = {
    {"matmul bf16", matmul_case<WeightFormat::kBf16>},
    {"matmul fp8", matmul_case<WeightFormat::kFp8>},
    {"matmul fp8, float32 scales", matmul_case<WeightFormat::kFp8F32>},
    {"matmul fp4", matmul_case<WeightFormat::kFp4>},
    {"matmul f32", matmul_case<WeightFormat::kF32>},
    {"matmul 4 bits, scale and offset", matmul_case<WeightFormat::kAffine4>},
    {"matmul 8 bits, scale and offset", matmul_case<WeightFormat::kAffine8>},
    {"matmul int8", int8_case},
    {"int8 quantizer", int8_rows_case},
    {"coarse sums", coarse_case},
    {"sparse attention", attention_case},
};

}  // namespace

std::span<const CheckCase> product_checks() { return kProducts; }

}  // namespace locket::kernels
