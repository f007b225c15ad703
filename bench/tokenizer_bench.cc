// Text to ids. "long_piece" is one piece for the merges (letters without a break), "schema" a
// minified JSON schema of the same length, "prose" ordinary text; each in bytes per second.
// Argument of a benchmark: bytes of text. With the generated test data there, V4.1's tokenizer is
// used, else the small model's.
#include <benchmark/benchmark.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace locket::tokenizer {
namespace {

std::filesystem::path tokenizer_path() {
  const std::filesystem::path models(LOCKET_MODELS);
  const auto released = models.parent_path() / "build" / "test_data" / "tokenizer_v41.json";
  return std::filesystem::exists(released) ? released : models / "mini" / "tokenizer.json";
}

const Tokenizer* shared_tokenizer() {
  static const Result<Tokenizer> tokenizer = Tokenizer::load(tokenizer_path());
  return tokenizer ? &*tokenizer : nullptr;
}

std::string repeated(std::string_view unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  text.resize(bytes);
  return text;
}

std::string schema(std::size_t bytes) {
  std::string text;
  for (int tool = 0; text.size() < bytes; ++tool) {
    text +=
        "{\"name\":\"tool_" + std::to_string(tool) +
        "\",\"parameters\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}},";
  }
  text.resize(bytes);
  return text;
}

void encode(benchmark::State& state, const std::string& text) {
  const Tokenizer* tokenizer = shared_tokenizer();
  if (tokenizer == nullptr) {
    state.SkipWithError("no tokenizer.json");
    return;
  }
  std::size_t ids = 0;
  for (auto _ : state) {
    ids = tokenizer->encode_text(text).size();
    benchmark::DoNotOptimize(ids);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.counters["ids"] = static_cast<double>(ids);
}

void encode_long_piece(benchmark::State& state) {
  encode(state, repeated("antidisestablishmentarianism", static_cast<std::size_t>(state.range(0))));
}
BENCHMARK(encode_long_piece)
    ->Arg(12'000)
    ->Arg(120'000)
    ->Arg(1'200'000)
    ->Unit(benchmark::kMillisecond);

void encode_schema(benchmark::State& state) {
  encode(state, schema(static_cast<std::size_t>(state.range(0))));
}
BENCHMARK(encode_schema)->Arg(12'000)->Unit(benchmark::kMillisecond);

void encode_prose(benchmark::State& state) {
  encode(state, repeated("The ferry left at nine, and 1,234 people waved; nobody said why.\n",
                         static_cast<std::size_t>(state.range(0))));
}
BENCHMARK(encode_prose)->Arg(400'000)->Unit(benchmark::kMillisecond);

void encode_chinese(benchmark::State& state) {
  encode(state, repeated("渡轮九点离开，没有人挥手。",
                         static_cast<std::size_t>(state.range(0) / 39 * 39)));
}
BENCHMARK(encode_chinese)->Arg(400'000)->Unit(benchmark::kMillisecond);

void load_file(benchmark::State& state) {
  const std::filesystem::path path = tokenizer_path();
  for (auto _ : state) {
    const Result<Tokenizer> tokenizer = Tokenizer::load(path);
    if (!tokenizer) state.SkipWithError(tokenizer.error().message.c_str());
  }
}
BENCHMARK(load_file)->Unit(benchmark::kMillisecond);

void make_token_map(benchmark::State& state) {
  const Tokenizer* tokenizer = shared_tokenizer();
  if (tokenizer == nullptr) {
    state.SkipWithError("no tokenizer.json");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(make_engram_token_map(*tokenizer));
}
BENCHMARK(make_token_map)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace locket::tokenizer
