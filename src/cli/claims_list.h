// Every number that was published about these models and the service that runs them, beside what
// this program finds: computed from the released shapes, measured when the list is made, measured
// by another program of this repository, or not here, with the reason. No figure in it is typed in
// as a finding.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/measured_memory.h"
#include "cli/model_setup.h"

namespace locket::cli {

struct Claim {
  enum class Kind { kMeasured, kComputed, kElsewhere, kNotHere, kCount };

  std::string claim;
  std::string source;
  Kind kind = Kind::kNotHere;
  std::string found;    // the figure; kElsewhere: where it stands; kNotHere: why there is none
  std::string how;      // may be empty where there is no figure
  std::string command;  // that prints it; empty: this one
};
std::string_view claim_kind_name(Claim::Kind kind);

struct ClaimGroup {
  std::string topic;
  std::vector<Claim> claims;
};

// Bytes; `measured` may be empty.
ClaimGroup memory_claims(const std::vector<MeasuredMemory>& measured);
// Parameters, multiply-adds, experts, the index; computed. Errors of the released configs.
[[nodiscard]] Result<ClaimGroup> work_claims();
// What the decoder replays, and what a long conversation costs: the conversations of recall.json
// are run with `setup`, which must remember in RAM.
[[nodiscard]] Result<ClaimGroup> model_claims(const ModelSetup& setup,
                                              const std::filesystem::path& folder);
// The same where nothing may run.
ClaimGroup unmeasured_model_claims();
// The hosted service, drafts, quality.
ClaimGroup service_claims();

}  // namespace locket::cli
