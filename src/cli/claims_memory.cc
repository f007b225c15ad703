// Claims about bytes.
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "base/check.h"
#include "cli/claims_list.h"
#include "cli/memory_ratios.h"
#include "cli/text_table.h"
#include "model/generations/lineage_bytes.h"

namespace locket::cli {
namespace {

using Kind = Claim::Kind;

constexpr double kMillion = 1048576.0;  // tokens of "1M"
constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;

const model::LineageModel& lineage_model(const std::vector<model::LineageModel>& models,
                                         std::string_view id) {
  for (const model::LineageModel& model : models) {
    if (model.id == id) return model;
  }
  LOCKET_CHECK(false);
}

std::int64_t dimension(const model::LineageModel& model, std::string_view name) {
  for (const model::LineageDimension& known : model.geometry) {
    if (known.name == name) return known.value;
  }
  LOCKET_CHECK(false);
}

Claim ratio_claim(const MemoryRatio& ratio) {
  Claim claim = {.claim = ratio.claim,
                 .source = ratio.source,
                 .kind = Kind::kNotHere,
                 .found = "it does not follow from row formats, and --quick measures nothing",
                 .how = {},
                 .command = "locket memory"};
  if (ratio.measured) {
    claim.kind = Kind::kMeasured;
    claim.found = ratio.text(*ratio.measured);
    if (ratio.computed) {
      claim.found +=
          fmt::format("; by the layout {} ({})", ratio.text(*ratio.computed), ratio.layout);
    }
    claim.how = "random rows of the released shapes in a live cache and a store";
    if (!ratio.reason.empty()) claim.how += "; the difference: " + ratio.reason;
  } else if (ratio.computed) {
    claim.kind = Kind::kComputed;
    claim.found = ratio.text(*ratio.computed);
    claim.how = fmt::format("by the layout: {}", ratio.layout);
  }
  return claim;
}

Claim computed(std::string claim, std::string source, std::string found, std::string how) {
  return {.claim = std::move(claim),
          .source = std::move(source),
          .kind = Kind::kComputed,
          .found = std::move(found),
          .how = std::move(how),
          .command = "locket memory --computed"};
}

// Values a token, all layers.
std::int64_t latent_elements(const model::LineageModel& model) {
  return dimension(model, "layers") * (dimension(model, "latent") + dimension(model, "rope"));
}

std::vector<Claim> early_claims(const std::vector<model::LineageModel>& models) {
  const std::int64_t v2 = latent_elements(lineage_model(models, "v2"));
  const std::int64_t lite = latent_elements(lineage_model(models, "v2-lite"));
  const model::LineageModel& v32 = lineage_model(models, "v3.2");
  const model::LineageModel& pro = lineage_model(models, "v4-pro");
  const double pro_bytes = pro.layouts.front().bytes_per_token();
  return {computed("V2 keeps 34.6K values a token, V2-Lite 15.6K", "V2 report, table 9",
                   fmt::format("{} and {}", grouped(static_cast<std::uint64_t>(v2)),
                               grouped(static_cast<std::uint64_t>(lite))),
                   "layers x (latent + rotary key)"),
          {.claim = "that is 4 % and 14 % of an MHA model's",
           .source = "V2 report, table 9",
           .kind = Kind::kNotHere,
           .found = "the MHA models of the comparison were never released",
           .how = {},
           .command = {}},
          computed("V4-Pro in bf16: 9.62 GiB for 1M tokens, 8.7 times less than V3.2",
                   "vLLM blog on V4",
                   fmt::format("{:.3f} GiB; {:.2f} times", pro_bytes * kMillion / kGibi,
                               v32.layouts.front().bytes_per_token() / pro_bytes),
                   "bf16 rows and index keys of both")};
}

// A cache of 8 heads x 128 in bf16 in every layer is the yardstick of V4's report.
Claim yardstick_claim(const std::vector<model::LineageModel>& models) {
  const auto share = [&](std::string_view id) {
    const model::LineageModel& model = lineage_model(models, id);
    const auto layers = static_cast<double>(dimension(model, "csa") + dimension(model, "hca") +
                                            dimension(model, "window_only"));
    return 100 * model.layouts[1].bytes_per_token() / (layers * 2 * 8 * 128 * 2);
  };
  return computed("V4 keeps about 2 % of a bf16 cache with 8 heads x 128", "V4 report, 2.3.4",
                  fmt::format("Pro {:.2f} %, Flash {:.2f} %", share("v4-pro"), share("v4-flash")),
                  "vendor's serving layout, the same number of layers");
}

// Windows of every token kept on disk against compressed rows, index keys left out.
Claim windows_claim(const std::vector<model::LineageModel>& models) {
  const auto ratio = [&](std::string_view id) {
    const model::LineageModel& model = lineage_model(models, id);
    const model::LineageLayout& layout = model.layouts[1];
    const auto layers = static_cast<double>(dimension(model, "csa") + dimension(model, "hca") +
                                            dimension(model, "window_only"));
    double rows = 0;
    for (const model::LineageStream& stream : layout.streams) {
      if (stream.name.find("index") == std::string::npos) rows += stream.bytes_per_token();
    }
    return layers * static_cast<double>(layout.streams.front().row_bytes) / rows;
  };
  return computed("V4 with all windows on disk: about 8 times the compressed rows",
                  "V4 report, 3.6.2",
                  fmt::format("Flash {:.2f}, Pro {:.2f} times", ratio("v4-flash"), ratio("v4-pro")),
                  "a window row per layer and token over the compressed rows, index keys left out");
}

Claim capacity_claim(const std::vector<model::LineageModel>& models) {
  constexpr double kPool = 64 * kGibi;
  constexpr double kTokens = 131072;
  std::string found;
  for (const std::string_view id : {"v2", "v3", "v3.2", "v4-pro", "v4-flash", "v4.1-flash"}) {
    const model::LineageModel& model = lineage_model(models, id);
    const std::size_t serving = model.layouts.size() > 1 ? 1 : 0;
    const model::LineageLayout& layout = model.layouts[serving];
    const double bytes =
        layout.bytes_per_token() * kTokens + static_cast<double>(layout.fixed_bytes());
    found += fmt::format("{}{} {:.1f}", found.empty() ? "" : ", ", id, kPool / bytes);
  }
  return computed("texts of 128k tokens in 64 GiB, generation by generation",
                  "follows from the reports", found,
                  "vendor's serving layouts, rings and open groups included");
}

}  // namespace

ClaimGroup memory_claims(const std::vector<MeasuredMemory>& measured) {
  ClaimGroup group = {.topic = "What a token of context costs", .claims = {}};
  for (const MemoryRatio& ratio : memory_ratios(measured)) {
    group.claims.push_back(ratio_claim(ratio));
  }
  const std::vector<model::LineageModel> models = model::lineage_models();
  for (Claim& claim : early_claims(models)) group.claims.push_back(std::move(claim));
  group.claims.push_back(yardstick_claim(models));
  group.claims.push_back(windows_claim(models));
  group.claims.push_back(capacity_claim(models));
  const double v41 = models.back().layouts.front().bytes_per_token();
  group.claims.push_back(computed(
      "a million tokens of V4.1-Flash fit into less than 1 GiB",
      "follows from the abstract's 890 bytes",
      fmt::format("{:.3f} GiB, and {:.2f} MiB of rings", v41 * kMillion / kGibi,
                  static_cast<double>(models.back().layouts.front().fixed_bytes()) / kMillion),
      "rows and index keys of 1,048,576 tokens"));
  return group;
}

}  // namespace locket::cli
