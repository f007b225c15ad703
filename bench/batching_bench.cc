// Tokens a second at 1, 4, 16 and 64 streams in one process: what it brings that a step reads every
// weight once for all of them. The same run measures all counts in turn, several times, because
// machines are uneven; beside others' load tokens per second of processor time say more. Every
// token is compared with what its stream says alone.
//
//   build/release/bench/batching_bench [--threads N] [--rounds N] [--steps N]
//
// Exit code 1 if a token differs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "engine/scheduler.h"
#include "measure.h"
#include "service/loaded_model.h"

namespace locket {
namespace {

constexpr std::array<std::size_t, 4> kStreams = {1, 4, 16, 64};
constexpr std::size_t kShortestPrompt = 24;

struct Options {
  std::size_t threads = 2;
  std::size_t rounds = 7;
  std::size_t steps = 64;
};

// True if all arguments are understood.
bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.starts_with("--benchmark_min_time")) {
      options.rounds = 1;
      options.steps = 4;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string_view value = argv[++i];
    if (name == "--threads" && read_count(value, options.threads)) continue;
    if (name == "--rounds" && read_count(value, options.rounds)) continue;
    if (name == "--steps" && read_count(value, options.steps)) continue;
    return false;
  }
  return true;
}

class Listener : public engine::GenerationClient {
 public:
  Verdict on_token(const engine::GeneratedToken& token) override {
    tokens_.push_back(token.token);
    return Verdict::kGoOn;
  }
  void on_end(const engine::GenerationEnd& end) override {
    LOCKET_CHECK(end.reason != engine::EndReason::kFailed);
  }
  const std::vector<engine::TokenId>& tokens() const { return tokens_; }

 private:
  std::vector<engine::TokenId> tokens_;
};

// Streams differ in their prompts and lengths; every second one is greedy.
engine::GenerationRequest request_of(std::size_t stream, std::size_t vocabulary) {
  engine::GenerationRequest request;
  request.prompt.resize(kShortestPrompt + stream % 40);
  std::uint64_t state = stream + 1;
  for (engine::TokenId& id : request.prompt) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    id = static_cast<engine::TokenId>((state >> 33) % vocabulary);
  }
  request.sampling.temperature = stream % 2 == 0 ? 0.0F : 1.0F;
  request.seed = stream;
  request.max_tokens = 1'000'000;
  return request;
}

// The first `count` streams together: seconds of `steps` steps in which all of them generate.
struct Measured {
  double seconds = 0;
  double processor_seconds = 0;  // of all threads
  std::vector<std::vector<engine::TokenId>> tokens;
};

Measured measure(engine::Engine& engine, std::size_t count, std::size_t steps) {
  engine::Scheduler scheduler(engine, {.max_running = count});
  std::vector<std::shared_ptr<Listener>> listeners;
  for (std::size_t stream = 0; stream < count; ++stream) {
    listeners.push_back(std::make_shared<Listener>());
    scheduler.add(request_of(stream, engine.vocabulary_size()), listeners.back());
  }
  const auto speaks = [](const auto& listener) { return !listener->tokens().empty(); };
  while (!std::ranges::all_of(listeners, speaks)) LOCKET_CHECK(scheduler.step());
  const std::uint64_t before = scheduler.counts().generated_tokens;
  const double start = monotonic_seconds();
  const std::clock_t used = std::clock();
  for (std::size_t step = 0; step < steps; ++step) LOCKET_CHECK(scheduler.step());
  Measured measured = {
      .seconds = monotonic_seconds() - start,
      .processor_seconds = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC,
      .tokens = {}};
  LOCKET_CHECK(scheduler.counts().generated_tokens - before == count * steps);
  for (const auto& listener : listeners) measured.tokens.push_back(listener->tokens());
  return measured;
}

// What every stream says alone, long enough for all rounds.
std::vector<std::vector<engine::TokenId>> speak_alone(engine::Engine& engine, std::size_t tokens) {
  std::vector<std::vector<engine::TokenId>> alone;
  for (std::size_t stream = 0; stream < kStreams.back(); ++stream) {
    engine::Scheduler scheduler(engine, {.max_running = 1});
    const auto listener = std::make_shared<Listener>();
    scheduler.add(request_of(stream, engine.vocabulary_size()), listener);
    while (listener->tokens().size() < tokens) LOCKET_CHECK(scheduler.step());
    alone.push_back(listener->tokens());
  }
  return alone;
}

std::size_t count_differences(const Measured& measured,
                              const std::vector<std::vector<engine::TokenId>>& alone) {
  std::size_t differences = 0;
  for (std::size_t stream = 0; stream < measured.tokens.size(); ++stream) {
    const auto& together = measured.tokens[stream];
    LOCKET_CHECK(together.size() <= alone[stream].size());
    if (!std::equal(together.begin(), together.end(), alone[stream].begin())) ++differences;
  }
  return differences;
}

using Rates = std::array<std::vector<double>, kStreams.size()>;

void print_rates(const Rates& rates, const Rates& processor_rates) {
  std::string figures;
  fmt::print("streams   tokens/s (least to most)   x one stream   per processor second   x one\n");
  for (std::size_t i = 0; i < kStreams.size(); ++i) {
    const auto [least, most] = std::ranges::minmax(rates[i]);
    const double rate = median(rates[i]);
    const double gain = rate / median(rates.front());
    const double processor_rate = median(processor_rates[i]);
    const double processor_gain = processor_rate / median(processor_rates.front());
    fmt::print("{:>7}   {:>8.0f} ({:.0f} to {:.0f}) {:>10.2f} {:>20.0f} {:>12.2f}\n", kStreams[i],
               rate, least, most, gain, processor_rate, processor_gain);
    figures +=
        fmt::format("{}{} streams {:.0f} ({:.2f}x), {:.0f} per processor second ({:.2f}x)",
                    i == 0 ? "" : "; ", kStreams[i], rate, gain, processor_rate, processor_gain);
  }
  fmt::print("[figures] tokens/s generated in one process: {}\n", figures);
}

int run(const Options& options) {
  const auto loaded = service::LoadedModel::open(
      LOCKET_MODELS "/mini",
      {.threads = options.threads, .memory = {.keeps = engine::MemoryOptions::Keeps::kNothing}});
  LOCKET_CHECK(loaded.has_value());
  engine::Engine& engine = loaded->engine();
  // While the last prompt is read the first streams speak already: at most a step for each.
  const auto alone = speak_alone(engine, options.steps + kStreams.back() + 8);
  Rates rates;
  Rates processor_rates;
  std::size_t differences = 0;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < kStreams.size(); ++i) {
      const Measured measured = measure(engine, kStreams[i], options.steps);
      const auto tokens = static_cast<double>(kStreams[i] * options.steps);
      rates[i].push_back(tokens / measured.seconds);
      processor_rates[i].push_back(tokens / measured.processor_seconds);
      differences += count_differences(measured, alone);
    }
  }
  print_rates(rates, processor_rates);
  fmt::print("{} answers differ from those of lone runs\n", differences);
  return differences == 0 ? 0 : 1;
}

}  // namespace
}  // namespace locket

int main(int argc, char** argv) {
  locket::Options options;
  if (!locket::read_options(argc, argv, options)) {
    fmt::print(stderr, "usage: batching_bench [--threads N] [--rounds N] [--steps N]\n");
    return 2;
  }
  return locket::run(options);
}
