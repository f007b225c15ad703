// The parts that run kernels alone on made-up weights: experts, prefill.
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "cli/bench_parts.h"
#include "kernels/index_scan.h"
#include "kernels/int8_matmul.h"
#include "kernels/machine_limits.h"
#include "kernels/matmul.h"
#include "model/expert_step.h"
#include "model/linear.h"
#include "numerics/bf16.h"

namespace locket::cli {
namespace {

constexpr std::size_t kHidden = 5'120;
constexpr std::size_t kExpertSize = 2'304;
constexpr std::size_t kExperts = 6;  // of a token
constexpr std::size_t kLine = 64;

std::uint64_t next_word(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  const std::uint64_t word = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
  return word ^ (word >> 29);
}

// FP4 weights with scales 2^-7 to 2^-4.
Result<kernels::WeightMatrix> random_fp4(std::size_t rows, std::size_t columns,
                                         std::uint64_t seed) {
  std::vector<std::byte> values(rows * columns / 2);
  std::vector<std::byte> scales(rows * columns / 32);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= values.size(); at += sizeof seed) {
    const std::uint64_t word = next_word(seed);
    std::memcpy(values.data() + at, &word, sizeof word);
  }
  for (std::byte& scale : scales) scale = static_cast<std::byte>(120 + next_word(seed) % 4);
  return kernels::pack_weights({.format = kernels::WeightFormat::kFp4,
                                .rows = rows,
                                .columns = columns,
                                .values = values,
                                .scales = scales});
}

// bfloat16 values around 1, [tokens, columns].
std::vector<float> random_rows(std::size_t tokens, std::size_t columns) {
  std::vector<float> values(tokens * columns);
  std::uint64_t state = 17;
  for (float& value : values) {
    const auto word = static_cast<double>(next_word(state) >> 11) * 0x1.0p-52 - 1.0;
    value = numerics::to_float(numerics::to_bf16(static_cast<float>(word)));
  }
  return values;
}

kernels::ActivationRows view(const std::vector<float>& values, std::size_t columns) {
  return {.data = values.data(),
          .stride = columns,
          .tokens = values.size() / columns,
          .values = kernels::ActivationValues::kBf16};
}

// Layers of six experts, made by all threads, and the step of one token through each of them.
class ExpertLayers {
 public:
  static Result<ExpertLayers> make(std::size_t layers, WorkerPool& workers) {
    ExpertLayers made;
    made.experts_.resize(layers * kExperts);
    std::vector<Status> statuses(made.experts_.size());
    workers.parallel_for(made.experts_.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) statuses[i] = fill(i, made.experts_[i]);
    });
    for (const Status& status : statuses) LOCKET_TRY_STATUS(status);
    return made;
  }

  std::uint64_t byte_count() const {
    std::uint64_t bytes = 0;
    for (const model::ExpertWeights& expert : experts_) {
      bytes += expert.gate.byte_count() + expert.up.byte_count() + expert.down.byte_count();
    }
    return bytes;
  }

  void run_all(WorkerPool& workers) const {
    constexpr float kLimit = 10.0F;
    model::ForwardContext context = {.workers = workers, .numerics = {}};
    const tensor::FloatMatrix input = model::quantize_activations(context, input_);
    for (std::size_t first = 0; first < experts_.size(); first += kExperts) {
      std::vector<model::ExpertRows> rows;
      std::vector<const model::ExpertRows*> pointers(kExperts);
      for (std::size_t i = 0; i < kExperts; ++i) {
        rows.push_back({.weights = &experts_[first + i], .tokens = {0}, .router_weights = {0.25F}});
      }
      tensor::FloatMatrix gated(model::number_rows(rows), kExpertSize);
      std::ranges::transform(rows, pointers.begin(), [](const auto& row) { return &row; });
      model::gate_experts(context, kLimit, input, pointers, gated);
      tensor::FloatMatrix sum(1, kHidden);
      model::add_expert_outputs(context, rows, gated, kernels::Rounding::kBf16, sum);
    }
  }

 private:
  ExpertLayers() : input_(1, kHidden) {
    std::ranges::copy(random_rows(1, kHidden), input_.row(0).begin());
  }

  static Status fill(std::size_t index, model::ExpertWeights& expert) {
    const std::uint64_t seed = 3 * index;
    LOCKET_TRY(expert.gate, random_fp4(kExpertSize, kHidden, seed));
    LOCKET_TRY(expert.up, random_fp4(kExpertSize, kHidden, seed + 1));
    LOCKET_TRY(expert.down, random_fp4(kHidden, kExpertSize, seed + 2));
    return {};
  }

  std::vector<model::ExpertWeights> experts_;
  tensor::FloatMatrix input_;
};

// Stored index keys and one query, as a token of the release asks.
class IndexSubject {
 public:
  static constexpr std::size_t kHeads = 32;
  static constexpr std::size_t kDim = 128;

  explicit IndexSubject(std::size_t keys)
      : rows_(keys * kRowBytes), scores_(keys), query_(kHeads * kDim), weights_(kHeads, 0.125F) {
    std::uint64_t state = 23;
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      const std::uint64_t word = next_word(state);
      const bool is_scale = at % kRowBytes >= kDim / 2;
      rows_[at] = static_cast<std::byte>(is_scale ? 124 + word % 4 : word % 256);
    }
    // The model's queries are quantized as keys are.
    std::vector<std::byte> row(kRowBytes);
    const std::vector<float> values = random_rows(kHeads, kDim);
    for (std::size_t head = 0; head < kHeads; ++head) {
      const auto from = std::span(values).subspan(head * kDim, kDim);
      kernels::encode_row(kFormat, from, row);
      kernels::decode_row(kFormat, row, std::span(query_).subspan(head * kDim, kDim));
    }
    prepared_ = kernels::prepare_index_query({.heads = kHeads,
                                              .dim = kDim,
                                              .values = query_,
                                              .weights = weights_,
                                              .rounding = kernels::IndexScoreRounding::kF32,
                                              .integers = {}});
  }
  IndexSubject(const IndexSubject&) = delete;
  IndexSubject& operator=(const IndexSubject&) = delete;

  double operations() const { return 2.0 * kHeads * kDim * static_cast<double>(scores_.size()); }

  void scan(WorkerPool& workers) {
    workers.parallel_for(scores_.size(), 1024, [&](std::size_t begin, std::size_t end) {
      const kernels::KeyRun run = {.rows = rows_.data() + begin * kRowBytes, .count = end - begin};
      kernels::index_scan({.format = kFormat,
                           .runs = {&run, 1},
                           .queries = {&prepared_, 1},
                           .scores = scores_.data() + begin,
                           .stride = end - begin});
    });
  }

 private:
  static constexpr kernels::RowFormat kFormat = kernels::RowFormat::kFp4Index;
  static constexpr std::size_t kRowBytes = 68;

  std::vector<std::byte> rows_;
  std::vector<float> scores_;
  std::vector<float> query_;
  std::vector<float> weights_;
  kernels::IndexQuery prepared_;
};

// Seconds that the unit needs at its best for `operations`, beside our own seconds, in turn.
struct PeakComparison {
  std::vector<double> ours;
  std::vector<double> peak;
};

PeakComparison compare_with_peak(const BenchSetup& setup, kernels::PeakUnit unit, double operations,
                                 const BenchSide& ours) {
  const std::size_t rounds = 5 * kernels::peak_rounds_per_millisecond(unit);
  double done = 0;
  auto seconds = run_in_turn(
      setup.runs, {ours, [&] { done = kernels::run_peak(unit, rounds, setup.workers); }});
  for (double& value : seconds[1]) value *= operations / done;
  return {.ours = std::move(seconds[0]), .peak = std::move(seconds[1])};
}

}  // namespace

PlainReader::PlainReader(std::size_t bytes, WorkerPool& workers)
    : region_(bytes / kLine * kLine, MemoryRegion::Pages::kLarge) {
  workers.parallel_for(
      size() / kLine, std::size_t{1} << 15, [&](std::size_t begin, std::size_t end) {
        std::fill(region_.data() + begin * kLine, region_.data() + end * kLine, std::byte{1});
      });
}

void PlainReader::read(std::uint64_t bytes, WorkerPool& workers) {
  std::size_t left = (static_cast<std::size_t>(bytes) + kLine - 1) / kLine * kLine;
  while (left > 0) {
    const std::size_t count = std::min(left, size() - next_);
    static_cast<void>(kernels::read_plainly({region_.data() + next_, count}, workers));
    next_ = next_ + count == size() ? 0 : next_ + count;
    left -= count;
  }
}

Result<BenchRows> bench_experts(const BenchSetup& setup) {
  constexpr std::size_t kLayers = 10;  // more than caches keep
  LOCKET_TRY(ExpertLayers layers, ExpertLayers::make(kLayers, setup.workers));
  const std::uint64_t bytes = layers.byte_count();
  const auto seconds = run_in_turn(setup.runs, {[&] { layers.run_all(setup.workers); },
                                                [&] { setup.plain.read(bytes, setup.workers); }});
  return BenchRows{{.group = "H2",
                    .key = "fp4_matvec_over_read",
                    .what = "FP4 experts, one token: weights over plain read",
                    .bounds = {.sense = BenchSense::kHigher, .floor = 0.80, .goal = 0.92},
                    .trials = ratio_trials(seconds[1], seconds[0], BenchSense::kHigher),
                    .detail = rates_text(static_cast<double>(bytes), seconds[0], seconds[1], "B")}};
}

Result<BenchRows> bench_prefill(const BenchSetup& setup) {
  constexpr std::size_t kRows = 2 * kExpertSize;  // gate and up
  constexpr std::size_t kTokens = 192;
  LOCKET_TRY(const kernels::WeightMatrix weights, random_fp4(kRows, kHidden, 5));
  const std::vector<float> rows = random_rows(kTokens, kHidden);
  std::vector<float> out(kTokens * kRows);
  const double operations = 2.0 * kRows * kHidden * kTokens;
  const BenchSide bf16 = [&] {
    kernels::matmul(weights, view(rows, kHidden), out.data(), kRows, setup.workers);
  };
  BenchRows found;
  if (kernels::has_peak_unit(kernels::PeakUnit::kBf16)) {
    const PeakComparison seconds =
        compare_with_peak(setup, kernels::PeakUnit::kBf16, operations, bf16);
    found.push_back({.group = "H3",
                     .key = "prefill_over_bf16_peak",
                     .what = fmt::format("prefill, FP4 x {} tokens over vdpbf16ps peak", kTokens),
                     .bounds = {.sense = BenchSense::kHigher, .floor = 0.85, .goal = 0.92},
                     .trials = ratio_trials(seconds.peak, seconds.ours, BenchSense::kHigher),
                     .detail = rates_text(operations, seconds.ours, seconds.peak, "flop")});
  }
  kernels::Int8Matrix codes(kTokens, kHidden);
  for (std::size_t t = 0; t < kTokens; ++t) {
    kernels::quantize_int8(std::span(rows).subspan(t * kHidden, kHidden), codes.row(t));
  }
  const auto seconds = run_in_turn(
      setup.runs,
      {[&] { kernels::int8_matmul(weights, codes.rows(), out.data(), kRows, setup.workers); },
       bf16});
  found.push_back({.group = "H3",
                   .key = "prefill_int8_over_bf16",
                   .what = "the same in int8 (mode fast) over bf16",
                   .bounds = {.sense = BenchSense::kHigher, .floor = 1.7, .goal = 1.9},
                   .trials = ratio_trials(seconds[1], seconds[0], BenchSense::kHigher),
                   .detail = rates_text(operations, seconds[0], seconds[1], "op")});
  return found;
}

Result<BenchRows> bench_index(const BenchSetup& setup) {
  constexpr std::size_t kKeys = std::size_t{1} << 20;
  if (!kernels::has_peak_unit(kernels::PeakUnit::kInt8)) {
    return fail(ErrorCode::kUnsupported, "this processor has no int8 products to compare with");
  }
  IndexSubject subject(kKeys);
  const PeakComparison seconds = compare_with_peak(
      setup, kernels::PeakUnit::kInt8, subject.operations(), [&] { subject.scan(setup.workers); });
  const double keys = kKeys / median_of(seconds.ours);
  return BenchRows{
      {.group = "H4",
       .key = "index_scan_over_int8_peak",
       .what = "index scan, 32 heads, over vpdpbusd peak",
       .bounds = {.sense = BenchSense::kHigher, .floor = 0.80, .goal = 0.90},
       .trials = ratio_trials(seconds.peak, seconds.ours, BenchSense::kHigher),
       .detail = fmt::format("{}; {:.1f} Mkeys/s",
                             rates_text(subject.operations(), seconds.ours, seconds.peak, "op"),
                             keys / 1e6)}};
}

}  // namespace locket::cli
