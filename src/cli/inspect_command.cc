#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/inspect_outline.h"
#include "cli/inspect_plan.h"
#include "cli/inspect_text.h"
#include "cli/model_setup.h"

namespace locket::cli {
namespace {

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

// Any other generation than V4.1.
int inspect_plainly(const InspectOptions& options) {
  const Result<ModelSummary> summary = summarize_model(options);
  if (!summary) return report(summary.error());
  return print(options.json ? summary_json(*summary) : summary_text(*summary));
}

}  // namespace

int run_inspect(const InspectOptions& options) {
  if (options.plan) {
    const Result<std::string> plan = inspect_plan(options);
    if (!plan) return report(plan.error());
    return print(*plan);
  }
  const Result<std::string> generation = inspected_generation(options);
  if (!generation) return report(generation.error());
  if (*generation != "V4.1") return inspect_plainly(options);
  const Result<ModelFacts> facts = read_model_facts(options);
  if (!facts) return report(facts.error());
  if (!facts->unknown_keys.empty()) {
    log_info(fmt::format("{}: keys without a meaning here: {}", facts->config_path,
                         fmt::join(facts->unknown_keys, ", ")));
  }
  if (facts->context < options.context) {
    log_info(fmt::format("counted at {} tokens, the most that this model takes", facts->context));
  }
  return print(options.json ? inspect_json(*facts) : inspect_text(*facts));
}

}  // namespace locket::cli
