#include "agent_trace/conversation.h"

#include <algorithm>
#include <utility>

namespace locket::agent_trace {
namespace {

constexpr std::int64_t kContextLimit = 167'000;
constexpr double kTokensPerSecond = 60;  // of an answer

constexpr LogNormal kThoughtTokens = {.median = 150, .sigma = 0.9, .least = 8, .most = 8'000};
constexpr LogNormal kAnswerTokens = {.median = 190, .sigma = 0.9, .least = 12, .most = 8'000};
constexpr LogNormal kResultTokens = {.median = 800, .sigma = 1.2, .least = 20, .most = 25'000};
constexpr LogNormal kUserTokens = {.median = 120, .sigma = 1.2, .least = 5, .most = 8'000};
constexpr LogNormal kTaskTokens = {.median = 350, .sigma = 0.6, .least = 50, .most = 4'000};
constexpr LogNormal kSummaryTokens = {.median = 2'500, .sigma = 0.3, .least = 1'000, .most = 6'000};
constexpr LogNormal kToolMillis = {.median = 3'000, .sigma = 1.5, .least = 50, .most = 1'200'000};
constexpr LogNormal kUserMillis = {
    .median = 90'000, .sigma = 1.2, .least = 4'000, .most = 7'200'000};

constexpr double kTurnsPerSession = 6;
constexpr double kStepsPerTurn = 14;
constexpr double kStepsPerSubAgent = 9;

enum class Kind { kFixed, kUser, kThought, kAnswer, kResult };

struct Item {
  Piece piece;
  Kind kind = Kind::kFixed;
};

class Conversation {
 public:
  Conversation(Thoughts thoughts, Draws& draws, Recorder& recorder)
      : thoughts_(thoughts), draws_(draws), recorder_(recorder) {}

  void add(Kind kind, Piece piece) { items_.push_back({piece, kind}); }
  void add_new(Kind kind, const LogNormal& tokens) {
    add(kind, recorder_.new_text(draws_.log_normal(tokens)));
  }
  // What has been added up to now is instructions and tools.
  void end_instructions() {
    for (const Item& item : items_) system_tokens_ += item.piece.tokens;
  }

  std::int64_t turns() const {
    return std::ranges::count(items_, Kind::kUser, [](const Item& item) { return item.kind; });
  }
  // Forgets everything from the user's message `back` turns before the last one on; or all after
  // the last message.
  void rewind_to_turn(std::int64_t back);
  void rewind_to_answer() {
    while (items_.back().kind != Kind::kUser) items_.pop_back();
  }

  // One request and its answer; the time when it is there.
  Millis step(Millis time);
  Millis use_tool(Millis time) {
    add_new(Kind::kResult, kResultTokens);
    return time + draws_.log_normal(kToolMillis);
  }
  // Replaces the context by a summary if it is too long.
  Millis compact(Millis time);

 private:
  std::vector<Piece> render() const;

  Thoughts thoughts_;
  Draws& draws_;
  Recorder& recorder_;
  std::vector<Item> items_;
  std::int64_t system_tokens_ = 0;
};

std::vector<Piece> Conversation::render() const {
  std::size_t turn_start = items_.size();
  while (turn_start > 0 && items_[turn_start - 1].kind != Kind::kUser) --turn_start;
  std::vector<Piece> pieces;
  pieces.reserve(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const bool is_kept = items_[i].kind != Kind::kThought || thoughts_ == Thoughts::kKept ||
                         (thoughts_ == Thoughts::kKeptInTurn && i >= turn_start);
    if (is_kept) pieces.push_back(items_[i].piece);
  }
  return pieces;
}

void Conversation::rewind_to_turn(std::int64_t back) {
  rewind_to_answer();
  for (; back > 0; --back) {
    items_.pop_back();
    rewind_to_answer();
  }
  items_.pop_back();
}

Millis Conversation::step(Millis time) {
  const Piece thought = recorder_.new_text(draws_.log_normal(kThoughtTokens));
  const Piece answer = recorder_.new_text(draws_.log_normal(kAnswerTokens));
  if (time < recorder_.end) {
    recorder_.trace.requests.push_back({.time = time,
                                        .prompt = render(),
                                        .answer = {thought, answer},
                                        .system_tokens = system_tokens_});
  }
  add(Kind::kThought, thought);
  add(Kind::kAnswer, answer);
  const double seconds = 1.0 + (thought.tokens + answer.tokens) / kTokensPerSecond;
  return time + static_cast<Millis>(seconds * kSecond);
}

Millis Conversation::compact(Millis time) {
  if (count_tokens(render()) < kContextLimit) return time;
  recorder_.trace.compactions += 1;
  add_new(Kind::kUser, kTaskTokens);
  const Piece summary = recorder_.new_text(draws_.log_normal(kSummaryTokens));
  if (time < recorder_.end) {
    recorder_.trace.requests.push_back(
        {.time = time, .prompt = render(), .answer = {summary}, .system_tokens = system_tokens_});
  }
  std::erase_if(items_, [](const Item& item) { return item.kind != Kind::kFixed; });
  add(Kind::kUser, summary);
  return time + static_cast<Millis>(summary.tokens / kTokensPerSecond * kSecond);
}

class Session {
 public:
  Session(const SessionStart& start, Draws& draws, Recorder& recorder)
      : start_(start), draws_(draws), recorder_(recorder) {}

  void run();

 private:
  Conversation begin(const Program& program);
  Millis run_turn(Conversation& conversation, Millis time);
  Millis run_sub_agents(const Conversation& parent, Millis time);
  Millis pause();

  const SessionStart& start_;
  Draws& draws_;
  Recorder& recorder_;
};

Conversation Session::begin(const Program& program) {
  Conversation conversation(program.thoughts, draws_, recorder_);
  const std::uint32_t lasting = program.tokens * 2 / 5;
  conversation.add(Kind::kFixed, {.text = program.text, .tokens = lasting});
  conversation.add(Kind::kFixed,
                   {.text = program.version_text, .tokens = program.tokens - lasting});
  conversation.add(Kind::kFixed, start_.repository.instructions);
  conversation.end_instructions();
  // Date, folder, state of the repository.
  conversation.add(Kind::kFixed, recorder_.new_text(draws_.between(150, 600)));
  return conversation;
}

// They run side by side; the slowest decides.
Millis Session::run_sub_agents(const Conversation& parent, Millis time) {
  Millis end = time;
  for (std::int64_t count = draws_.between(1, 3); count > 0; --count) {
    recorder_.trace.sub_agents += 1;
    Conversation agent = draws_.chance(0.3) ? parent : begin(start_.sub_agent);
    agent.add_new(Kind::kUser, kTaskTokens);
    Millis now = time;
    for (std::int64_t steps = draws_.geometric(kStepsPerSubAgent); steps > 1; --steps) {
      now = agent.compact(agent.use_tool(agent.step(now)));
    }
    end = std::max(end, agent.step(now));
  }
  return end;
}

Millis Session::run_turn(Conversation& conversation, Millis time) {
  for (std::int64_t steps = draws_.geometric(kStepsPerTurn); steps > 1; --steps) {
    time = conversation.step(time);
    if (draws_.chance(0.03)) time = run_sub_agents(conversation, time);
    time = conversation.compact(conversation.use_tool(time));
    if (time >= recorder_.end) return time;
  }
  return conversation.step(time);
}

Millis Session::pause() {
  const double kind = draws_.uniform();
  if (kind < 0.08) return kDay * draws_.between(1, 5);
  if (kind < 0.18) return static_cast<Millis>(draws_.over_octaves(1.0 * kHour, 3));
  return draws_.log_normal(kUserMillis);
}

void Session::run() {
  recorder_.trace.sessions += 1;
  Conversation conversation = begin(start_.program);
  Millis time = start_.time;
  conversation.add_new(Kind::kUser, kUserTokens);
  for (std::int64_t turns = draws_.geometric(kTurnsPerSession); turns > 0; --turns) {
    time = run_turn(conversation, time);
    const Millis answered = time;
    time = next_working_time(time + pause(), start_.zone);
    if (time >= recorder_.end) return;
    if (turns > 1 && time - answered >= kHour) recorder_.trace.long_pauses += 1;
    const double branch = draws_.uniform();
    if (branch < 0.10) recorder_.trace.branches += 1;
    if (branch < 0.04) {
      conversation.rewind_to_answer();
      continue;
    }
    if (branch < 0.10) {
      conversation.rewind_to_turn(std::min(draws_.between(0, 2), conversation.turns() - 1));
    }
    conversation.add_new(Kind::kUser, kUserTokens);
  }
}

}  // namespace

void run_session(const SessionStart& start, Draws& draws, Recorder& recorder) {
  Session(start, draws, recorder).run();
}

}  // namespace locket::agent_trace
