// The small model that ships: prompt tokens and generated tokens per second, and how long it takes
// from opening its folder to the first token.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "service/loaded_model.h"

namespace locket {
namespace {

constexpr std::size_t kPromptTokens = 1024;

// Ids spread over the vocabulary, the same every time.
std::vector<engine::TokenId> prompt_ids(std::size_t count, std::size_t vocabulary) {
  std::vector<engine::TokenId> ids(count);
  std::uint64_t state = 1;
  for (engine::TokenId& id : ids) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    id = static_cast<engine::TokenId>((state >> 33) % vocabulary);
  }
  return ids;
}

service::LoadedModel load(benchmark::State& state) {
  auto loaded = service::LoadedModel::open(LOCKET_MODELS "/mini",
                                           {.threads = static_cast<std::size_t>(state.range(0))});
  LOCKET_CHECK(loaded.has_value());
  return std::move(*loaded);
}

void read_prompt(benchmark::State& state) {
  const service::LoadedModel loaded = load(state);
  const auto ids = prompt_ids(kPromptTokens, loaded.engine().vocabulary_size());
  for (auto _ : state) {
    engine::Session session = loaded.engine().make_session();
    benchmark::DoNotOptimize(session.prefill(ids));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPromptTokens));
}

void generate(benchmark::State& state) {
  const service::LoadedModel loaded = load(state);
  const auto ids = prompt_ids(kPromptTokens, loaded.engine().vocabulary_size());
  engine::Session session = loaded.engine().make_session();
  benchmark::DoNotOptimize(session.prefill(ids));
  for (auto _ : state) benchmark::DoNotOptimize(session.append(ids.front()));
  state.SetItemsProcessed(state.iterations());
}

void first_token(benchmark::State& state) {
  constexpr std::size_t kShortPrompt = 16;
  for (auto _ : state) {
    const service::LoadedModel loaded = load(state);
    const auto ids = prompt_ids(kShortPrompt, loaded.engine().vocabulary_size());
    engine::Session session = loaded.engine().make_session();
    benchmark::DoNotOptimize(session.prefill(ids));
    benchmark::DoNotOptimize(session.logits().front());
  }
}

BENCHMARK(first_token)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(read_prompt)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(generate)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace locket
