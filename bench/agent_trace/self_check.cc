#include "agent_trace/self_check.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "agent_trace/replay.h"
#include "agent_trace/traffic.h"

namespace locket::agent_trace {
namespace {

constexpr std::size_t kRequests = 300;
constexpr std::uint64_t kTightBudget = std::uint64_t{192} << 20;

std::int64_t common_tokens(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  const auto length = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return std::mismatch(a.begin(), a.begin() + length, b.begin()).first - a.begin();
}

// Per request: tokens of its prompt with which some earlier sequence begins.
std::vector<std::int64_t> compare_all(const Trace& trace) {
  std::vector<std::int64_t> longest;
  std::vector<std::vector<std::int32_t>> earlier;
  for (const Request& request : trace.requests) {
    std::vector<std::int32_t> tokens;
    append_tokens(trace.options.seed, request.prompt, tokens);
    std::int64_t most = 0;
    for (const auto& other : earlier) most = std::max(most, common_tokens(tokens, other));
    longest.push_back(most);
    append_tokens(trace.options.seed, request.answer, tokens);
    tokens.pop_back();
    earlier.push_back(std::move(tokens));
  }
  return longest;
}

std::string check_kind(const Trace& trace, const RowKind& kind,
                       const std::vector<std::int64_t>& longest) {
  Replay unlimited(trace, kind, std::nullopt);
  Replay tight(trace, kind, kTightBudget);
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const std::int64_t wanted = longest[i] / kind.geometry.group * kind.geometry.group;
    const std::int64_t found = unlimited.serve(trace.requests[i]);
    if (found != wanted) {
      return fmt::format("{}, request {}: {} tokens found without a budget, {} are there",
                         kind.name, i, found, wanted);
    }
    const std::int64_t found_tight = tight.serve(trace.requests[i]);
    if (found_tight > wanted) {
      return fmt::format("{}, request {}: {} tokens found under a budget, {} were ever there",
                         kind.name, i, found_tight, wanted);
    }
  }
  if (tight.tally().times_over_budget > 0) {
    return fmt::format("{}: {} times above a budget of {} bytes", kind.name,
                       tight.tally().times_over_budget, kTightBudget);
  }
  if (tight.tally().evicted_pages == 0) return kind.name + ": a tight budget evicted nothing";
  return {};
}

}  // namespace

std::string self_check(std::uint64_t seed) {
  Trace trace = make_trace({.seed = seed, .days = 1, .users = 2});
  if (trace.requests.size() < kRequests) return "the traffic has too few requests";
  trace.requests.resize(kRequests);
  const std::vector<std::int64_t> longest = compare_all(trace);
  for (const RowKind& kind : row_kinds()) {
    const std::string fault = check_kind(trace, kind, longest);
    if (!fault.empty()) return fault;
  }
  return {};
}

}  // namespace locket::agent_trace
