// locket claims: every published number beside what this program finds.
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/claims_list.h"
#include "cli/claims_text.h"
#include "cli/commands.h"
#include "cli/measured_memory.h"
#include "cli/model_path.h"
#include "cli/model_setup.h"

namespace locket::cli {
namespace {

// Room for 65,536 tokens of V4-Flash, so that its text on disk is as long as V4.1's; little enough
// for a minute.
constexpr std::uint64_t kMeasuredBytes = std::uint64_t{256} << 20;

std::vector<MeasuredMemory> measure() {
  std::error_code ignored;
  const std::filesystem::path scratch = std::filesystem::temp_directory_path(ignored);
  return measure_released_memory(
      {.tokens = 0, .budget_bytes = kMeasuredBytes, .scratch = scratch.empty() ? "." : scratch});
}

Result<ClaimGroup> measure_model(const ClaimsOptions& options) {
  ModelOptions model = options.model;
  model.memory = "off";  // remembered in RAM only
  LOCKET_TRY(const std::filesystem::path folder, resolve_model(model.model));
  LOCKET_TRY(const ModelSetup setup, set_up_remembering_model(model));
  return model_claims(setup, folder);
}

Result<std::vector<ClaimGroup>> list_claims(const ClaimsOptions& options) {
  std::vector<ClaimGroup> groups;
  groups.push_back(memory_claims(options.is_quick ? std::vector<MeasuredMemory>() : measure()));
  LOCKET_TRY(ClaimGroup work, work_claims());
  groups.push_back(std::move(work));
  if (options.is_quick) {
    groups.push_back(unmeasured_model_claims());
  } else {
    LOCKET_TRY(ClaimGroup model, measure_model(options));
    groups.push_back(std::move(model));
  }
  groups.push_back(service_claims());
  return groups;
}

}  // namespace

int run_claims(const ClaimsOptions& options) {
  const Result<std::vector<ClaimGroup>> groups = list_claims(options);
  if (!groups) return report(groups.error());
  const std::string text = options.json ? claims_json(*groups) : claims_text(*groups);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace locket::cli
