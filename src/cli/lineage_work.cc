#include "cli/lineage_work.h"

#include <algorithm>
#include <string>

#include "checkpoint/config_json.h"
#include "cli/released_configs.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_work.h"

namespace locket::cli {
namespace {

// Every query head with every row: once as key, once as value.
double attend(double layers, double heads, double widths, double rows) {
  return layers * heads * widths * rows;
}

AttentionWork dense_work(double layers, double heads, double widths, double context) {
  return {.attention = attend(layers, heads, widths, context)};
}

// V3.2: the best 2,048 tokens by 64 index heads of 128.
AttentionWork chosen_work(double context) {
  return {.attention = attend(61, 128, 576 + 512, std::min(context, 2048.0)),
          .search = attend(61, 64, 128, context)};
}

// V4: CSA layers choose among rows of 4 tokens, HCA layers see all rows of 128; all see a window.
struct V4Layers {
  double csa = 0;
  double hca = 0;
  double window_only = 0;
  double heads = 0;
  double top = 0;
};

AttentionWork v4_work(const V4Layers& layers, double context) {
  constexpr double kWidths = 512 + 512;
  const double window = std::min(context, 128.0);
  const double fine = context / 4;
  return {
      .attention = attend(layers.csa, layers.heads, kWidths, window + std::min(fine, layers.top)) +
                   attend(layers.hca, layers.heads, kWidths, window + context / 128) +
                   attend(layers.window_only, layers.heads, kWidths, window),
      .search = attend(layers.csa, 64, 128, fine)};
}

// As the program counts it.
std::optional<AttentionWork> v41_work(std::int64_t context) {
  const std::string text(released_configs().back().text);
  const auto file = checkpoint::ConfigFile::parse(text, "the released config");
  if (!file) return std::nullopt;
  const auto config = model::read_v41_config(file->root());
  if (!config) return std::nullopt;
  const std::int64_t segment = std::max<std::int64_t>(0, context - config->sliding_window);
  const model::WorkCount work =
      model::sum_work(model::generated_token_work(*config, context - 1, segment));
  return AttentionWork{.attention = static_cast<double>(work.attention),
                       .search = static_cast<double>(work.index_scores)};
}

}  // namespace

std::optional<AttentionWork> attention_work(std::string_view id, std::int64_t context) {
  const auto tokens = static_cast<double>(context);
  if (id == "v1-67b") return dense_work(95, 64, 128 + 128, tokens);
  if (id == "v1-7b") return dense_work(30, 32, 128 + 128, tokens);
  if (id == "v2") return dense_work(60, 128, 576 + 512, tokens);
  if (id == "v2-lite") return dense_work(27, 16, 576 + 512, tokens);
  if (id == "v3") return dense_work(61, 128, 576 + 512, tokens);
  if (id == "v3.2") return chosen_work(tokens);
  if (id == "v4-flash") {
    return v4_work({.csa = 21, .hca = 20, .window_only = 2, .heads = 64, .top = 512}, tokens);
  }
  if (id == "v4-pro") return v4_work({.csa = 30, .hca = 31, .heads = 128, .top = 1024}, tokens);
  if (id == "v4.1-flash") return v41_work(context);
  return std::nullopt;
}

}  // namespace locket::cli
