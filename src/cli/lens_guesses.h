// What a model would say after each of its layers: the residual rows that a layer leaves go through
// the last norm and the output head, as if no layer came after it (streams collapsed as they are at
// the end). The decoder runs over every token, so that all layers see all positions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "engine/sampler.h"
#include "model/forward_context.h"
#include "model/language_model.h"

namespace locket::cli {

// The next token, guessed at one position after one layer.
struct LayerGuess {
  engine::TokenId token = 0;   // the likeliest; the lower id of equals
  float probability = 0;       // its own
  float next_probability = 0;  // of the token that does come next; 0 at the last position
  float entropy_bits = 0;      // of the whole distribution
};

// The guesses of one layer, summed up over all positions but the last, which has no next token.
struct LayerScore {
  double right = 0;         // share of positions where the likeliest token comes next
  double loss_bits = 0;     // mean of -log2 of the next token's probability
  double entropy_bits = 0;  // mean
  double as_last = 0;       // share of positions with the guess of the last layer
};

struct LensReading {
  std::string generation;                       // "V4.1"
  std::vector<engine::TokenId> tokens;          // the text
  std::vector<std::vector<LayerGuess>> layers;  // [layers][positions]

  std::size_t positions() const { return tokens.size(); }
  // REQUIRES: at least two positions.
  LayerScore score(std::size_t layer) const;
};

// Watches a forward pass and keeps the guesses; it runs the model's head in between. Only for
// forward passes of `model` with these workers. Both, and the tokens, must outlive it.
class LensRecorder : public model::ForwardObserver {
 public:
  LensRecorder(const model::LanguageModel& model, WorkerPool& workers,
               std::span<const engine::TokenId> tokens);

  void on_floats(const Place& place, std::span<const float> values) override;
  void on_integers(const Place& place, std::span<const std::int32_t> values) override;

  // When the forward pass is over.
  LensReading take();

 private:
  // The rows that wait go through the head.
  void guess_waiting();

  const model::LanguageModel& model_;
  model::ForwardContext context_;
  LensReading reading_;
  // Rows of a layer, until it is known whether it has weights to collapse them with.
  model::ResidualRows waiting_;
  std::size_t waiting_layer_ = 0;
  std::size_t waiting_position_ = 0;
};

// Reads `tokens`, at least two, into pages of `pool`; nothing of it is remembered. Errors of
// Session.
[[nodiscard]] Result<LensReading> read_layers(const model::LanguageModel& model,
                                              cache::PagePool& pool, WorkerPool& workers,
                                              std::span<const engine::TokenId> tokens);

}  // namespace locket::cli
