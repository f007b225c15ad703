// The parts that run whole steps of the slice: decoding, long context, verification of drafts.
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "base/check.h"
#include "cli/bench_parts.h"
#include "cli/bench_step.h"
#include "cli/v41_only.h"

namespace locket::cli {
namespace {

constexpr std::int64_t kShortContext = 1'024;
constexpr std::int64_t kLongContext = std::int64_t{1} << 20;
constexpr double kReleaseWeightBytes = 13.04e9;  // a decoded token's, see decode_weight_bytes()
// Index keys that a token of the release looks at, per token of context (and the four scans of the
// candidate pool): three sources of two tokens a row, one of every token.
constexpr double kReleaseKeysPerToken = 2.5;
constexpr double kReleasePoolScans = 4;

std::string milliseconds(const std::vector<double>& seconds) {
  return fmt::format("{:.1f} ms", median_of(seconds) * 1e3);
}

// Keys that a token at the end of `tokens` tokens looks at.
double keys_scanned(const model::V41Config& config, double tokens) {
  const double pool = static_cast<double>(config.pool_blocks * config.pool_block_size);
  double keys = 0;
  for (const model::LayerRole& role : config.layers) {
    if (!role.selects_rows) continue;
    const double rows = tokens / static_cast<double>(role.ratio);
    keys += role.uses_pool ? std::min(rows, pool) : rows;
  }
  return keys;
}

double release_keys_scanned(double tokens) {
  constexpr double kPool = 16'384;
  return kReleaseKeysPerToken * tokens + kReleasePoolScans * std::min(tokens, kPool);
}

}  // namespace

Result<BenchRows> bench_decode(const BenchSetup& setup) {
  LOCKET_CHECK(setup.slice != nullptr);
  engine::Engine& engine = setup.slice->engine();
  LOCKET_TRY(const auto steps, DecodeSteps::make(engine, {.context = kShortContext}));
  LOCKET_TRY(const model::V41Model* model, v41_only(engine.model(), "--slice"));
  const std::uint64_t bytes = decode_weight_bytes(engine.checkpoint(), model->config());
  const auto seconds = run_in_turn(
      setup.runs, {[&] { steps->run(); }, [&] { setup.plain.read(bytes, engine.workers()); }});
  LOCKET_TRY_STATUS(steps->status());
  const auto amount = static_cast<double>(bytes);
  return BenchRows{
      {.group = "H1",
       .key = "decode_over_read",
       .what = "decode: useful bytes over plain read",
       .bounds = {.sense = BenchSense::kHigher, .floor = 0.75, .goal = 0.90},
       .trials = ratio_trials(seconds[1], seconds[0], BenchSense::kHigher),
       .detail = fmt::format("{}; {} a token", rates_text(amount, seconds[0], seconds[1], "B"),
                             milliseconds(seconds[0]))}};
}

Result<BenchRows> bench_context(const BenchSetup& setup) {
  LOCKET_CHECK(setup.slice != nullptr);
  engine::Engine& engine = setup.slice->engine();
  LOCKET_TRY(const auto near, DecodeSteps::make(engine, {.context = kShortContext}));
  LOCKET_TRY(const auto far, DecodeSteps::make(engine, {.context = kLongContext}));
  const auto seconds = run_in_turn(setup.runs, {[&] { far->run(); }, [&] { near->run(); }});
  LOCKET_TRY_STATUS(near->status());
  LOCKET_TRY_STATUS(far->status());
  // The slice looks at more keys for each byte of weights than the release does: what the context
  // adds is weighed as it is there.
  LOCKET_TRY(const model::V41Model* model, v41_only(engine.model(), "--slice"));
  const model::V41Config& config = model->config();
  const double bytes = static_cast<double>(decode_weight_bytes(engine.checkpoint(), config));
  const auto tokens = static_cast<double>(kLongContext);
  const double share =
      release_keys_scanned(tokens) / keys_scanned(config, tokens) * bytes / kReleaseWeightBytes;
  std::vector<double> weighed;
  for (std::size_t i = 0; i < setup.runs; ++i) {
    weighed.push_back(1 + (seconds[0][i] - seconds[1][i]) * share / seconds[1][i]);
  }
  const std::string detail =
      fmt::format("{} and {}", milliseconds(seconds[0]), milliseconds(seconds[1]));
  return BenchRows{
      {.group = "H4",
       .key = "context_1m_over_1k",
       .what = "ms/token at 1M over 1k, keys per weight as in the release",
       .bounds = {.sense = BenchSense::kLower, .floor = 1.25, .goal = 1.12},
       .trials = sum_up_trials(std::move(weighed), BenchSense::kLower),
       .detail = detail},
      {.group = "H4",
       .key = "context_1m_over_1k_slice",
       .what = fmt::format("the same as the slice has it, {:.1f} times the keys", 1 / share),
       .bounds = {.sense = BenchSense::kLower},
       .trials = ratio_trials(seconds[0], seconds[1], BenchSense::kLower),
       .detail = detail}};
}

Result<BenchRows> bench_verify(const BenchSetup& setup) {
  LOCKET_CHECK(setup.slice != nullptr);
  engine::Engine& engine = setup.slice->engine();
  LOCKET_TRY(const auto one, DecodeSteps::make(engine, {.context = kShortContext}));
  LOCKET_TRY(const auto six, DecodeSteps::make(engine, {.context = kShortContext, .sequences = 6}));
  const auto seconds = run_in_turn(setup.runs, {[&] { six->run(); }, [&] { one->run(); }});
  LOCKET_TRY_STATUS(one->status());
  LOCKET_TRY_STATUS(six->status());
  return BenchRows{
      {.group = "H7",
       .key = "verify_6_over_1",
       .what = "verifying 6 rows over 1, the same experts",
       .bounds = {.sense = BenchSense::kLower, .floor = 1.6, .goal = 1.4},
       .trials = ratio_trials(seconds[0], seconds[1], BenchSense::kLower),
       .detail = fmt::format("{} and {}", milliseconds(seconds[0]), milliseconds(seconds[1]))}};
}

}  // namespace locket::cli
