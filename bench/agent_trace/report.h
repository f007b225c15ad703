// The result of all replays as a table for people, as CSV, and in one sentence. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent_trace/replay.h"
#include "agent_trace/traffic.h"

namespace locket::agent_trace {

// tallies[kind][budget].
struct Results {
  std::vector<RowKind> kinds;
  std::vector<std::uint64_t> budgets;  // bytes, ascending
  std::vector<std::vector<Tally>> tallies;
  double ceiling = 0;  // hit rate of a memory without limit, to the token
};

std::string describe_traffic(const Trace& trace);
std::string describe_kinds(const std::vector<RowKind>& kinds);
std::string table(const Results& results);
std::string csv(const Results& results);
// How much more the first kind holds at each budget than the others, and what that does.
std::string compare_content(const Results& results);
// "4 GiB".
std::string budget_text(std::uint64_t bytes);

}  // namespace locket::agent_trace
