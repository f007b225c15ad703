// Answers that every dialect must be able to write, and what the tests of the writers share.
#pragma once

#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/event_stream.h"
#include "tests/support/reply_script.h"

namespace locket::server {

using nlohmann::json;
using test_support::block_markup;
using test_support::call_markup;
using test_support::play;
using test_support::reply_info;
using test_support::ReplyScript;
using test_support::ScriptedChoice;
using test_support::StreamCheck;
using test_support::StreamEvent;

struct WriterCase {
  std::string name;
  ScriptedChoice choice;
  chat::ThinkingMode thinking = chat::ThinkingMode::kChat;
};

inline std::string weather_call() {
  return call_markup("get_weather", {{"city", "true", "Zürich \"Nord\"\n东"},
                                     {"days", "false", "[1.0, 2e0,  {\"a\": null}]"}});
}

inline std::string clock_call() { return call_markup("clock", {}); }

// Answers of which a stream and a body say the same.
inline std::vector<WriterCase> whole_answers() {
  using chat::FinishReason;
  using chat::ReplyStart;
  const auto chat = chat::ThinkingMode::kChat;
  const auto thinking = chat::ThinkingMode::kThinking;
  const std::string calls = block_markup({weather_call(), clock_call()});
  return {
      {"text", {.output = "Grüezi, 世界 \U0001F600\n\"quoted\" \\ and more text."}, chat},
      {"empty", {.output = ""}, chat},
      {"empty_thinking", {.start = ReplyStart::kReasoning, .output = "</think>"}, thinking},
      {"reasoning_and_text",
       {.start = ReplyStart::kReasoning, .output = "Let me think: 思考.</think>The answer."},
       thinking},
      {"reasoning_and_call",
       {.start = ReplyStart::kReasoning,
        .output = "I must look.</think>" + block_markup({weather_call()})},
       thinking},
      {"several_calls",
       {.start = ReplyStart::kReasoning, .output = "Two.</think>I look." + calls},
       thinking},
      {"calls_alone", {.output = calls}, chat},
      {"text_cut", {.output = "This goes on and", .end = FinishReason::kLength}, chat},
      {"reasoning_cut",
       {.start = ReplyStart::kReasoning, .output = "Still thin", .end = FinishReason::kLength},
       thinking},
      {"stop_string", {.output = "One END two", .stop = {"never", "END"}}, chat},
  };
}

// A call that the limit cuts in the middle of its arguments.
inline ScriptedChoice cut_call() {
  const std::string output = "I look." + block_markup({weather_call()});
  return {.output = output.substr(0, output.find("Nord")), .end = chat::FinishReason::kLength};
}

// A call that the model breaks, and one that it does not.
inline ScriptedChoice broken_and_whole_call() {
  std::string broken = weather_call();
  broken.replace(broken.find("\"days\" string"), 13, "\"days\" strong");
  return {.output = block_markup({broken, clock_call()})};
}

inline constexpr std::uint64_t kSeeds = 25;

inline Bill some_bill() { return {.hit = 0.5, .miss = 0.25, .output = 0.125, .is_peak = true}; }

// The events of a stream whose framing has no fault.
inline std::vector<StreamEvent> events_of(std::string_view stream) {
  const test_support::EventStream read = test_support::read_event_stream(stream);
  EXPECT_THAT(read.problems, ::testing::IsEmpty());
  return read.events;
}

// A stream with one thing changed, which must not pass for a good one. `change` gets every event's
// data in turn and says whether it was the one.
inline std::vector<StreamEvent> changed(std::vector<StreamEvent> events,
                                        const std::function<bool(json&)>& change) {
  for (StreamEvent& event : events) {
    json data = json::parse(event.data, nullptr, false);
    if (!data.is_object() || !change(data)) continue;
    event.data = data.dump();
    return events;
  }
  ADD_FAILURE() << "nothing was changed";
  return events;
}

// The same for every event that the change fits.
inline std::vector<StreamEvent> changed_all(std::vector<StreamEvent> events,
                                            const std::function<void(json&)>& change) {
  for (StreamEvent& event : events) {
    json data = json::parse(event.data, nullptr, false);
    if (!data.is_object()) continue;
    change(data);
    event.data = data.dump();
  }
  return events;
}

// Without the events that `drops` names.
inline std::vector<StreamEvent> without(std::vector<StreamEvent> events,
                                        const std::function<bool(const StreamEvent&)>& drops) {
  EXPECT_GT(std::erase_if(events, drops), 0U) << "nothing was dropped";
  return events;
}

inline std::vector<StreamEvent> without_type(std::vector<StreamEvent> events,
                                             std::string_view name) {
  return without(std::move(events),
                 [name](const StreamEvent& event) { return event.name == name; });
}

}  // namespace locket::server
