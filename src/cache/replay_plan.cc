#include "cache/replay_plan.h"

#include <algorithm>

#include "base/check.h"

namespace locket::cache {
namespace {

std::int64_t whole_groups(std::int64_t position, std::int64_t group) {
  return position / group * group;
}

}  // namespace

ReplayPlan make_replay_plan(const ReplayRequest& request, const ReplayGeometry& geometry) {
  LOCKET_CHECK(request.prompt_tokens >= 1 && request.stored_tokens >= 0);
  LOCKET_CHECK(request.decoder_tokens >= 0 && request.decoder_tokens <= request.prompt_tokens);
  LOCKET_CHECK(geometry.window >= 1 && geometry.group >= 1);
  ReplayPlan plan;
  plan.write_from = whole_groups(request.stored_tokens, geometry.group);
  plan.decoder_start = request.prompt_tokens - request.decoder_tokens;
  plan.exact_from = std::min(plan.write_from, plan.decoder_start);
  // The run starts with a whole group, so that no group waits half-formed.
  plan.start = whole_groups(std::max<std::int64_t>(0, plan.exact_from - geometry.encoder_reach()),
                            geometry.group);
  for (const std::int64_t snapshot : request.snapshots) {
    const bool is_usable = snapshot > 0 && snapshot <= plan.exact_from;
    if (is_usable && snapshot >= plan.start) {
      plan.start = snapshot;
      plan.uses_snapshot = true;
    }
  }
  return plan;
}

}  // namespace locket::cache
