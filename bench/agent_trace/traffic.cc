#include "agent_trace/traffic.h"

#include <algorithm>
#include <array>

#include "agent_trace/conversation.h"
#include "agent_trace/draws.h"

namespace locket::agent_trace {
namespace {

constexpr std::size_t kRepositories = 6;
constexpr std::int64_t kVocabulary = 128'000;

std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

struct World {
  std::vector<std::vector<Program>> programs;  // [week][program]; the last one is the sub-agents'
  std::array<Repository, kRepositories> repositories;
};

World make_world(Draws& draws, Recorder& recorder) {
  const std::array<Program, 4> kinds = {
      Program{.tokens = 26'000, .thoughts = Thoughts::kKept},
      Program{.tokens = 17'000, .thoughts = Thoughts::kKeptInTurn},
      Program{.tokens = 13'000, .thoughts = Thoughts::kDropped},
      Program{.tokens = 6'000, .thoughts = Thoughts::kKeptInTurn},
  };
  World world;
  std::array<std::uint32_t, kinds.size()> lasting{};
  for (std::uint32_t& text : lasting) text = recorder.new_text(0).text;
  for (Millis week = 0; week < recorder.end; week += 7 * kDay) {
    std::vector<Program>& programs = world.programs.emplace_back(kinds.begin(), kinds.end());
    for (std::size_t i = 0; i < programs.size(); ++i) {
      programs[i].text = lasting[i];
      programs[i].version_text = recorder.new_text(0).text;
    }
  }
  for (Repository& repository : world.repositories) {
    repository.instructions = recorder.new_text(draws.between(1'500, 6'000));
  }
  return world;
}

// The largest program has half of the sessions.
std::size_t choose_program(Draws& draws) {
  const double choice = draws.uniform();
  if (choice < 0.5) return 0;
  return choice < 0.8 ? 1 : 2;
}

struct User {
  Millis zone = 0;
  std::array<std::size_t, 2> repositories{};
};

void run_day(Millis day, const User& user, const World& world, Draws& draws, Recorder& recorder) {
  std::int64_t sessions = draws.between(2, 6);
  if (is_weekend(day)) sessions = draws.chance(0.15) ? 1 : 0;
  for (; sessions > 0; --sessions) {
    const Millis clock = 9 * kHour + draws.between(0, 8 * kHour);
    const Millis time = std::max<Millis>(0, day + clock - user.zone);
    if (time >= recorder.end) continue;
    const auto& programs = world.programs[static_cast<std::size_t>(time / (7 * kDay))];
    const std::size_t repository = user.repositories[draws.chance(0.7) ? 0 : 1];
    run_session({.program = programs[choose_program(draws)],
                 .sub_agent = programs.back(),
                 .repository = world.repositories[repository],
                 .time = time,
                 .zone = user.zone},
                draws, recorder);
  }
}

}  // namespace

std::int64_t count_tokens(std::span<const Piece> pieces) {
  std::int64_t tokens = 0;
  for (const Piece& piece : pieces) tokens += piece.tokens;
  return tokens;
}

void append_tokens(std::uint64_t seed, std::span<const Piece> pieces,
                   std::vector<std::int32_t>& tokens) {
  const std::uint64_t key = mix(seed);
  for (const Piece& piece : pieces) {
    const std::uint64_t text = key ^ (static_cast<std::uint64_t>(piece.text) << 32);
    for (std::uint32_t place = 0; place < piece.tokens; ++place) {
      tokens.push_back(static_cast<std::int32_t>(mix(text ^ place) % kVocabulary));
    }
  }
}

Trace make_trace(const TrafficOptions& options) {
  Trace trace;
  trace.options = options;
  Recorder recorder = {.trace = trace, .end = options.days * kDay};
  Draws common(options.seed, 0);
  const World world = make_world(common, recorder);
  for (std::int64_t i = 0; i < options.users; ++i) {
    Draws draws(options.seed, static_cast<std::uint64_t>(i) + 1);
    User user = {.zone = i % 2 == 0 ? 8 * kHour : 1 * kHour};
    for (std::size_t& repository : user.repositories) {
      repository = static_cast<std::size_t>(draws.between(0, kRepositories - 1));
    }
    for (Millis day = 0; day < recorder.end; day += kDay) {
      run_day(day, user, world, draws, recorder);
    }
  }
  std::ranges::stable_sort(trace.requests, {}, &Request::time);
  return trace;
}

}  // namespace locket::agent_trace
