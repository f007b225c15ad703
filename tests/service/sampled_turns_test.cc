// Old answers with calls, found again by the ids of their calls: what a client may change in them,
// whom they belong to, and what survives.
#include "service/sampled_turns.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "chat/markup.h"
#include "chat/render_v41.h"
#include "chat/reply_parser.h"
#include "chat/request_json.h"
#include "service/call_id.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/sampled_output.h"
#include "tests/support/tokenizer_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;
using test_support::sampled_ids;
using test_support::small_tokenizer;
using Ids = std::vector<tokenizer::TokenId>;

constexpr std::string_view kOutput =
    "I look.\n</think>\nLet me see.\n\n<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"f\">\n"
    "<｜DSML｜ parameter name=\"path\" string=\"true\">a\"b\n</｜DSML｜ parameter>\n"
    "<｜DSML｜ parameter name=\"lines\" string=\"false\">[1,2 , 3.0]</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"g\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";

// The answer kOutput with calls c0 and c1.
SampledTurn sample(const std::string& first_id = "c0", const std::string& second_id = "c1") {
  SampledTurn turn;
  turn.ids = sampled_ids(small_tokenizer(), kOutput);
  turn.start = {chat::ReplyStart::kReasoning, true, false};
  chat::ReplyParser parser(turn.start);
  parser.push(kOutput);
  parser.finish(chat::FinishReason::kStop);
  const chat::Reply& reply = parser.reply();
  turn.reasoning = reply.reasoning;
  turn.content = reply.content;
  turn.calls = reply.tool_calls;
  EXPECT_EQ(turn.calls.size(), 2U);
  turn.calls[0].id = first_id;
  turn.calls[1].id = second_id;
  return turn;
}

// A JSON object of an assistant message; `calls` are two entries of id, name and arguments.
struct Sent {
  std::string content = R"("Let me see.")";
  std::string reasoning = R"("I look.")";
  std::string first = R"({"id": "c0", "function": {"name": "f", "arguments":
                          "{\"path\": \"a\\\"b\\n\", \"lines\": [1, 2, 3.0]}"}})";
  std::string second = R"({"id": "c1", "function": {"name": "g", "arguments": "{}"}})";
  bool is_swapped = false;
};

chat::ChatRequest request_of(const Sent& sent) {
  const std::string calls =
      sent.is_swapped ? sent.second + ", " + sent.first : sent.first + ", " + sent.second;
  return chat::parse_chat_request(
             R"({"tools": [{"function": {"name": "f"}}, {"function": {"name": "g"}}],
                 "messages": [{"role": "user", "content": "q"},
                   {"role": "assistant", "content": )" +
             sent.content + R"(, "reasoning_content": )" + sent.reasoning + R"(, "tool_calls": [)" +
             calls + R"(]},
                   {"role": "tool", "tool_call_id": "c1", "content": "of g"},
                   {"role": "tool", "tool_call_id": "c0", "content": "of f"}]})")
      .value();
}

SampledTurns in_memory() { return SampledTurns::open({}).value(); }

// The request after put_back() by a store that kept sample() of the tenant "t".
chat::ChatRequest put_back(const Sent& sent, std::string_view tenant = "t") {
  SampledTurns turns = in_memory();
  turns.keep("t", sample());
  chat::ChatRequest request = request_of(sent);
  turns.put_back(tenant, request);
  return request;
}

bool is_replayed(const Sent& sent) {
  const chat::ChatRequest request = put_back(sent);
  const chat::Message& answer = request.messages[1];
  EXPECT_TRUE(answer.sampled.empty() || answer.sampled == sample().ids);
  return !answer.sampled.empty();
}

std::string text_of(const chat::ChatRequest& request) {
  chat::RenderedPrompt prompt = chat::render_v41(request, small_tokenizer()).value();
  chat::show_sampled(prompt.segments, small_tokenizer());
  return chat::join_segments(std::span(prompt.segments).subspan(prompt.system_segments));
}

TEST(SampledTurnsTest, WhatWasSampledIsPutBackAsItWas) {
  const chat::ChatRequest request = put_back({});
  EXPECT_EQ(request.messages[1].sampled, sample().ids);
  EXPECT_EQ(request.messages[1].sampled_start, chat::ReplyStart::kReasoning);
  EXPECT_EQ(text_of(request),
            "<｜User｜>q<｜Assistant｜><think>" + std::string(kOutput) +
                "<｜end▁of▁sentence｜><｜User｜><tool_result>of f</tool_result>\n\n"
                "<tool_result>of g</tool_result><｜Assistant｜><think>");
}

// A client that sends calls back as it likes, and neither reasoning nor content with them.
TEST(SampledTurnsTest, EveryPromptOfAConversationBeginsWithTheOneBeforeAndItsAnswer) {
  SampledTurns turns = in_memory();
  nlohmann::json body = {{"tools", {{{"function", {{"name", "f"}}}}}},
                         {"messages", {{{"role", "user"}, {"content", "q"}}}}};
  Ids expected;
  for (int round = 0; round < 4; ++round) {
    chat::ChatRequest request = chat::parse_chat_request(body.dump()).value();
    turns.put_back("t", request);
    const chat::RenderedPrompt prompt = chat::render_v41(request, small_tokenizer()).value();
    ASSERT_GE(prompt.ids.size(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), prompt.ids.begin())) << round;

    const std::string id = make_call_id(0);
    const std::string other = make_call_id(1);
    const SampledTurn turn = sample(id, other);
    turns.keep("t", turn);
    const auto arguments = nlohmann::json::parse(turn.calls[0].arguments);
    body["messages"].push_back(
        {{"role", "assistant"},
         {"content", nullptr},
         {"tool_calls",
          {{{"id", other}, {"function", {{"name", "g"}, {"arguments", "{ }"}}}},
           {{"id", id}, {"function", {{"name", "f"}, {"arguments", arguments.dump(2)}}}}}}});
    for (const std::string& call : {other, id}) {
      body["messages"].push_back({{"role", "tool"}, {"tool_call_id", call}, {"content", "x"}});
    }
    expected = prompt.ids;
    test_support::append_ids(expected, turn.ids);
    expected.push_back(small_tokenizer().find_added_token(chat::kEndOfSentence).value());
  }
}

TEST(SampledTurnsTest, OrderOfKeysSpacingAndEscapesDoNotMatter) {
  for (const char* arguments :
       {R"({\"lines\":[1,2,3],\"path\":\"a\\\"b\\n\"})",
        R"( { \"path\" : \"\\u0061\\\"b\\u000a\" , \"lines\" : [ 1 , 2.0 , 3e0 ] } )"}) {
    const std::string first = R"({"id": "c0", "function": {"name": "f", "arguments": ")" +
                              std::string(arguments) + R"("}})";
    EXPECT_TRUE(is_replayed({.first = first})) << arguments;
  }
}

TEST(SampledTurnsTest, CallsAndResultsInAnotherOrderStandAsTheyWereMade) {
  EXPECT_EQ(text_of(put_back({.is_swapped = true})), text_of(put_back({})));
  // Without the store, the client's order would count.
  EXPECT_NE(text_of(request_of({.is_swapped = true})), text_of(request_of({})));
}

TEST(SampledTurnsTest, ContentAndReasoningMayBeLeftOutOrCutAtTheirEnds) {
  for (const char* content : {"null", R"("")", R"(" \n")", R"("Let me see.\n")"}) {
    EXPECT_TRUE(is_replayed({.content = content})) << content;
  }
  for (const char* reasoning : {"null", R"("")", R"("\nI look.\n\n")"}) {
    EXPECT_TRUE(is_replayed({.reasoning = reasoning})) << reasoning;
  }
}

TEST(SampledTurnsTest, WhatTheClientChangedIsRenderedAsTheClientSaysIt) {
  EXPECT_FALSE(is_replayed({.content = R"("Let me look.")"}));
  EXPECT_FALSE(is_replayed({.reasoning = R"("I do not look.")"}));
  for (const char* first :
       {R"({"id": "c0", "function": {"name": "f", "arguments": "{\"path\": \"a\\\"b\\n\"}"}})",
        R"({"id": "c0", "function": {"name": "f", "arguments":
            "{\"path\": \"a\\\"b\", \"lines\": [1, 2, 3]}"}})",
        R"({"id": "c0", "function": {"name": "f2", "arguments":
            "{\"path\": \"a\\\"b\\n\", \"lines\": [1, 2, 3]}"}})"}) {
    const Sent sent = {.first = first};
    EXPECT_FALSE(is_replayed(sent)) << first;
    EXPECT_EQ(text_of(put_back(sent)), text_of(request_of(sent)));
  }
}

TEST(SampledTurnsTest, MissingReasoningIsRestoredToCallsThatAgreeAndToNoOthers) {
  EXPECT_EQ(put_back({.reasoning = "null"}).messages[1].reasoning, "I look.");
  const Sent edited = {.content = R"("Something else.")", .reasoning = "null"};
  EXPECT_EQ(put_back(edited).messages[1].reasoning, "I look.");
  EXPECT_TRUE(put_back(edited).messages[1].sampled.empty());
  const Sent other_call = {
      .reasoning = "null",
      .second = R"({"id": "c1", "function": {"name": "g", "arguments": "{\"x\": 1}"}})"};
  EXPECT_EQ(put_back(other_call).messages[1].reasoning, "");
  EXPECT_EQ(put_back({.reasoning = R"("mine")"}).messages[1].reasoning, "mine");
}

TEST(SampledTurnsTest, AnotherTenantFindsNothing) {
  SampledTurns turns = in_memory();
  turns.keep("t", sample());
  EXPECT_TRUE(turns.find("t", "c0").has_value());
  EXPECT_TRUE(turns.find("t", "c1").has_value());
  EXPECT_FALSE(turns.find("u", "c0").has_value());
  EXPECT_FALSE(turns.find("", "c0").has_value());
  const chat::ChatRequest request = put_back({.reasoning = "null"}, "u");
  EXPECT_TRUE(request.messages[1].sampled.empty());
  EXPECT_EQ(request.messages[1].reasoning, "");
}

TEST(SampledTurnsTest, OneIdMayBeToldToTwoTenants) {
  SampledTurns turns = in_memory();
  SampledTurn other = sample();
  other.content = "other";
  turns.keep("t", sample());
  turns.keep("u", other);
  EXPECT_EQ(turns.find("t", "c0")->content, sample().content);
  EXPECT_EQ(turns.find("u", "c0")->content, "other");
}

TEST(SampledTurnsTest, ForgedIdsFindNothing) {
  SampledTurns turns = in_memory();
  const std::string id = make_call_id(0);
  turns.keep("t", sample(id, make_call_id(1)));
  for (const std::string& forged :
       {id.substr(0, id.size() - 1), id + "x", make_call_id(0), std::string(), "1:t" + id}) {
    EXPECT_FALSE(turns.find("t", forged).has_value()) << forged;
  }
  EXPECT_TRUE(turns.find("t", id).has_value());
}

TEST(SampledTurnsTest, CallsOfTwoTurnsAreNotOneTurn) {
  SampledTurns turns = in_memory();
  turns.keep("t", sample("c0", "d1"));
  turns.keep("t", sample("d0", "c1"));
  chat::ChatRequest request = request_of({.reasoning = "null"});
  turns.put_back("t", request);
  EXPECT_TRUE(request.messages[1].sampled.empty());
  EXPECT_EQ(request.messages[1].reasoning, "");
}

TEST(SampledTurnsTest, APartOfATurnsCallsIsNotTheTurn) {
  SampledTurns turns = in_memory();
  turns.keep("t", sample());
  chat::ChatRequest request = request_of({});
  request.messages[1].tool_calls.pop_back();
  turns.put_back("t", request);
  EXPECT_TRUE(request.messages[1].sampled.empty());
}

TEST(SampledTurnsTest, TurnsThatCannotBeFoundAgainAreNotKept) {
  SampledTurns turns = in_memory();
  SampledTurn turn = sample("c0", "");
  turns.keep("t", turn);
  turn.calls.clear();
  turns.keep("t", turn);
  EXPECT_EQ(turns.use().values, 0U);
}

TEST(SampledTurnsTest, TheOldestGoWhenTheBudgetIsFull) {
  SampledTurns turns = SampledTurns::open({.max_bytes = 20000}).value();
  for (int number = 0; number < 40; ++number) {
    const std::string id = "c" + std::to_string(number);
    turns.keep("t", sample(id, id + "b"));
    EXPECT_TRUE(turns.find("t", "c0").has_value()) << "it is in use";
  }
  EXPECT_FALSE(turns.find("t", "c1").has_value());
  EXPECT_TRUE(turns.find("t", "c39").has_value());
  EXPECT_GT(turns.use().evicted, 0U);
  EXPECT_LE(turns.use().bytes, 20000U);
}

class SampledTurnsFileTest : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(folder_.path(), fs::perms::owner_all); }

  SampledTurns open() const {
    return SampledTurns::open({.memory = folder_.path(), .model = "m"}).value();
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder_ / "answers")) {
      if (entry.path().extension() == ".turns") return entry.path();
    }
    return {};
  }
  void put(const std::string& content) const {
    EXPECT_TRUE(write_whole_file(file(), std::as_bytes(std::span(content))));
    fs::permissions(file(), fs::perms::owner_read | fs::perms::owner_write);
  }

  test_support::TempFolder folder_;
};

TEST_F(SampledTurnsFileTest, ATurnComesBackWholeAfterARestart) {
  SampledTurn without_reasoning = sample("d0", "d1");
  without_reasoning.reasoning.reset();
  without_reasoning.start = {chat::ReplyStart::kCalls, true, true};
  {
    SampledTurns turns = open();
    turns.keep("t", sample());
    turns.keep("t", without_reasoning);
  }
  SampledTurns turns = open();
  const std::optional<SampledTurn> found = turns.find("t", "c1");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->ids, sample().ids);
  EXPECT_EQ(found->start, sample().start);
  EXPECT_EQ(found->reasoning, sample().reasoning);
  EXPECT_EQ(found->content, sample().content);
  EXPECT_EQ(found->calls, sample().calls);
  const std::optional<SampledTurn> second = turns.find("t", "d0");
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->start, without_reasoning.start);
  EXPECT_FALSE(second->reasoning.has_value());
  EXPECT_FALSE(turns.find("u", "c0").has_value());
}

TEST_F(SampledTurnsFileTest, AWriteThatWasCutAnywhereCostsTheTurnThatWasBeingWritten) {
  std::size_t before = 0;
  {
    SampledTurns turns = open();
    turns.keep("t", sample("c0", "c1"));
    before = fs::file_size(file());
    turns.keep("t", sample("d0", "d1"));
  }
  const std::string all = read_whole_file(file()).value();
  for (std::size_t bytes = before; bytes < all.size(); ++bytes) {
    put(all.substr(0, bytes));
    SampledTurns turns = open();
    ASSERT_EQ(turns.find("t", "c0")->ids, sample().ids) << bytes;
    ASSERT_FALSE(turns.find("t", "d0").has_value()) << bytes;
    ASSERT_EQ(turns.use().dropped, bytes == before ? 0U : 1U);
  }
}

TEST_F(SampledTurnsFileTest, AFlippedBitNeverChangesATurn) {
  {
    SampledTurns turns = open();
    turns.keep("t", sample("c0", "c1"));
    turns.keep("t", sample("d0", "d1"));
  }
  const std::string all = read_whole_file(file()).value();
  const Ids ids = sample().ids;
  for (std::size_t at = 0; at < all.size(); at += 7) {
    std::string damaged = all;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    put(damaged);
    SampledTurns turns = open();
    const std::optional<SampledTurn> first = turns.find("t", "c0");
    const std::optional<SampledTurn> second = turns.find("t", "d1");
    ASSERT_FALSE(first && second) << at;
    ASSERT_GE(turns.use().dropped, 1U) << at;
    ASSERT_TRUE(!first || first->ids == ids) << at;
    ASSERT_TRUE(!second || second->ids == ids) << at;
  }
}

}  // namespace
}  // namespace locket::service
