#include "stream_load/questions.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>

namespace locket::stream_load {
namespace {

constexpr std::size_t kQuestions = 24;
constexpr int kMostWaitMs = 120'000;
constexpr const char* kFacts[] = {
    "My cat is called Milo.", "I live in Lisbon.",         "My brother is called Ben.",
    "The lamp is orange.",    "My boss is called Clara.",  "I have a small basket.",
    "It rains in July.",      "The brown bear is asleep.", "My sister plays the harp."};
constexpr const char* kAsked[] = {"What is my cat called?", "Where do I live?",
                                  "What is my brother called?", "Tell me something.", "Hello!"};

// Every question differs from the others in its text, its length, its sampling or its limit.
nlohmann::ordered_json question_json(std::size_t index) {
  std::string text;
  for (std::size_t fact = 0; fact <= index % 12; ++fact) {
    text += kFacts[(index * 5 + fact) % std::size(kFacts)];
    text += ' ';
  }
  text += kAsked[index % std::size(kAsked)];
  nlohmann::ordered_json body = {{"messages", {{{"role", "user"}, {"content", text}}}},
                                 {"stream", true},
                                 {"max_tokens", 24 + 7 * (index % 13) + 20 * (index % 3)},
                                 {"thinking", {{"type", index % 4 == 1 ? "enabled" : "disabled"}}},
                                 {"temperature", index % 2 == 0 ? 0.0 : 1.0},
                                 {"seed", index}};
  // The small model says little and ends; without its ends it goes on as long as it may.
  if (index % 8 != 7) body["ignore_eos"] = true;
  return body;
}

Status answer_alone(const Address& address, Question& question) {
  ChatStream stream(address, question.whole());
  while (!stream.is_over()) {
    const bool sends = stream.state() == ChatStream::State::kSending;
    pollfd wait = {.fd = stream.socket(),
                   .events = static_cast<short>(sends ? POLLOUT : POLLIN),
                   .revents = 0};
    if (::poll(&wait, 1, kMostWaitMs) <= 0) {
      return fail(ErrorCode::kIo, "an answer with nothing beside it has not come in time");
    }
    stream.move_on();
  }
  if (stream.state() == ChatStream::State::kFailed) return fail(ErrorCode::kIo, stream.error());
  question.lone_text = stream.text();
  question.lone_tokens = stream.completion_tokens();
  return {};
}

}  // namespace

std::string Question::with_salt(std::uint64_t salt) const {
  return fmt::format("{},\"cache_salt\":\"{}\"}}", body, salt);
}

std::vector<Question> make_questions() {
  std::vector<Question> questions;
  for (std::size_t index = 0; index < kQuestions; ++index) {
    std::string body = question_json(index).dump();
    body.pop_back();
    questions.push_back({.body = std::move(body), .lone_text = {}});
  }
  return questions;
}

Status answer_alone(const Address& address, std::vector<Question>& questions) {
  for (Question& question : questions) LOCKET_TRY_STATUS(answer_alone(address, question));
  return {};
}

}  // namespace locket::stream_load
