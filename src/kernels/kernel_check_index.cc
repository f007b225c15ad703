#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/kernel_check_cases.h"
#include "kernels/row_codec.h"
#include "numerics/group_scaled.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kGroup = numerics::kFp4IndexGroupSize;

IndexScoreRounding score_rounding(CheckDraws& draws) {
  return draws.flip() ? IndexScoreRounding::kF32 : IndexScoreRounding::kBf16;
}

CheckOutcome scores_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t heads = 1 + draws.below(33);
  const std::size_t dim = 32 * (1 + draws.below(4));
  const std::size_t keys = 1 + draws.below(70);
  const std::vector<float> query = draws.bf16_values(heads * dim);
  const std::vector<float> weights = draws.usual_values(heads);
  const std::vector<float> rows = draws.bf16_values(keys * dim);
  const IndexScoreInput input = {.heads = heads,
                                 .dim = dim,
                                 .query = query,
                                 .weights = weights,
                                 .keys = rows,
                                 .rounding = score_rounding(draws)};
  CheckOutcome outcome = {.actual = std::vector<float>(keys),
                          .expected = std::vector<float>(keys),
                          .shape = check_shape({{"heads", heads}, {"dims", dim}, {"keys", keys}})};
  table.index_scores(input, outcome.actual);
  reference_kernels().index_scores(input, outcome.expected);
  return outcome;
}

// Stored keys. Scales are spread, so that among them are keys that integers of either width hold,
// and such that none holds.
std::vector<std::byte> random_keys(RowFormat format, std::size_t keys, std::size_t dim,
                                   CheckDraws& draws) {
  const std::size_t bytes = row_bytes(format, dim);
  std::vector<std::byte> rows(keys * bytes);
  for (std::size_t key = 0; key < keys; ++key) {
    const auto row = std::span(rows).subspan(key * bytes, bytes);
    encode_row(format, draws.values(dim), row);
    if (format != RowFormat::kFp4Index || draws.flip()) continue;
    for (std::byte& scale : row.last(dim / kGroup)) {
      const auto code = std::to_integer<std::size_t>(scale);
      scale = static_cast<std::byte>(code - std::min(code, draws.below(9)));
    }
  }
  return rows;
}

// Query values as the quantizer leaves them, some with scales further apart, or any.
std::vector<float> random_query(std::size_t heads, std::size_t dim, CheckDraws& draws) {
  std::vector<float> values = draws.values(heads * dim);
  if (draws.below(4) == 0) return values;
  numerics::fake_quantize_fp4_index(values);
  if (draws.flip()) return values;
  for (std::size_t first = 0; first < values.size(); first += kGroup) {
    const int shift = static_cast<int>(draws.below(6));
    for (float& value : std::span(values).subspan(first, kGroup)) value = std::ldexp(value, -shift);
  }
  return values;
}

// The same keys in any number of pieces, some of them empty.
std::vector<KeyRun> cut_into_runs(std::span<const std::byte> rows, std::size_t keys,
                                  CheckDraws& draws) {
  const std::size_t bytes = rows.size() / keys;
  const std::size_t most = draws.flip() ? keys : 1 + keys / 16;
  std::vector<KeyRun> runs;
  for (std::size_t at = 0; at < keys;) {
    const std::size_t count = std::min(keys - at, draws.below(most + 1));
    runs.push_back({.rows = rows.data() + at * bytes, .count = count});
    at += count;
  }
  return runs;
}

CheckOutcome scan_case(const KernelTable& table, CheckDraws& draws) {
  // More keys than kernels take at once cost time, and want no more than a few heads.
  const bool is_long = draws.below(8) == 0;
  const std::size_t heads = 1 + draws.below(is_long ? 2 : 33);
  const std::size_t keys = 1 + draws.below(is_long ? 1300 : 160);
  const std::size_t positions = 1 + draws.below(keys < 80 ? 3 : 2);
  const std::size_t dim = draws.below(4) > 0 ? 128 : kGroup * (1 + draws.below(4));
  const RowFormat format = draws.below(8) > 0 ? RowFormat::kFp4Index : RowFormat::kF32;
  const std::vector<std::byte> rows = random_keys(format, keys, dim, draws);
  const std::vector<KeyRun> runs = cut_into_runs(rows, keys, draws);
  std::vector<std::vector<float>> values(positions);
  std::vector<std::vector<float>> weights(positions);
  std::vector<IndexQuery> queries;
  for (std::size_t q = 0; q < positions; ++q) {
    values[q] = random_query(heads, dim, draws);
    weights[q] = draws.usual_values(heads);
    IndexQuery query = {
        .heads = heads,
        .dim = dim,
        .values = values[q],
        .weights = weights[q],
        .rounding = draws.below(8) > 0 ? IndexScoreRounding::kF32 : IndexScoreRounding::kBf16,
        .integers = {}};
    queries.push_back(prepare_index_query(std::move(query)));
  }
  const std::size_t stride = keys + draws.below(3);
  CheckOutcome outcome = {
      .actual = std::vector<float>(positions * stride),
      .expected = std::vector<float>(positions * stride),
      .shape =
          check_shape({{"queries", positions}, {"heads", heads}, {"dims", dim}, {"keys", keys}})};
  IndexScan scan = {.format = format,
                    .runs = runs,
                    .queries = queries,
                    .scores = outcome.actual.data(),
                    .stride = stride};
  table.index_scan(scan);
  scan.scores = outcome.expected.data();
  reference_kernels().index_scan(scan);
  return outcome;
}

constexpr CheckCase kIndex[] = {
    {"index scores", scores_case},
    {"index scan", scan_case},
};

}  // namespace

std::span<const CheckCase> index_checks() { return kIndex; }

}  // namespace locket::kernels
