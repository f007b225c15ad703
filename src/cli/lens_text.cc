#include "cli/lens_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/lens_page.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLayers = 6;
constexpr std::size_t kReadWidth = 11;
constexpr std::size_t kGuessWidth = 7;

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The first `width` characters, filled up with blanks.
std::string padded(std::string_view text, std::size_t width) {
  std::size_t characters = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    if (!continues_character(text[bytes]) && characters++ == width) break;
    bytes += 1;
  }
  characters = std::min(characters, width);
  return std::string(text.substr(0, bytes)) + std::string(width - characters, ' ');
}

std::vector<std::size_t> shown_layers(std::size_t count) {
  const std::size_t shown = std::min(count, kMostLayers);
  std::vector<std::size_t> layers;
  for (std::size_t i = 0; i < shown; ++i) {
    layers.push_back(shown < 2 ? 0 : i * (count - 1) / (shown - 1));
  }
  return layers;
}

int percent(double share) { return static_cast<int>(std::lround(100 * share)); }

std::string guess_cell(const LensReading& reading, const tokenizer::Tokenizer& tokenizer,
                       std::size_t layer, std::size_t position) {
  const LayerGuess& guess = reading.layers[layer][position];
  const bool is_right =
      position + 1 < reading.positions() && guess.token == reading.tokens[position + 1];
  return fmt::format(" {}{}{:>4}", is_right ? '=' : ' ',
                     padded(visible_token(tokenizer, guess.token), kGuessWidth),
                     percent(guess.probability));
}

}  // namespace

std::string lens_scores(const LensReading& reading) {
  TextTable table({Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.add_row({"layer", "next token right", "surprise, bits", "doubt, bits", "as the last"});
  for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
    const LayerScore score = reading.score(layer);
    table.add_row({fmt::format("{}", layer), fmt::format("{:.1f} %", 100 * score.right),
                   fmt::format("{:.2f}", score.loss_bits),
                   fmt::format("{:.2f}", score.entropy_bits),
                   fmt::format("{:.1f} %", 100 * score.as_last)});
  }
  return table.text(2) +
         "\n  surprise: what the true next token costs at the layer's probabilities; doubt: the\n"
         "  entropy of its guess; as the last: positions where it says what the last layer says\n";
}

std::string lens_guesses(const LensReading& reading, const tokenizer::Tokenizer& tokenizer,
                         std::size_t most_rows) {
  const std::vector<std::size_t> layers = shown_layers(reading.layers.size());
  std::string text = fmt::format("  {:>6}  {}", "token", padded("read", kReadWidth));
  for (const std::size_t layer : layers) {
    text += " " + padded(fmt::format(" layer {}", layer), kGuessWidth + 5);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  const std::size_t count = reading.positions();
  for (std::size_t at = count - std::min(count, most_rows); at < count; ++at) {
    text += fmt::format("  {:>6}  {}", at,
                        padded(visible_token(tokenizer, reading.tokens[at]), kReadWidth));
    for (const std::size_t layer : layers) text += guess_cell(reading, tokenizer, layer, at);
    text += "\n";
  }
  return text + "\n  a guess with its probability in %; = before it: that is what comes next\n";
}

std::string lens_json(const LensReading& reading, const tokenizer::Tokenizer& tokenizer) {
  Json tokens = Json::array();
  for (const engine::TokenId id : reading.tokens) {
    tokens.push_back({{"id", id}, {"text", visible_token(tokenizer, id)}});
  }
  Json layers = Json::array();
  for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
    const LayerScore score = reading.score(layer);
    Json guesses = Json::array();
    for (const LayerGuess& guess : reading.layers[layer]) {
      guesses.push_back({{"id", guess.token},
                         {"probability", guess.probability},
                         {"next_probability", guess.next_probability},
                         {"entropy_bits", guess.entropy_bits}});
    }
    layers.push_back({{"layer", layer},
                      {"next_right", score.right},
                      {"loss_bits", score.loss_bits},
                      {"entropy_bits", score.entropy_bits},
                      {"as_last", score.as_last},
                      {"guesses", std::move(guesses)}});
  }
  const Json out = {{"generation", reading.generation},
                    {"tokens", std::move(tokens)},
                    {"layers", std::move(layers)}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace locket::cli
