// What a client can size is bounded: levels, values, messages, and what is skipped costs nothing.
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "chat/json_reader.h"
#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  out.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string levels(std::size_t count) { return repeated("[", count) + repeated("]", count); }

constexpr std::array<std::string_view, 1> kWanted = {"a"};

TEST(RequestLimitsTest, RequestsNestNoDeeperThan128Levels) {
  const auto body = [](std::size_t count) { return R"({"model": )" + levels(count) + "}"; };
  for (const Parser parser : {&parse_chat_request, &parse_messages_request, &parse_responses}) {
    EXPECT_EQ(refusal(parser, body(128)).find("levels"), std::string::npos);
    EXPECT_NE(refusal(parser, body(129)).find("more than 128 levels"), std::string::npos);
    // A body that is skipped is no way around it.
    EXPECT_NE(refusal(parser, R"({"zzz": )" + levels(100000) + "}").find("more than 128 levels"),
              std::string::npos);
  }
}

TEST(RequestLimitsTest, RequestsHoldNoMoreThanAMillionValues) {
  const std::string list = "[" + repeated("0,", 1'000'000) + "0]";
  for (const Parser parser : {&parse_chat_request, &parse_messages_request, &parse_responses}) {
    EXPECT_NE(refusal(parser, R"({"model": )" + list + "}").find("more than 1000000 values"),
              std::string::npos);
  }
  // Neither do names at the top, though what they hold is skipped.
  JsonLimits limits;
  limits.values = 3;
  limits.wanted = kWanted;
  EXPECT_TRUE(read_json(R"({"b": [1, 2, 3, 4], "a": 1})", "it", limits).has_value());
  EXPECT_FALSE(read_json(R"({"b": 1, "c": 1, "a": 1})", "it", limits).has_value());
}

TEST(RequestLimitsTest, ACallsArgumentsArePlainTextBeyondTheLimits) {
  const std::string arguments = R"({\"x\":)" + levels(1000) + "}";
  const std::string prompt = prompt_text(
      &parse_chat_request,
      R"({"messages": [{"role": "assistant", "tool_calls": [{"id": "k", "function":
          {"name": "f", "arguments": ")" +
          arguments + R"("}}]}, {"role": "tool", "tool_call_id": "k", "content": "x"}]})");
  EXPECT_NE(prompt.find("parameter name=\"arguments\" string=\"true\">{\"x\":[["),
            std::string::npos);
}

TEST(RequestLimitsTest, AConversationHasNoMoreThan20000Messages) {
  const std::string one = R"({"role": "user", "content": "q"},)";
  const auto list = [&](std::string_view name, std::size_t count) {
    return "{\"" + std::string(name) + "\": [" + repeated(one, count - 1) +
           R"({"role": "user", "content": "q"}]})";
  };
  EXPECT_EQ(refusal(&parse_chat_request, list("messages", 20'000)), "");
  EXPECT_EQ(refusal(&parse_chat_request, list("messages", 20'001)),
            "messages has 20001 entries; at most 20000 are allowed");
  EXPECT_EQ(refusal(&parse_messages_request, list("messages", 20'001)),
            "messages has 20001 entries; at most 20000 are allowed");
  EXPECT_EQ(refusal(&parse_responses, list("input", 20'001)),
            "input has 20001 entries; at most 20000 are allowed");
}

TEST(RequestLimitsTest, SkippedMembersAreCheckedAndReadAsNull) {
  JsonLimits limits;
  limits.wanted = kWanted;
  const auto value =
      read_json(R"({"b": {"a": [1, "x"], "c": [["\n"]]}, "a": {"b": [2]}})", "it", limits);
  ASSERT_TRUE(value.has_value()) << value.error().message;
  ASSERT_EQ(value->members.size(), 2U);
  EXPECT_TRUE(value->members[0].value.is_null());
  ASSERT_NE(value->find("a")->find("b"), nullptr);
  EXPECT_EQ(value->find("a")->find("b")->items.size(), 1U);
  for (const std::string_view text :
       {R"({"b": {"c": [1,]}})", R"({"b": "\ud83d"})", R"({"b": tru})", R"({"b": [1)"}) {
    EXPECT_FALSE(read_json(text, "it", limits).has_value()) << text;
  }
  const auto broken = read_json(R"({"b": {"c": [1, "\s"]}})", "it", limits);
  EXPECT_NE(broken.error().message.find("b.c[1]"), std::string::npos) << broken.error().message;
}

TEST(RequestLimitsTest, UnknownNamesAreListedUpToABound) {
  std::string body = R"({"input": "q")";
  for (int i = 0; i < 100; ++i) body += ", \"x" + std::to_string(i) + "\": 1";
  body += ", \"" + std::string(1000, 'y') + "\": 1}";
  EXPECT_EQ(parse_responses(body)->unknown_fields.size(), 32U);
}

}  // namespace
}  // namespace locket::chat
