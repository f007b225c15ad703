#include "cli/inspect_outline.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_config.h"
#include "cli/measured_memory.h"
#include "cli/mode_choice.h"
#include "cli/model_path.h"
#include "cli/text_table.h"
#include "model/generations/generation.h"

namespace locket::cli {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); }

// Counted where there are weights, else estimated.
Status add_weights(const std::filesystem::path& config, const model::Generation& generation,
                   const checkpoint::ConfigObject& root, ModelSummary& summary) {
  const std::filesystem::path folder = config.parent_path();
  const auto checkpoint = checkpoint::Checkpoint::open(checkpoint::is_gguf_file(config) ? config
                                                       : folder.empty()                 ? "."
                                                                                        : folder);
  if (!checkpoint && checkpoint.error().code != ErrorCode::kNotFound) {
    return tl::make_unexpected(checkpoint.error());
  }
  LOCKET_TRY(summary.weights, generation.count_bytes(root, checkpoint ? &*checkpoint : nullptr));
  summary.weights_from =
      checkpoint ? fmt::format("counted from {} tensors", checkpoint->tensor_count())
                 : std::string("estimated from the config, in the release's number formats");
  return {};
}

std::string head_text(const ModelSummary& summary) {
  const model::ModelShape& shape = summary.outline.shape;
  std::string text =
      fmt::format("DeepSeek model of generation {}, {}\n\n", shape.generation, summary.config_path);
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", name, value);
  };
  line("layers",
       shape.boundary == shape.layer_count
           ? fmt::format("{}, all of them for every token", shape.layer_count)
           : fmt::format("{}, the first {} for every token", shape.layer_count, shape.boundary));
  line("values", shape.stream_count == 1 ? fmt::format("{} per token", number(shape.hidden))
                                         : fmt::format("{} per token in each of {} streams",
                                                       number(shape.hidden), shape.stream_count));
  line("vocabulary", fmt::format("{} ids, texts up to {} tokens", number(shape.vocabulary_size),
                                 number(shape.max_positions)));
  line("window",
       shape.window > 1 ? fmt::format("{} positions", shape.window) : "none: every token is kept");
  line("arithmetic", fmt::format("mode {}", summary.mode));
  return text;
}

std::string memory_text(const ModelSummary& summary) {
  const cache::KvLayout& layout = summary.outline.memory.layout;
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.add_row({"", "layers", "bytes of a row", "tokens per row", "bytes per token"});
  for (const StreamGroup& group : stream_groups(layout)) {
    table.add_row({group.name, number(group.layers), grouped(group.row_bytes),
                   number(group.tokens_per_row), grouped_decimal(group.bytes_per_token())});
  }
  table.add_row({"sum", "", "", "", grouped_decimal(layout.bytes_per_token())});
  const auto pages = static_cast<std::uint64_t>(cache::page_count(summary.context));
  TextTable sizes({Align::kLeft, Align::kRight, Align::kLeft});
  sizes.add_row({"", "bytes", ""});
  sizes.add_row({"a page", grouped(layout.page_bytes()),
                 fmt::format("rows and keys of {} tokens", cache::kTokensPerPage)});
  sizes.add_row({"pages at the context", grouped(pages * layout.page_bytes()),
                 fmt::format("{} pages, {} tokens", grouped(pages), number(summary.context))});
  if (!layout.rings.empty()) {
    sizes.add_row({"rings, per sequence", grouped(layout.ring_bytes()),
                   fmt::format("{} rings", layout.rings.size())});
    sizes.add_row({"a snapshot", grouped(layout.snapshot_bytes()), "the rings that are kept"});
  }
  return "\nMemory: bytes per token (layers x bytes of a row / tokens per row)\n" + table.text(2) +
         "\n" + sizes.text(2);
}

std::string weights_text(const ModelSummary& summary) {
  const model::WeightBytes& weights = summary.weights;
  const std::uint64_t experts = weights.experts * weights.expert;
  const std::uint64_t read = weights.token_dense + weights.token_experts * weights.expert_read;
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.add_row({"", "bytes", ""});
  table.add_row({"all but routed experts", grouped(weights.dense), ""});
  if (weights.experts > 0) {
    table.add_row(
        {"routed experts", grouped(experts),
         fmt::format("{} in {} layers", grouped(weights.experts), weights.expert_layers)});
  }
  table.add_row({"read for a generated token", grouped(read),
                 weights.experts > 0
                     ? fmt::format("with {} routed experts", grouped(weights.token_experts))
                     : std::string()});
  return fmt::format("\nWeights in memory, {}\n", summary.weights_from) + table.text(2) +
         "\n  locket inspect --plan says what would go where on this machine.\n";
}

}  // namespace

Result<std::filesystem::path> inspected_config(const InspectOptions& options) {
  LOCKET_TRY(const std::filesystem::path model, resolve_model(options.model.model));
  std::error_code ignored;
  if (std::filesystem::is_directory(model, ignored)) return model / "config.json";
  return model;
}

Result<std::string> inspected_generation(const InspectOptions& options) {
  LOCKET_TRY(const std::filesystem::path path, inspected_config(options));
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::open_model_config(path));
  LOCKET_TRY(const model::Generation* generation, model::find_generation(file.root()));
  return std::string(generation->name);
}

Result<ModelSummary> summarize_model(const InspectOptions& options) {
  LOCKET_TRY(const std::filesystem::path path, inspected_config(options));
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::open_model_config(path));
  LOCKET_TRY(const model::Generation* generation, model::find_generation(file.root()));
  LOCKET_TRY(const model::NumericsMode mode, choose_mode(options.model, file.root()));
  ModelSummary summary;
  summary.config_path = path.string();
  summary.mode = numerics_mode_name(mode);
  LOCKET_TRY(summary.outline, generation->outline(file.root(), mode));
  LOCKET_TRY_STATUS(add_weights(path, *generation, file.root(), summary));
  summary.context = std::min(options.context, summary.outline.shape.max_positions);
  return summary;
}

std::string summary_text(const ModelSummary& summary) {
  return head_text(summary) + memory_text(summary) + weights_text(summary);
}

std::string summary_json(const ModelSummary& summary) {
  const model::ModelShape& shape = summary.outline.shape;
  const cache::KvLayout& layout = summary.outline.memory.layout;
  Json streams = Json::array();
  for (const StreamGroup& group : stream_groups(layout)) {
    streams.push_back({{"name", group.name},
                       {"layers", group.layers},
                       {"row_bytes", group.row_bytes},
                       {"tokens_per_row", group.tokens_per_row},
                       {"bytes_per_token", group.bytes_per_token()}});
  }
  const model::WeightBytes& weights = summary.weights;
  const Json out = {{"config", summary.config_path},
                    {"generation", shape.generation},
                    {"mode", summary.mode},
                    {"layers", shape.layer_count},
                    {"boundary", shape.boundary},
                    {"hidden", shape.hidden},
                    {"residual_streams", shape.stream_count},
                    {"vocabulary", shape.vocabulary_size},
                    {"max_positions", shape.max_positions},
                    {"window", shape.window},
                    {"context", summary.context},
                    {"memory",
                     {{"streams", std::move(streams)},
                      {"bytes_per_token", layout.bytes_per_token()},
                      {"tokens_per_page", cache::kTokensPerPage},
                      {"page_bytes", layout.page_bytes()},
                      {"ring_bytes", layout.ring_bytes()},
                      {"snapshot_bytes", layout.snapshot_bytes()}}},
                    {"weights",
                     {{"is_estimate", weights.is_estimate},
                      {"dense_bytes", weights.dense},
                      {"routed_experts", weights.experts},
                      {"routed_expert_bytes", weights.experts * weights.expert},
                      {"read_per_generated_token",
                       weights.token_dense + weights.token_experts * weights.expert_read}}}};
  return out.dump(2) + "\n";
}

}  // namespace locket::cli
