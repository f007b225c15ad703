// Hostile and random request bodies of all formats: nothing may crash, and the reader agrees with
// another JSON library on what is JSON.
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chat/json_reader.h"
#include "chat/python_json.h"
#include "chat/render_prompt.h"
#include "tests/chat/dialect_rows.h"
#include "tests/fuzz/broken_text.h"

namespace locket::chat {
namespace {

constexpr std::string_view kSeeds[] = {
    R"({"messages":[{"role":"user","content":"a\u00e9\ud83d\ude00\\\"\n"}],"temperature":0.5,"n":1})",
    R"({"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":[1,2.5e3,-0,null,true]}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x"}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"f"}}})",
    R"([1,2.50,-7,1e5,1E-7,0.1,123456789012345678901,{"k":{"k":[[],{}]}},false,null,"\u2028/"])",
    R"({"response_format":{"type":"json_schema","json_schema":{"schema":{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}},"strict":true}},"messages":[{"role":"user","content":"q","task":"title"}],"stop":["a","b"],"logit_bias":{"1":2}})"};

constexpr std::string_view kInserts[] = {
    "\"",   "\\",      "{",    "}",    "[",    "]", ",",  ":",    "0", "-",     ".",   "e",
    "null", "\\ud83d", "\\u0", "\xFF", "\xC3", "😀", "\n", "true", " ", "1e999", "\\s", "9"};

std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = below(text.size());
    switch (below(3)) {
      case 0:
        text.erase(at, 1 + below(4));
        break;
      case 1:
        text.insert(at, kInserts[below(std::size(kInserts))]);
        break;
      default:
        text[at] = static_cast<char>(below(256));
        break;
    }
  }
  return text;
}

TEST(ChatRequestJsonFuzzTest, AgreesWithAnotherLibraryOnWhatIsJson) {
  std::mt19937 random(20260911);
  std::size_t accepted = 0;
  for (int round = 0; round < 40000; ++round) {
    const std::string text = mutate(std::string(kSeeds[random() % std::size(kSeeds)]), random);
    const Result<JsonValue> ours = read_json(text, "the body");
    // It skips a byte order mark at the start; ours refuses one.
    if (text.starts_with('\xEF')) continue;
    ASSERT_EQ(ours.has_value(), nlohmann::json::accept(text)) << text;
    if (!ours) {
      EXPECT_EQ(tokenizer::repair_utf8(ours.error().message), ours.error().message);
      continue;
    }
    ++accepted;
    // Written out and read again, the value is the same.
    const std::string written = python_json(*ours);
    ASSERT_EQ(python_json(read_json(written, "again").value()), written);
    ASSERT_EQ(OrderedJson::parse(written), OrderedJson::parse(text)) << text;
  }
  EXPECT_GT(accepted, 1000U);
}

// Every format renders the request, or says what it has no words for.
void expect_renders(const ChatRequest& request) {
  for (int value = 0; value < static_cast<int>(ChatFormat::kCount); ++value) {
    const auto format = static_cast<ChatFormat>(value);
    const Result<RenderedPrompt> prompt = render_segments(request, format);
    if (!prompt) {
      EXPECT_EQ(prompt.error().code, ErrorCode::kUnsupported);
      EXPECT_NE(format, ChatFormat::kV41);
      continue;
    }
    const std::string text = join_segments(prompt->segments);
    EXPECT_TRUE(text.starts_with("<｜begin▁of▁sentence｜>") || text.starts_with("<|im_start|>"));
    EXPECT_EQ(tokenizer::repair_utf8(text), text);
    EXPECT_LE(prompt->system_segments, prompt->segments.size());
  }
}

TEST(ChatRequestJsonFuzzTest, NoRequestBringsTheRenderersDown) {
  std::mt19937 random(20260912);
  std::size_t rendered = 0;
  for (int round = 0; round < 40000; ++round) {
    const std::string text = mutate(std::string(kSeeds[random() % std::size(kSeeds)]), random);
    const Result<ChatRequest> request = parse_chat_request(text);
    if (!request) {
      EXPECT_EQ(request.error().code, ErrorCode::kBadRequest);
      EXPECT_EQ(tokenizer::repair_utf8(request.error().message), request.error().message);
      continue;
    }
    ++rendered;
    expect_renders(*request);
  }
  EXPECT_GT(rendered, 1000U);
}

// Every list and object of `value` loses or doubles a member, or gets one of another kind, with a
// chance of one in `odds`.
void shake(OrderedJson& value, std::mt19937& random, std::uint32_t odds) {
  if (!value.is_structured()) return;
  for (auto& item : value) {
    shake(item, random, odds);
    if (random() % odds != 0) continue;
    static const OrderedJson kOthers[] = {
        nullptr, "x", "", 7, -1, true, OrderedJson::array(), OrderedJson::object()};
    item = kOthers[random() % std::size(kOthers)];
  }
  if (value.is_array() && !value.empty() && random() % odds == 0) value.push_back(value.front());
  if (value.is_array() && !value.empty() && random() % odds == 0) value.erase(0);
}

void expect_sound(Parser parser, const std::string& body, std::size_t& rendered) {
  const Result<ChatRequest> request = parser(body);
  if (!request) {
    const bool is_clients = request.error().code == ErrorCode::kBadRequest ||
                            request.error().code == ErrorCode::kUnsupported;
    EXPECT_TRUE(is_clients) << request.error().message;
    EXPECT_EQ(tokenizer::repair_utf8(request.error().message), request.error().message);
    EXPECT_LT(request.error().message.size(), 100'000U);
    return;
  }
  ++rendered;
  expect_renders(*request);
}

std::vector<std::string> broken_copies(fuzz::BrokenText& text) {
  return {text.cut(), text.flipped(), text.edited(), text.renumbered()};
}

// Long texts say nothing new here and cost time.
void shorten(OrderedJson& value) {
  if (value.is_string() && value.get<std::string>().size() > 100) value = "long";
  if (!value.is_structured()) return;
  for (auto& item : value) shorten(item);
}

void try_all_parsers(const std::string& body, std::size_t& rendered) {
  for (const Parser parser : {&parse_chat_request, &parse_messages_request, &parse_responses}) {
    expect_sound(parser, body, rendered);
  }
}

TEST(ChatRequestJsonFuzzTest, NoBrokenRequestOfAClientBringsAParserDown) {
  std::mt19937 random(20260913);
  std::size_t rendered = 0;
  for (ClientRequest& client : all_client_requests()) {
    SCOPED_TRACE(client.name);
    shorten(client.body);
    if (client.body.contains("tools") && client.body["tools"].size() > 3) {
      client.body["tools"].erase(client.body["tools"].begin() + 3, client.body["tools"].end());
    }
    fuzz::BrokenText broken(client.body.dump(), static_cast<std::uint32_t>(random()));
    for (int round = 0; round < 100; ++round) {
      OrderedJson shaken = client.body;
      shake(shaken, random, 40);
      try_all_parsers(shaken.dump(), rendered);
      for (const std::string& body : broken_copies(broken)) try_all_parsers(body, rendered);
    }
  }
  EXPECT_GT(rendered, 500U);
}

void try_completion(const std::string& body, std::size_t& rendered) {
  const Result<CompletionRequest> request = parse_completion_request(body);
  if (!request) return;
  ++rendered;
  const auto prompt = render_completion(*request, test_support::small_tokenizer());
  EXPECT_TRUE(prompt || prompt.error().code == ErrorCode::kBadRequest);
}

TEST(ChatRequestJsonFuzzTest, NoCompletionRequestBringsItsParserDown) {
  constexpr std::string_view kBody =
      R"({"model":"m","prompt":"a b","suffix":"c","echo":true,"logprobs":3,"n":2,"best_of":2,"max_tokens":7,"stop":["x","y"],"stream":true,"stream_options":{"include_usage":true},"user_id":"u","cache_salt":"s"})";
  constexpr std::string_view kTokens = R"({"prompt":[[1,2,3,1023]],"min_tokens":1,"seed":3})";
  std::size_t rendered = 0;
  for (const std::string_view seed : {kBody, kTokens}) {
    fuzz::BrokenText broken(std::string(seed), 20260914);
    for (int round = 0; round < 2000; ++round) {
      for (const std::string& body : broken_copies(broken)) try_completion(body, rendered);
    }
  }
  EXPECT_GT(rendered, 500U);
}

}  // namespace
}  // namespace locket::chat
