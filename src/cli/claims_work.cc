// Claims about parameters and work, counted from the released configs.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "checkpoint/config_json.h"
#include "cli/claims_list.h"
#include "cli/lineage_work.h"
#include "cli/released_configs.h"
#include "cli/text_table.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_parameters.h"
#include "model/generations/v41_work.h"

namespace locket::cli {
namespace {

using Kind = Claim::Kind;
using model::ModelPart;
using model::V41Config;

constexpr const char* kReport = "V4.1 report, abstract";
constexpr const char* kInspect = "locket inspect CONFIG.JSON";
constexpr std::array<std::int64_t, 3> kContexts = {32768, 131072, 1048576};

std::string billions(double count) { return fmt::format("{:.2f} B", count / 1e9); }

Claim computed(std::string claim, std::string source, std::string found, std::string how) {
  return {.claim = std::move(claim),
          .source = std::move(source),
          .kind = Kind::kComputed,
          .found = std::move(found),
          .how = std::move(how),
          .command = kInspect};
}

// A part of a model's parameters, without the embedding, of which a token reads one row.
struct Used {
  double stored = 0;
  double tables = 0;  // of them, Engram's
  double prompt = 0;
  double generated = 0;
};

Used count_used(const V41Config& config) {
  Used used;
  for (const model::ParameterGroup& group : model::v41_parameters(config)) {
    used.stored += static_cast<double>(group.stored);
    used.prompt += static_cast<double>(group.prompt);
    used.generated += static_cast<double>(group.generated);
    if (group.part == ModelPart::kEngramTables) used.tables += static_cast<double>(group.stored);
  }
  return used;
}

std::vector<Claim> parameter_claims(const V41Config& config) {
  const Used used = count_used(config);
  return {
      computed("V4.1-Flash has 552B parameters and 196B more in Engram tables", kReport,
               fmt::format("{} and {}", billions(used.stored - used.tables), billions(used.tables)),
               "values of every tensor that the config asks for; drafts and vision left out"),
      computed("8B of them work on a token that is read", kReport, billions(used.prompt),
               "encoder and the row writers of the boundary layer, 6 + 1 experts a layer, of the "
               "tables the rows of one token"),
      computed("16B of them work on a token that is written", kReport, billions(used.generated),
               "all layers and the output head"),
      computed("6 of 384 experts and 1 shared one work on a token", "V4.1 report, 2; config.json",
               fmt::format("{} of {} and 1 in each of {} layers: {:.2f} % of the routed weights",
                           config.experts_per_token, config.expert_count, config.layer_count,
                           100.0 * static_cast<double>(config.experts_per_token) /
                               static_cast<double>(config.expert_count)),
               "the released config; that a run takes so many is tested on small models "
               "(model_v41_work_test)")};
}

double work_of(const std::vector<model::WorkOperation>& work) {
  return static_cast<double>(model::sum_work(work).total());
}

Claim prefill_claim(const V41Config& config) {
  constexpr std::int64_t kContext = 32768;
  const double read = work_of(model::prompt_work(config, kContext, config.sliding_window)) /
                      static_cast<double>(kContext);
  const double written =
      work_of(model::generated_token_work(config, kContext - 1, kContext - config.sliding_window));
  return computed("reading costs nearly half of writing", "V4.1 report, 2.2",
                  fmt::format("{:.3f} of the multiply-adds", read / written),
                  "a prompt of 32,768 tokens with its replay, per token, over a token written "
                  "at its end");
}

// Multiply-adds of the search, by whether a layer looks at the candidates only.
struct Search {
  double everywhere = 0;
  double in_pool = 0;
};

Search search_of(const V41Config& config, std::int64_t context) {
  Search search;
  const auto work =
      model::generated_token_work(config, context - 1, context - config.sliding_window);
  for (const model::WorkOperation& operation : work) {
    if (operation.part != ModelPart::kIndexScan) continue;
    const auto layer = static_cast<std::size_t>(operation.layer);
    (config.layers[layer].uses_pool ? search.in_pool : search.everywhere) +=
        static_cast<double>(operation.multiply_adds());
  }
  return search;
}

std::string at_contexts(const std::array<double, 3>& values, double unit) {
  std::array<std::string, 3> texts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    texts[i] = grouped_decimal(std::round(10 * values[i] / unit) / 10);
  }
  return fmt::format("{} / {} / {}", texts[0], texts[1], texts[2]);
}

std::vector<Claim> index_claims(const V41Config& config) {
  std::array<double, 3> pool = {};
  std::array<double, 3> all = {};
  std::array<double, 3> attention = {};
  for (std::size_t i = 0; i < kContexts.size(); ++i) {
    const Search search = search_of(config, kContexts[i]);
    pool[i] = search.in_pool;
    all[i] = search.everywhere + search.in_pool;
    attention[i] = static_cast<double>(
        model::sum_work(model::generated_token_work(config, kContexts[i] - 1,
                                                    kContexts[i] - config.sliding_window))
            .attention);
  }
  return {
      computed(
          "past the candidate pool the later layers' search is flat", "V4.1 report, 2",
          fmt::format("{} million multiply-adds at 32k / 128k / 1M tokens", at_contexts(pool, 1e6)),
          fmt::format("layers that choose among {} x {} candidates", config.pool_blocks,
                      config.pool_block_size)),
      computed("the whole search is not: four layers look at all rows", "follows from the config",
               fmt::format("{} million at 32k / 128k / 1M tokens", at_contexts(all, 1e6)),
               "all index layers; the keys are read at 68 bytes each"),
      computed("attention itself is flat", "V4.1 report, 2",
               fmt::format("{} million at 32k / 128k / 1M tokens", at_contexts(attention, 1e6)),
               fmt::format("{} chosen rows and a window of {}, every layer", config.index_topk,
                           config.sliding_window)),
      {.claim = "so a token costs at 1M of context what it costs at 1k",
       .source = "follows from the reports",
       .kind = Kind::kElsewhere,
       .found = "H4 of locket bench; docs/measurements.md",
       .how = "decode steps of a slice with the release's shapes, 4.3 GB",
       .command = "locket bench --slice DIR --only H4"}};
}

Claim sparse_claim() {
  std::string found;
  for (const std::int64_t context : {4096, 32768, 131072}) {
    const auto dense = attention_work("v3", context);
    const auto sparse = attention_work("v3.2", context);
    found += fmt::format("{}{:.1f}", found.empty() ? "" : " / ", dense->total() / sparse->total());
  }
  const auto short_text = attention_work("v3.2", 32768);
  const auto long_text = attention_work("v3.2", 131072);
  return computed(
      "V3.2 brings attention from O(L^2) to O(L k)", "V3.2 report",
      fmt::format("{} times less than V3 at 4k / 32k / 128k tokens; from 32k to 128k the search "
                  "grows {:.1f}-fold, attention itself {:.1f}-fold",
                  found, long_text->search / short_text->search,
                  long_text->attention / short_text->attention),
      "multiply-adds of a generated token; only attention is linear in all, the search is not");
}

}  // namespace

Result<ClaimGroup> work_claims() {
  LOCKET_TRY(const checkpoint::ConfigFile file,
             checkpoint::ConfigFile::parse(std::string(released_configs().back().text),
                                           "the released config"));
  LOCKET_TRY(const V41Config config, model::read_v41_config(file.root()));
  ClaimGroup group = {.topic = "Parameters and work", .claims = parameter_claims(config)};
  group.claims.push_back(prefill_claim(config));
  for (Claim& claim : index_claims(config)) group.claims.push_back(std::move(claim));
  group.claims.push_back(sparse_claim());
  return group;
}

}  // namespace locket::cli
