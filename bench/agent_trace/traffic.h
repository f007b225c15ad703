// Made-up traffic of coding agents, the same for a seed on every machine. One operator, one tenant:
// all users share one memory, and with it their agents' instructions and tools.
//
// What is modelled, and where the figures come from:
// - Agents: three programs with instructions and tools of 13,000, 17,000 and 26,000 tokens; four
//   tenths of it outlive an update, and there is one a week. Public: the traces cc-traces-weka
//   (SemiAnalysis) have up to 17,300 tokens of tools and 7,460 of instructions; the SWE-bench Pro
//   traces of netpreme begin with 20,000 tokens, those of Inferact with 12,367; AIPerf's generator
//   assumes 32,000. Instructions of a repository, 1,500 to 6,000 tokens: assumed.
// - A session: a user's turns (mean 6), each a loop of steps (mean 14) in which the agent calls a
//   tool and reads its result: 84 steps. Public: TraceLab (University of Washington, 4,265
//   sessions, 357,161 steps) has 83.7 steps a session. The division into turns is assumed.
// - An answer: thoughts (median 150) and text with the call (median 190), together 515 tokens in
//   the mean. Public: TraceLab 523, Inferact 522.
// - A result: median 800 tokens, mean 1,700. Public: Inferact's contexts grow by 2,185 tokens a
//   step, answer included. The shape (log-normal, sigma 1.2) is assumed.
// - Contexts are summarized and begun anew above 167,000 tokens (AIPerf's limit).
// - Branches: after 6 % of the turns the user edits one of the last three, after 4 % the last one
//   is run again. Assumed.
// - Sub-agents: 3 % of the steps start one to three; 30 % of those begin with the whole context of
//   their parent, the others with instructions of their own (6,000 tokens). Assumed.
// - Pauses: tools 3 s in the median (sigma 1.5), users 90 s (sigma 1.2); 10 % of a user's pauses
//   last hours, 8 % days. Work is done from 09:00 to 19:00 on weekdays; half of the users live at
//   UTC+8, the others at UTC+1. Assumed.
// - Thoughts: one program sends all of them back, one those of the current turn, one none. So what
//   was stored parts from the next prompt where the last answer begins, or the last turn. Assumed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent_trace/calendar.h"

namespace locket::agent_trace {

struct TrafficOptions {
  std::uint64_t seed = 1;
  std::int64_t days = 10;
  std::int64_t users = 8;
};

// The first `tokens` tokens of a text; texts are numbered.
struct Piece {
  std::uint32_t text = 0;
  std::uint32_t tokens = 0;
};

std::int64_t count_tokens(std::span<const Piece> pieces);
// Appends the token ids: digests of (seed, text, place), so that other texts have other ids.
void append_tokens(std::uint64_t seed, std::span<const Piece> pieces,
                   std::vector<std::int32_t>& tokens);

struct Request {
  Millis time = 0;
  std::vector<Piece> prompt;
  std::vector<Piece> answer;
  std::int64_t system_tokens = 0;  // instructions and tools at the prompt's start
};

struct Trace {
  TrafficOptions options;
  std::vector<Request> requests;  // by time
  std::int64_t sessions = 0;
  std::int64_t sub_agents = 0;
  std::int64_t branches = 0;
  std::int64_t compactions = 0;
  std::int64_t long_pauses = 0;  // an hour or more within a session
};

Trace make_trace(const TrafficOptions& options);

}  // namespace locket::agent_trace
