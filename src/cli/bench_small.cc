// The parts that run the small model that ships: the same bits whatever the circumstances, and how
// fast it is.
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cli/bench_parts.h"
#include "engine/counter_random.h"
#include "engine/session.h"

namespace locket::cli {
namespace {

using engine::Session;
using engine::SessionOptions;
using engine::TokenId;

constexpr std::size_t kPromptTokens = 600;      // of the first text: more than a slice
constexpr std::size_t kShortPromptTokens = 60;  // of the others, and one more for each
constexpr std::size_t kAnswerTokens = 8;

std::vector<TokenId> random_ids(std::size_t count, std::size_t vocabulary, std::uint64_t seed) {
  std::vector<TokenId> ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double draw = engine::uniform_draw({.seed = seed, .position = i});
    ids[i] = static_cast<TokenId>(draw * static_cast<double>(vocabulary));
  }
  return ids;
}

// Digest of the logits after the prompt and after each token of a given answer.
class LogitsDigest {
 public:
  void add(std::span<const float> logits) { digest_.update(std::as_bytes(logits)); }
  std::string text() { return to_hex(digest_.finish()); }

 private:
  Sha256 digest_;
};

class SameBits {
 public:
  explicit SameBits(engine::Engine& engine) : engine_(engine) {}

  // The digest of text `seed` alone.
  Result<std::string> alone(std::uint64_t seed, WorkerPool& workers,
                            const SessionOptions& options) {
    const auto ids = text(seed);
    const std::size_t prompt_tokens = ids.size() - kAnswerTokens;
    Session session(engine_.model(), engine_.pool(), workers, options);
    LOCKET_TRY_STATUS(session.prefill(std::span(ids).first(prompt_tokens)));
    LogitsDigest digest;
    digest.add(session.logits());
    for (const TokenId id : std::span(ids).subspan(prompt_tokens)) {
      LOCKET_TRY_STATUS(session.append(id));
      digest.add(session.logits());
    }
    hit_tokens_ = session.memory_use().hit_tokens;
    session.end_turn();
    return digest.text();
  }

  // Those of texts 0 to count - 1, run together.
  Result<std::vector<std::string>> together(std::size_t count) {
    std::vector<std::vector<TokenId>> ids;
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back(text(i));
      sessions.push_back(std::make_unique<Session>(engine_.model(), engine_.pool(),
                                                   engine_.workers(), SessionOptions{}));
      pointers.push_back(sessions.back().get());
      LOCKET_TRY_STATUS(
          pointers.back()->begin(std::span(ids.back()).first(ids.back().size() - kAnswerTokens)));
    }
    LOCKET_TRY_STATUS(read_prompts(pointers));
    std::vector<LogitsDigest> digests(count);
    const auto add_all = [&] {
      for (std::size_t i = 0; i < count; ++i) digests[i].add(pointers[i]->logits());
    };
    add_all();
    for (std::size_t token = 0; token < kAnswerTokens; ++token) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t place = ids[i].size() - kAnswerTokens + token;
        LOCKET_TRY_STATUS(pointers[i]->stage_token(ids[i][place]));
      }
      LOCKET_TRY_STATUS(step(pointers));
      add_all();
    }
    std::vector<std::string> texts;
    texts.reserve(count);
    for (LogitsDigest& digest : digests) texts.push_back(digest.text());
    return texts;
  }

  std::size_t hit_tokens() const { return hit_tokens_; }

 private:
  static constexpr std::size_t kSlice = 100;

  // A prompt and its answer.
  std::vector<TokenId> text(std::uint64_t seed) const {
    const std::size_t prompt = seed == 0 ? kPromptTokens : kShortPromptTokens + seed;
    return random_ids(prompt + kAnswerTokens, engine_.vocabulary_size(), seed);
  }

  Status read_prompts(std::span<Session* const> sessions) {
    while (true) {
      std::vector<Session*> reading;
      for (Session* session : sessions) {
        if (!session->is_reading()) continue;
        session->stage_slice(kSlice);
        reading.push_back(session);
      }
      if (reading.empty()) return {};
      LOCKET_TRY_STATUS(step(reading));
    }
  }

  Status step(std::span<Session* const> sessions) {
    model::ForwardContext context = engine_.model().make_context(engine_.workers());
    for (Status& status : engine::run_staged(engine_.model(), context, sessions)) {
      LOCKET_TRY_STATUS(std::move(status));
    }
    return {};
  }

  engine::Engine& engine_;
  std::size_t hit_tokens_ = 0;
};

// Counts the variants, and those that gave other bits.
struct Comparison {
  std::size_t variants = 0;
  std::vector<std::string> different;

  void compare(const std::string& what, const std::string& digest, const std::string& wanted) {
    ++variants;
    if (digest != wanted) different.push_back(what);
  }
};

Result<Comparison> compare_bits(engine::Engine& engine) {
  constexpr std::size_t kMost = 64;
  SameBits bits(engine);
  WorkerPool one(1);
  WorkerPool two(2);
  Comparison comparison;
  std::vector<std::string> wanted;
  for (std::size_t seed = 0; seed < kMost; ++seed) {
    LOCKET_TRY(std::string digest, bits.alone(seed, one, {}));
    wanted.push_back(std::move(digest));
  }
  LOCKET_TRY(const std::string threads, bits.alone(0, two, {}));
  comparison.compare("2 threads", threads, wanted[0]);
  for (const std::size_t slice : {1, 127, 512}) {
    LOCKET_TRY(const std::string digest, bits.alone(0, two, {.slice_tokens = slice}));
    comparison.compare(fmt::format("slices of {}", slice), digest, wanted[0]);
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{8}, kMost}) {
    LOCKET_TRY(const auto digests, bits.together(count));
    for (std::size_t i = 0; i < count; ++i) {
      comparison.compare(fmt::format("text {} of a batch of {}", i, count), digests[i], wanted[i]);
    }
  }
  const SessionOptions remembering = engine.session_options("bench");
  for (const char* what : {"cache, first time", "cache, again"}) {
    LOCKET_TRY(const std::string digest, bits.alone(0, two, remembering));
    comparison.compare(what, digest, wanted[0]);
  }
  if (bits.hit_tokens() == 0) comparison.different.emplace_back("nothing was found in the cache");
  return comparison;
}

}  // namespace

Result<BenchRows> bench_same_bits(const BenchSetup& setup) {
  LOCKET_TRY(const service::LoadedModel loaded,
             service::LoadedModel::open(setup.small_model, {.threads = setup.threads}));
  LOCKET_TRY(const Comparison found, compare_bits(loaded.engine()));
  const double same = found.different.empty() ? 1 : 0;
  return BenchRows{{.group = "H8",
                    .key = "same_bits",
                    .what = "same bits: threads 1/2, batch 1/8/64, slices 1/127/512, cache",
                    .bounds = {.sense = BenchSense::kHigher, .floor = 1, .goal = 1},
                    .trials = {.median = same, .best = same},
                    .detail = found.different.empty()
                                  ? fmt::format("{} variants, small model", found.variants)
                                  : fmt::format("{} differ; {}", found.different.size(),
                                                found.different.front())}};
}

Result<BenchRows> bench_small_model(const BenchSetup& setup) {
  LOCKET_TRY(const service::LoadedModel loaded,
             service::LoadedModel::open(
                 setup.small_model, {.threads = setup.threads,
                                     .memory = {.keeps = engine::MemoryOptions::Keeps::kNothing}}));
  engine::Engine& engine = loaded.engine();
  constexpr std::size_t kTokens = 200;
  Session session = engine.make_session();
  const auto ids = random_ids(kPromptTokens, engine.vocabulary_size(), 0);
  LOCKET_TRY_STATUS(session.prefill(ids));
  std::vector<double> rates;
  std::vector<double> starts;
  for (std::size_t run = 0; run <= setup.runs; ++run) {
    const double begin = monotonic_seconds();
    for (std::size_t i = 0; i < kTokens; ++i) LOCKET_TRY_STATUS(session.append(ids[i]));
    const double decoded = monotonic_seconds();
    LOCKET_TRY(ChildProcess child,
               ChildProcess::start({"run", setup.small_model.string(), "-p", "Hello",
                                    "--max-tokens", "1", "--memory", "off"}));
    LOCKET_TRY(const std::string answer, child.read_line());
    if (run == 0) continue;
    rates.push_back(kTokens / (decoded - begin));
    starts.push_back((monotonic_seconds() - decoded) * 1e3);
  }
  return BenchRows{{.group = "small",
                    .key = "small_model_tokens_per_second",
                    .what = fmt::format("small model: tokens/s, {} threads", setup.threads),
                    .bounds = {.sense = BenchSense::kHigher, .floor = 2000, .goal = 5000},
                    .trials = sum_up_trials(std::move(rates), BenchSense::kHigher),
                    .is_ratio = false},
                   {.group = "small",
                    .key = "small_model_start_ms",
                    .what = "small model: start of the program to the first token, ms",
                    .bounds = {.sense = BenchSense::kLower, .floor = 150, .goal = 80},
                    .trials = sum_up_trials(std::move(starts), BenchSense::kLower),
                    .is_ratio = false}};
}

}  // namespace locket::cli
