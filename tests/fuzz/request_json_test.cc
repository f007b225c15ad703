// Broken chat requests, taken all the way: parsed, rendered and made into ids.
#include "chat/request_json.h"

#include <gtest/gtest.h>

#include "chat/render_v41.h"
#include "tests/fuzz/broken_text.h"
#include "tests/support/tokenizer_files.h"

namespace locket::fuzz {
namespace {

// As a client of a tool sends it: every kind of message, and every field that is looked at.
constexpr const char* kRequest = R"({
  "model": "mini",
  "messages": [
    {"role": "system", "content": "Be brief. \u00e9 \ud83d\ude00"},
    {"role": "user", "content": [{"type": "text", "text": "What is <｜User｜> in 1,234.50 €?"}]},
    {"role": "assistant", "content": null, "reasoning_content": "Let me look.", "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"q\": [1, 2.5]}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "user", "content": "Go on."}],
  "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.",
    "parameters": {"type": "object", "properties": {"q": {"type": "array"}}}}}],
  "tool_choice": "auto",
  "temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 7,
  "frequency_penalty": 0.1, "presence_penalty": -0.1, "repetition_penalty": 1.1,
  "logit_bias": {"5": 1.5}, "max_tokens": 64, "stop": ["\n\n", "END"], "n": 1,
  "stream": true, "stream_options": {"include_usage": true},
  "thinking": {"type": "enabled"}, "reasoning_effort": "high",
  "response_format": {"type": "text"}
})";

struct Tally {
  int accepted = 0;
  int refused = 0;
};

void try_body(const std::string& body, Tally& tally) {
  const auto request = chat::parse_chat_request(body);
  if (!request) {
    ++tally.refused;
    EXPECT_EQ(request.error().code, ErrorCode::kBadRequest) << request.error().message;
    EXPECT_EQ(tokenizer::repair_utf8(request.error().message), request.error().message);
    return;
  }
  ++tally.accepted;
  const auto prompt = chat::render_v41(*request, test_support::small_tokenizer());
  ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
  EXPECT_FALSE(prompt->ids.empty());
}

TEST(RequestJsonFuzzTest, TheWholeBodyIsAccepted) {
  Tally tally;
  try_body(kRequest, tally);
  EXPECT_EQ(tally.accepted, 1);
}

TEST(RequestJsonFuzzTest, EveryCutBodyIsRefused) {
  const std::string body = kRequest;
  Tally tally;
  for (std::size_t length = 0; length < body.size(); ++length) {
    try_body(body.substr(0, length), tally);
  }
  EXPECT_EQ(tally.accepted, 0);
}

TEST(RequestJsonFuzzTest, EveryBrokenBodyIsAnsweredOrRefused) {
  BrokenText source(kRequest, 20260941);
  Tally tally;
  for (int round = 0; round < 1000; ++round) {
    try_body(source.flipped(), tally);
    try_body(source.edited(), tally);
    try_body(source.renumbered(), tally);
  }
  EXPECT_GT(tally.accepted, 300);
  EXPECT_GT(tally.refused, 300);
}

}  // namespace
}  // namespace locket::fuzz
