#include "cli/inspect_facts.h"

#include <algorithm>
#include <fmt/format.h>

#include "checkpoint/config_json.h"
#include "cli/inspect_outline.h"
#include "cli/mode_choice.h"
#include "model/generations/v41_work.h"
#include "model/numerics_mode.h"

namespace locket::cli {
namespace {

// Sums over whole prompts are exact up to here (v41_work.h).
constexpr std::int64_t kMostCountedTokens = std::int64_t{1} << 24;

bool is_same_role(const model::LayerRole& a, const model::LayerRole& b) {
  // A layer that does something of its own stands alone.
  const auto is_plain = [](const model::LayerRole& role) {
    return !role.writes_rows && !role.selects_rows && role.engram_index < 0;
  };
  return is_plain(a) && is_plain(b) && a.ratio == b.ratio && a.kv_source == b.kv_source &&
         a.index_source == b.index_source;
}

std::vector<LayerRun> group_layers(const model::V41Config& config) {
  std::vector<LayerRun> runs;
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    const model::LayerRole& role = config.layers[static_cast<std::size_t>(layer)];
    const bool continues =
        !runs.empty() && is_same_role(runs.back().role, role) && layer != config.boundary;
    if (continues) {
      runs.back().last = layer;
    } else {
      runs.push_back({.first = layer, .last = layer, .role = role});
    }
  }
  return runs;
}

// Every part of the model, in the order of ModelPart.
class PartTable {
 public:
  PartTable() : parts_(static_cast<std::size_t>(model::ModelPart::kCount)) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].part = static_cast<model::ModelPart>(i);
    }
  }

  PartFacts& at(model::ModelPart part) { return parts_[static_cast<std::size_t>(part)]; }

  void add_work(const std::vector<model::WorkOperation>& work, std::uint64_t PartFacts::*field) {
    for (const auto& operation : work) at(operation.part).*field += operation.multiply_adds();
  }

  // Parts that the model does not have are left out.
  std::vector<PartFacts> take() {
    std::erase_if(parts_, [](const PartFacts& part) {
      return part.parameters == 0 && part.generated_work == 0;
    });
    return std::move(parts_);
  }

 private:
  std::vector<PartFacts> parts_;
};

void count_parts(ModelFacts& facts) {
  const model::V41Config& config = facts.config;
  PartTable table;
  for (const model::ParameterGroup& group : model::v41_parameters(config)) {
    PartFacts& part = table.at(group.part);
    part.parameters += group.stored;
    part.prompt_parameters += group.prompt;
    part.generated_parameters += group.generated;
  }
  const std::int64_t position = facts.context - 1;
  // By then the windows of the decoder are full.
  const std::int64_t segment = std::max<std::int64_t>(0, facts.context - config.sliding_window);
  const auto prompt = model::encoder_work(config, {.first = position, .count = 1});
  const auto generated = model::generated_token_work(config, position, segment);
  table.add_work(prompt, &PartFacts::prompt_work);
  table.add_work(generated, &PartFacts::generated_work);
  facts.prompt_token_work = model::sum_work(prompt);
  facts.generated_token_work = model::sum_work(generated);
  facts.prompt_work = model::sum_work(model::prompt_work(config, facts.context, facts.replayed));
  facts.parts = table.take();
  for (const PartFacts& part : facts.parts) {
    facts.sum.parameters += part.parameters;
    facts.sum.prompt_parameters += part.prompt_parameters;
    facts.sum.generated_parameters += part.generated_parameters;
    facts.sum.prompt_work += part.prompt_work;
    facts.sum.generated_work += part.generated_work;
  }
}

}  // namespace

double ModelFacts::prompt_average_work() const {
  return static_cast<double>(prompt_work.total()) / static_cast<double>(context);
}

std::uint64_t ModelFacts::snapshot_bytes() const {
  std::uint64_t bytes = 0;
  for (const cache::RingStream& ring : memory.layout.rings) {
    if (ring.layer < config.boundary) bytes += ring.bytes();
  }
  return bytes;
}

Result<ModelFacts> read_model_facts(const InspectOptions& options) {
  const auto replay = engine::find_replay_mode(options.model.replay);
  if (!replay) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("replay \"{}\" is not known", options.model.replay));
  }
  LOCKET_TRY(const std::filesystem::path path, inspected_config(options));
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::ConfigFile::open(path));
  ModelFacts facts;
  facts.config_path = path.string();
  LOCKET_TRY(facts.mode, choose_mode(options.model, file.root()));
  facts.replay = *replay;
  LOCKET_TRY(facts.config, model::read_v41_config(file.root()));
  facts.unknown_keys = file.root().unread_keys();
  facts.memory = model::make_v41_memory(facts.config, facts.mode);
  facts.layer_runs = group_layers(facts.config);
  facts.context = std::min({options.context, facts.config.max_positions, kMostCountedTokens});
  facts.replayed =
      engine::replay_length(*replay, facts.context,
                            {.window = facts.config.sliding_window,
                             .decoder_layers = facts.config.layer_count - facts.config.boundary});
  count_parts(facts);
  return facts;
}

}  // namespace locket::cli
