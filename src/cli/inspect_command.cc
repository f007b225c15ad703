#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/inspect_plan.h"
#include "cli/inspect_text.h"
#include "cli/model_setup.h"

namespace locket::cli {

int run_inspect(const InspectOptions& options) {
  if (options.plan) {
    const Result<std::string> plan = inspect_plan(options);
    if (!plan) return report(plan.error());
    std::fwrite(plan->data(), 1, plan->size(), stdout);
    return 0;
  }
  const Result<ModelFacts> facts = read_model_facts(options);
  if (!facts) return report(facts.error());
  if (!facts->unknown_keys.empty()) {
    log_info(fmt::format("{}: keys without a meaning here: {}", facts->config_path,
                         fmt::join(facts->unknown_keys, ", ")));
  }
  if (facts->context < options.context) {
    log_info(fmt::format("counted at {} tokens, the most that this model takes", facts->context));
  }
  const std::string text = options.json ? inspect_json(*facts) : inspect_text(*facts);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace locket::cli
