#include "cli/lens_guesses.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engine/session.h"

namespace locket::cli {
namespace {

constexpr std::size_t kSliceTokens = 128;
// Rows of logits that are held at a time.
constexpr std::size_t kRowsAtOnce = 32;
// Of a token that a distribution gives no chance at all; keeps sums finite.
constexpr double kLeastProbability = 0x1p-126;

// NaN counts as no chance.
double exponent(float logit, float most) {
  const double power = std::exp(static_cast<double>(logit) - static_cast<double>(most));
  return std::isfinite(power) ? power : 0;
}

// `next`: -1 at the last position.
LayerGuess guess(std::span<const float> logits, engine::TokenId next) {
  LayerGuess guess;
  float most = -std::numeric_limits<float>::infinity();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > most)) continue;
    most = logits[id];
    guess.token = static_cast<engine::TokenId>(id);
  }
  double sum = 0;
  double weighted = 0;
  for (const float logit : logits) {
    const double power = exponent(logit, most);
    sum += power;
    if (power > 0) weighted += power * (static_cast<double>(logit) - static_cast<double>(most));
  }
  if (!(sum > 0)) return guess;
  guess.probability = static_cast<float>(1 / sum);
  guess.entropy_bits = static_cast<float>((std::log(sum) - weighted / sum) / std::log(2.0));
  if (next >= 0) {
    guess.next_probability =
        static_cast<float>(exponent(logits[static_cast<std::size_t>(next)], most) / sum);
  }
  return guess;
}

}  // namespace

LayerScore LensReading::score(std::size_t layer) const {
  LOCKET_CHECK(tokens.size() >= 2);
  const std::size_t count = tokens.size() - 1;
  LayerScore score;
  for (std::size_t position = 0; position < count; ++position) {
    const LayerGuess& own = layers[layer][position];
    score.right += own.token == tokens[position + 1] ? 1 : 0;
    score.as_last += own.token == layers.back()[position].token ? 1 : 0;
    score.entropy_bits += own.entropy_bits;
    score.loss_bits -=
        std::log2(std::max(static_cast<double>(own.next_probability), kLeastProbability));
  }
  const auto positions = static_cast<double>(count);
  score.right /= positions;
  score.as_last /= positions;
  score.entropy_bits /= positions;
  score.loss_bits /= positions;
  return score;
}

LensRecorder::LensRecorder(const model::LanguageModel& model, WorkerPool& workers,
                           std::span<const engine::TokenId> tokens)
    : model_(model), context_(model.make_context(workers)) {
  reading_.generation = model.shape().generation;
  reading_.tokens.assign(tokens.begin(), tokens.end());
  reading_.layers.assign(static_cast<std::size_t>(model.shape().layer_count),
                         std::vector<LayerGuess>(tokens.size()));
}

void LensRecorder::on_floats(const Place& place, std::span<const float> values) {
  const std::size_t rows = place.width == 0 ? 0 : values.size() / place.width;
  if (place.name == "pre" && waiting_.count() > 0) {
    LOCKET_CHECK(rows == waiting_.count());
    waiting_.pre = tensor::FloatMatrix(rows, place.width);
    std::ranges::copy(values, waiting_.pre.values().begin());
  }
  guess_waiting();
  if (place.name != "streams") return;
  waiting_ = {.streams = {rows, place.width}, .pre = {rows, 0}};
  std::ranges::copy(values, waiting_.streams.values().begin());
  waiting_layer_ = static_cast<std::size_t>(place.layer);
  waiting_position_ = static_cast<std::size_t>(place.first_position);
}

void LensRecorder::on_integers(const Place& /*place*/, std::span<const std::int32_t> /*values*/) {
  guess_waiting();
}

void LensRecorder::guess_waiting() {
  const model::ResidualRows rows = std::exchange(waiting_, {});
  std::vector<std::size_t> numbers(std::min(rows.count(), kRowsAtOnce));
  for (std::size_t first = 0; first < rows.count(); first += numbers.size()) {
    numbers.resize(std::min(rows.count() - first, kRowsAtOnce));
    std::iota(numbers.begin(), numbers.end(), first);
    const tensor::FloatMatrix logits = model_.logits(context_, pick_rows(rows, numbers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::size_t position = waiting_position_ + numbers[i];
      const bool has_next = position + 1 < reading_.tokens.size();
      reading_.layers[waiting_layer_][position] =
          guess(logits.row(i), has_next ? reading_.tokens[position + 1] : -1);
    }
  }
}

LensReading LensRecorder::take() {
  guess_waiting();
  return std::move(reading_);
}

Result<LensReading> read_layers(const model::LanguageModel& model, cache::PagePool& pool,
                                WorkerPool& workers, std::span<const engine::TokenId> tokens) {
  if (tokens.size() < 2) {
    return fail(ErrorCode::kBadRequest,
                "a text of at least two tokens is needed: the first ones are read, the next ones "
                "are guessed");
  }
  LensRecorder recorder(model, workers, tokens);
  const engine::SessionOptions options = {
      .replay = engine::ReplayMode::kFull, .slice_tokens = kSliceTokens, .observer = &recorder};
  engine::Session session(model, pool, workers, options);
  LOCKET_TRY_STATUS(session.prefill(tokens));
  return recorder.take();
}

}  // namespace locket::cli
