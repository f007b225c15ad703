// One conversation of an agent with its tools: what its context holds, and the requests that it
// makes. Used by the traffic generator only.
#pragma once

#include <cstdint>
#include <vector>

#include "agent_trace/draws.h"
#include "agent_trace/traffic.h"

namespace locket::agent_trace {

// What a program does with the thoughts of earlier answers.
enum class Thoughts { kKept, kKeptInTurn, kDropped };

struct Program {
  std::uint32_t text = 0;          // of the part that outlives an update
  std::uint32_t version_text = 0;  // of the part of this week's version
  std::uint32_t tokens = 0;
  Thoughts thoughts = Thoughts::kKept;
};

// Numbers texts and collects what happens.
struct Recorder {
  Trace& trace;
  Millis end = 0;  // nothing happens after this
  std::uint32_t next_text = 0;

  Piece new_text(std::int64_t tokens) {
    return {.text = next_text++, .tokens = static_cast<std::uint32_t>(tokens)};
  }
};

struct Repository {
  Piece instructions;
};

// A user's session, from its first request to its last.
struct SessionStart {
  Program program;
  Program sub_agent;
  Repository repository;
  Millis time = 0;
  Millis zone = 0;
};
void run_session(const SessionStart& start, Draws& draws, Recorder& recorder);

}  // namespace locket::agent_trace
