#include "chat/request_json.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

// A request with one user message and `fields` beside it.
std::string with_fields(std::string_view fields) {
  return R"({"messages": [{"role": "user", "content": "q"}], )" + std::string(fields) + "}";
}

ChatRequest accepted(std::string_view fields) {
  Result<ChatRequest> request = parse_chat_request(with_fields(fields));
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request.value_or(ChatRequest{});
}

std::string refused(std::string_view fields) { return refusal_of(with_fields(fields)); }

std::string with_messages(std::string_view messages) {
  return R"({"messages": [)" + std::string(messages) + "]}";
}

TEST(RequestJsonTest, ReadsSamplingAndLimits) {
  const ChatRequest request = accepted(
      R"("model": "m", "temperature": 0, "top_p": 0.95, "min_p": 0.05, "top_k": -1, "seed": -1,
         "max_tokens": 7, "n": 2, "stop": ["a", "b"], "stream": true,
         "stream_options": {"include_usage": true}, "logprobs": true, "top_logprobs": 20,
         "logit_bias": {"5": -100, "7": 2.5}, "user_id": "u", "ignore_eos": true)");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.sampling.temperature, 0.0);
  EXPECT_EQ(request.sampling.top_p, 0.95);
  EXPECT_EQ(request.sampling.min_p, 0.05);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.seed, 0xFFFFFFFFFFFFFFFFU);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.n, 2);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.is_stream && request.wants_stream_usage && request.wants_logprobs);
  EXPECT_EQ(request.top_logprobs, 20);
  ASSERT_EQ(request.sampling.logit_bias.size(), 2U);
  EXPECT_EQ(request.sampling.logit_bias[1].token, 7);
  EXPECT_EQ(request.sampling.logit_bias[1].bias, 2.5);
  EXPECT_EQ(request.user_id, "u");
  EXPECT_TRUE(request.ignore_eos);
}

TEST(RequestJsonTest, TreatsNullAsAbsent) {
  const ChatRequest request = accepted(
      R"("temperature": null, "stop": null, "max_tokens": null, "seed": null, "tools": null,
         "tool_choice": null, "response_format": null, "thinking": null, "stream": null)");
  EXPECT_FALSE(request.sampling.temperature.has_value());
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_TRUE(request.tools.empty());
  EXPECT_EQ(request.thinking, ThinkingMode::kThinking);
}

TEST(RequestJsonTest, PrefersMaxCompletionTokens) {
  EXPECT_EQ(accepted(R"("max_tokens": 7, "max_completion_tokens": 9)").max_tokens, 9);
}

TEST(RequestJsonTest, NamesTheFieldTheValueAndWhatWouldBeRight) {
  EXPECT_EQ(refused(R"("temperature": 3)"), "temperature is 3; it must be a number from 0 to 2");
  EXPECT_EQ(refused(R"("n": 0)"), "n is 0; it must be an integer from 1 to 128");
  EXPECT_EQ(refused(R"("stream": "yes")"), "stream is \"yes\"; it must be true or false");
  EXPECT_EQ(refused(R"("stop": [""])"),
            "stop is a list; it must be a string that is not empty, or a list of such strings");
  EXPECT_EQ(refused(R"("top_logprobs": 3)"), "top_logprobs is set; logprobs must be true with it");
  EXPECT_EQ(refused(R"("seed": 1.5)"), "seed is 1.5; it must be an integer of at most 64 bits");
  EXPECT_EQ(refused(R"("logit_bias": {"x": 1})"),
            "logit_bias has the name \"x\"; names must be token ids");
  EXPECT_EQ(refusal_of("[1]"), "the body is a list; it must be an object");
  EXPECT_EQ(refusal_of("{}"), "messages is missing; it must be a list of messages");
  EXPECT_EQ(refusal_of(with_messages(R"({"role": "user", "content": {"a": 1}})")),
            "messages[0].content is an object; it must be a string or a list of parts");
  EXPECT_EQ(refusal_of(with_messages("7")), "messages[0] is 7; it must be an object with a role");
}

TEST(RequestJsonTest, CutsLongValuesInMessages) {
  std::string word;
  for (int i = 0; i < 100; ++i) word += "ä";
  const std::string message = refused(R"("reasoning_effort": ")" + word + "\"");
  EXPECT_EQ(tokenizer::repair_utf8(message), message);
  const std::string shown = refused(R"("temperature": ")" + word + "\"");
  EXPECT_LT(shown.size(), 160U);
  EXPECT_EQ(tokenizer::repair_utf8(shown), shown);
}

TEST(RequestJsonTest, AcceptsSixteenStopStringsAndNoMore) {
  const auto list = [](int count) {
    std::string stop = "\"stop\": [\"s0\"";
    for (int i = 1; i < count; ++i) stop += ", \"s" + std::to_string(i) + "\"";
    return stop + "]";
  };
  EXPECT_EQ(accepted(list(16)).stop.size(), 16U);
  EXPECT_EQ(refused(list(17)), "stop has 17 strings; at most 16 are allowed");
  EXPECT_EQ(accepted(R"("stop": "one")").stop, (std::vector<std::string>{"one"}));
}

TEST(RequestJsonTest, ListsTheFieldsThatNothingReads) {
  const ChatRequest request = accepted(R"("zzz": 1, "temperature": 1, "another": {"a": []})");
  EXPECT_EQ(request.unknown_fields, (std::vector<std::string>{"zzz", "another"}));
}

TEST(RequestJsonTest, MapsEffortNamesAndNumbers) {
  const auto effort = [](std::string_view value) {
    return accepted("\"reasoning_effort\": " + std::string(value)).effort;
  };
  EXPECT_EQ(effort("\"minimal\""), 50);
  EXPECT_EQ(effort("\"xhigh\""), 75);
  EXPECT_EQ(effort("\"ultra\""), 100);
  EXPECT_EQ(effort("1"), 1);
  EXPECT_EQ(effort("100"), 100);
  for (const std::string_view value : {"0", "101", "-1", "37.5", "true", "[]", "\"37\"", "\"\""}) {
    EXPECT_NE(refused("\"reasoning_effort\": " + std::string(value)), "") << value;
  }
}

TEST(RequestJsonTest, SwitchesThinkingByTheClearestWord) {
  const auto thinks = [](std::string_view fields) {
    return accepted(fields).thinking == ThinkingMode::kThinking;
  };
  EXPECT_TRUE(thinks(R"("n": 1)"));
  EXPECT_FALSE(thinks(R"("reasoning_effort": "none")"));
  EXPECT_TRUE(thinks(R"("thinking": {"type": "adaptive"}, "reasoning_effort": "none")"));
  EXPECT_FALSE(thinks(R"("thinking": {"type": "disabled"}, "reasoning_effort": "max")"));
  EXPECT_FALSE(thinks(R"("chat_template_kwargs": {"thinking": false})"));
  EXPECT_FALSE(thinks(R"("chat_template_kwargs": {"enable_thinking": false})"));
  EXPECT_TRUE(
      thinks(R"("thinking": {"type": "enabled"}, "chat_template_kwargs": {"thinking": false})"));
  EXPECT_EQ(accepted(R"("chat_template_kwargs": {"reasoning_effort": "low"})").effort, 50);
}

TEST(RequestJsonTest, AForcedCallSwitchesThinkingOffUnlessItWasAskedFor) {
  constexpr std::string_view kTool = R"("tools": [{"function": {"name": "f"}}], )";
  const auto fields = [&](std::string_view rest) {
    return std::string(kTool) + R"("tool_choice": "required")" + std::string(rest);
  };
  EXPECT_EQ(accepted(fields("")).thinking, ThinkingMode::kChat);
  EXPECT_EQ(accepted(fields(R"(, "reasoning_effort": "max")")).thinking, ThinkingMode::kChat);
  EXPECT_NE(refused(fields(R"(, "thinking": {"type": "enabled"})")), "");
  EXPECT_NE(refused(fields(R"(, "thinking": {"type": "adaptive"})")), "");
}

TEST(RequestJsonTest, BoundsToolsAndTheirNames) {
  const auto tools = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      list += (i == 0 ? "" : ", ") + ("{\"function\": {\"name\": \"f" + std::to_string(i) + "\"}}");
    }
    return "\"tools\": [" + list + "]";
  };
  EXPECT_EQ(accepted(tools(128)).tools.size(), 128U);
  EXPECT_EQ(refused(tools(129)), "tools has 129 entries; at most 128 are allowed");
  const auto named = [](const std::string& name) {
    return "\"tools\": [{\"function\": {\"name\": \"" + name + "\"}}]";
  };
  EXPECT_EQ(accepted(named(std::string(64, 'a'))).tools[0].name.size(), 64U);
  EXPECT_NE(refused(named(std::string(65, 'a'))), "");
  EXPECT_NE(refused(named("a.b")), "");
}

TEST(RequestJsonTest, NamesAnUnknownTask) {
  EXPECT_EQ(refusal_of(with_messages(R"({"role": "user", "content": "q", "task": "sing"})")),
            "messages[0].task is \"sing\"; it must be one of \"action\" \"query\" \"authority\" "
            "\"domain\" \"title\" \"read_url\"");
}

TEST(RequestJsonTest, RefusesResultsWithoutCalls) {
  EXPECT_EQ(refusal_of(with_messages(R"({"role": "user", "content": "q"},
                {"role": "tool", "tool_call_id": "zz", "content": "x"})")),
            "messages[1] is a result for the call \"zz\", and no earlier message has such a call "
            "without a result; send the whole conversation, with the assistant message that made "
            "the call");
}

TEST(RequestJsonTest, TakesALateResultOfAnOlderCall) {
  EXPECT_EQ(refusal_of(with_messages(R"({"role": "user", "content": "q"},
      {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
      {"role": "assistant", "tool_calls": [{"id": "b", "function": {"name": "f"}}]},
      {"role": "tool", "tool_call_id": "b", "content": "x"},
      {"role": "tool", "tool_call_id": "a", "content": "y"})")),
            "");
}

TEST(RequestJsonTest, RefusesAnUnfinishedMessageThatCannotBeContinued) {
  EXPECT_NE(refusal_of(with_messages(R"({"role": "assistant", "content": "a", "prefix": true},
                {"role": "user", "content": "q"})"))
                .find("messages[0].prefix is true, but the message is not the last message"),
            std::string::npos);
}

TEST(RequestJsonTest, ReadsTheExtensionsOfOtherServers) {
  const ChatRequest request = accepted(
      R"("min_tokens": 3, "max_tokens": 4, "stop_token_ids": [1, 2], "cache_salt": "a+/=~",
         "include_stop_str_in_output": true, "skip_special_tokens": false,
         "service_tier": "auto", "store": false, "metadata": {"a": "b"},
         "parallel_tool_calls": true, "prompt_cache_key": "k", "verbosity": "low")");
  EXPECT_EQ(request.min_tokens, 3);
  EXPECT_EQ(request.stop_tokens, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(request.cache_salt, "a+/=~");
  EXPECT_TRUE(request.keeps_stop_text);
  EXPECT_TRUE(request.unknown_fields.empty());
  EXPECT_EQ(refused(R"("min_tokens": 5, "max_completion_tokens": 4)"),
            "min_tokens is 5; it must not be above the 4 tokens that the answer may have");
  EXPECT_EQ(refused(R"("stop_token_ids": [-1])"), "stop_token_ids[0] is -1; it must be a token id");
  EXPECT_NE(refused(R"("min_tokens": -1)"), "");
  EXPECT_NE(refused(R"("include_stop_str_in_output": 1)"), "");
}

TEST(RequestJsonTest, ChecksTheCharactersOfSaltAndUser) {
  EXPECT_EQ(accepted("\"cache_salt\": \"" + std::string(128, 's') + "\"").cache_salt.size(), 128U);
  for (const std::string& salt : {std::string(), std::string("a b"), std::string("\\n"),
                                  std::string("ä"), std::string(129, 's')}) {
    EXPECT_NE(refused("\"cache_salt\": \"" + salt + "\"").find("cache_salt is "), std::string::npos)
        << salt;
  }
  EXPECT_NE(refused(R"("cache_salt": 7)"), "");
  EXPECT_EQ(accepted("\"user_id\": \"" + std::string(512, 'u') + "\"").user_id.size(), 512U);
  for (const std::string& user :
       {std::string(), std::string("a.b"), std::string("ü"), std::string(513, 'u')}) {
    EXPECT_NE(refused("\"user_id\": \"" + user + "\"").find("user_id is "), std::string::npos)
        << user;
  }
}

TEST(RequestJsonTest, TakesOtherServersWaysToGuideAnAnswer) {
  const auto schema = [](std::string_view fields) {
    return accepted(fields).response_format.schema;
  };
  constexpr std::string_view kSchema = R"({"type": "object"})";
  EXPECT_EQ(schema(R"("guided_json": {"type":"object"})"), kSchema);
  EXPECT_EQ(schema(R"("guided_json": "{\"type\":\"object\"}")"), kSchema);
  EXPECT_EQ(schema(R"("structured_outputs": {"json": {"type":"object"}})"), kSchema);
  EXPECT_EQ(accepted(R"("structured_outputs": {"json_object": true})").response_format.kind,
            ResponseFormat::Kind::kJsonObject);
  EXPECT_EQ(accepted(R"("structured_outputs": {}, "guided_regex": null)").response_format.kind,
            ResponseFormat::Kind::kText);
  // What the format itself says goes first.
  EXPECT_EQ(accepted(R"("guided_json": {"type":"object"}, "response_format": {"type": "text"})")
                .response_format.kind,
            ResponseFormat::Kind::kText);
  for (const std::string_view fields :
       {R"("guided_regex": "a+")", R"("structured_outputs": {"choice": ["a"]})"}) {
    EXPECT_EQ(parse_chat_request(with_fields(fields)).error().code, ErrorCode::kUnsupported);
  }
  EXPECT_NE(refused(R"("guided_json": "[")"), "");
  EXPECT_NE(refused(R"("guided_json": 7)"), "");
}

TEST(RequestJsonTest, OldNamesOfModelsSayWhetherToThink) {
  const auto mode = [](std::string_view fields) { return accepted(fields).thinking; };
  EXPECT_EQ(mode(R"("model": "deepseek-chat")"), ThinkingMode::kChat);
  EXPECT_EQ(mode(R"("model": "deepseek-reasoner[1m]")"), ThinkingMode::kThinking);
  EXPECT_EQ(mode(R"("model": "deepseek-chat", "thinking": {"type": "enabled"})"),
            ThinkingMode::kThinking);
  EXPECT_EQ(mode(R"("model": "deepseek-reasoner", "thinking": {"type": "disabled"})"),
            ThinkingMode::kChat);
}

TEST(RequestJsonTest, TakesListsOfTextInEveryRole) {
  const auto body = [](std::string_view content) {
    std::string messages;
    for (const std::string role : {"system", "user", "assistant", "developer", "latest_reminder"}) {
      messages += R"({"role": ")" + role + R"(", "content": )" + std::string(content) + "}, ";
    }
    return with_messages(messages + R"({"role": "user", "content": "q"})");
  };
  EXPECT_EQ(prompt_of(body(R"([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])")),
            prompt_of(body(R"("a\n\nb")")));
}

}  // namespace
}  // namespace locket::chat
