// The prompts of 367 requests, compared segment by segment and id by id.
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

using Edit = std::function<void(OrderedJson&)>;

// Rows where our rule differs from the library that made them, and the request that our rule makes
// them equal to. A row of requests that we refuse has no edit.
const std::map<std::string, Edit>& own_rules() {
  static const std::map<std::string, Edit> rules = {
      {"null_user", [](auto& request) { request["messages"][0]["content"] = ""; }},
      {"missing_user", [](auto& request) { request["messages"][0]["content"] = ""; }},
      {"null_system", [](auto& request) { request["messages"][0]["content"] = ""; }},
      {"null_tool", [](auto& request) { request["messages"][2]["content"] = ""; }},
      {"null_assistant", [](auto& request) { request["messages"][1]["content"] = ""; }},
      {"list_unknown_type",
       [](auto& request) {
         request["messages"][0]["content"][0] = {{"type", "text"},
                                                 {"text", "[Unsupported input_audio]"}};
       }},
      {"result_no_id",
       [](auto& request) {
         request["messages"][2]["tool_call_id"] = request["messages"][1]["tool_calls"][0]["id"];
       }},
      {"call_no_type",
       [](auto& request) { request["messages"][1]["tool_calls"][0]["type"] = "function"; }},
      {"role_developer", [](auto& request) { request["messages"][0]["role"] = "user"; }},
      {"format_json_no_word",
       [](auto& request) {
         OrderedJson messages = {{{"role", "system"}, {"content", ""}}};
         messages.push_back(request["messages"][0]);
         request["messages"] = messages;
       }},
      {"choice_required_no_tools", nullptr},
  };
  return rules;
}

// Integers beyond 64 bits keep their digits; the row has them as floats.
void keep_digits(OrderedJson& expected) {
  const std::map<std::string, std::string> digits = {
      {"1.8446744073709552e+19", "18446744073709551616"},
      {"-9.223372036854776e+18", "-9223372036854775809"},
      {"-0.0", "-0"}};
  for (OrderedJson& segment : expected["segments"]) {
    std::string text = segment[1];
    for (const auto& [from, to] : digits) {
      const std::size_t place = text.find(">" + from + "<");
      if (place != std::string::npos) text.replace(place + 1, from.size(), to);
    }
    segment[1] = text;
  }
  expected.erase("ids");
}

std::string sha256_of_ids(const std::vector<tokenizer::TokenId>& ids) {
  std::vector<std::byte> bytes(ids.size() * 4);
  std::memcpy(bytes.data(), ids.data(), bytes.size());
  const Sha256Digest digest = sha256(bytes);
  return to_hex(digest);
}

void expect_segments(const RenderedPrompt& prompt, const OrderedJson& expected) {
  if (!expected.contains("segments")) {
    const std::string text = join_segments(prompt.segments);
    const Sha256Digest digest = sha256(std::as_bytes(std::span(text)));
    EXPECT_EQ(to_hex(digest), expected["prompt_sha256"]);
    EXPECT_EQ(text.size(), expected["prompt_bytes"]);
    return;
  }
  OrderedJson segments = OrderedJson::array();
  for (const Segment& segment : prompt.segments) {
    const bool is_control = segment.kind == Segment::Kind::kControl;
    segments.push_back({is_control ? "c" : "t", segment.text});
  }
  EXPECT_EQ(segments, expected["segments"]);
}

void expect_prompt(const RenderedPrompt& prompt, const OrderedJson& expected) {
  expect_segments(prompt, expected);
  EXPECT_EQ(prompt.images.size(), expected["n_images"]);
  EXPECT_EQ(reply_start_name(prompt.parser.start), expected["parser"]["start"]);
  EXPECT_EQ(prompt.parser.tool_calls, expected["parser"]["tool_calls"]);
  EXPECT_EQ(prompt.parser.json, expected["parser"]["json"]);
}

void expect_ids(const RenderedPrompt& prompt, const OrderedJson& expected) {
  const Result<std::vector<tokenizer::TokenId>> ids =
      encode_segments(prompt.segments, *test_support::released_tokenizer("v41"));
  ASSERT_TRUE(ids.has_value()) << ids.error().message;
  if (expected.contains("ids")) {
    EXPECT_EQ(*ids, expected["ids"].get<std::vector<tokenizer::TokenId>>());
  } else if (expected.contains("ids_sha256_i32le")) {
    EXPECT_EQ(sha256_of_ids(*ids), expected["ids_sha256_i32le"]);
    EXPECT_EQ(ids->size(), expected["n_tokens"]);
  }
}

struct Row {
  std::string name;
  OrderedJson request;
  OrderedJson expected;
  std::string policy;
};

std::vector<Row> read_rows() {
  std::vector<Row> rows;
  for (OrderedJson& row : read_ordered_rows("prompt_vectors.jsonl")) {
    expand_repeats(row["request"]);
    expand_repeats(row["expected"]);
    rows.push_back({row["name"], row["request"], row["expected"], row.value("policy", "")});
    if (rows.back().name == "args_int_beyond_u64") keep_digits(rows.back().expected);
  }
  return rows;
}

// "may" leaves the row open: both answers are right, and a test of its own says which is ours.
bool is_open(const Row& row) { return row.policy.find(" may ") != std::string::npos; }

void print_count(std::string_view what, std::size_t count) {
  std::cout << "[  COUNT   ] " << what << ": " << count << '\n';
}

TEST(PromptVectorsTest, RendersEveryRowSegmentBySegment) {
  std::size_t equal = 0;
  for (const Row& row : read_rows()) {
    if (!row.policy.empty() || row.expected.contains("error")) continue;
    SCOPED_TRACE(row.name);
    const Result<ChatRequest> request = parse_chat_request(row.request.dump());
    ASSERT_TRUE(request.has_value()) << request.error().message;
    expect_prompt(render_segments(*request), row.expected);
    ++equal;
  }
  print_count("prompts equal in segments, images and parser start", equal);
  EXPECT_EQ(equal, 282U);
}

TEST(PromptVectorsTest, EncodesEveryRowIdById) {
  if (test_support::released_tokenizer("v41") == nullptr) {
    if (test_support::must_have_released_tokenizers()) {
      FAIL() << test_support::missing_tokenizer_message("v41");
    }
    GTEST_SKIP() << test_support::missing_tokenizer_message("v41");
  }
  std::size_t equal = 0;
  for (const Row& row : read_rows()) {
    const bool has_ids = row.expected.contains("ids") || row.expected.contains("ids_sha256_i32le");
    if (!row.policy.empty() || !has_ids) continue;
    SCOPED_TRACE(row.name);
    const Result<ChatRequest> request = parse_chat_request(row.request.dump());
    ASSERT_TRUE(request.has_value()) << request.error().message;
    expect_ids(render_segments(*request), row.expected);
    ++equal;
  }
  print_count("prompts equal in ids", equal);
  EXPECT_EQ(equal, 281U);
}

TEST(PromptVectorsTest, RefusesEveryRowThatIsRefused) {
  std::size_t refused = 0;
  for (const Row& row : read_rows()) {
    if (!row.policy.empty() || !row.expected.contains("error")) continue;
    EXPECT_NE(refusal_of(row.request.dump()), "") << row.name;
    ++refused;
  }
  print_count("requests refused", refused);
  EXPECT_EQ(refused, 60U);
}

TEST(PromptVectorsTest, FollowsOurRuleWhereARowStatesOne) {
  std::size_t ours = 0;
  for (const Row& row : read_rows()) {
    if (row.policy.empty() || is_open(row)) continue;
    SCOPED_TRACE(row.name);
    ++ours;
    const auto rule = own_rules().find(row.name);
    ASSERT_NE(rule, own_rules().end());
    if (rule->second == nullptr) {
      EXPECT_NE(refusal_of(row.request.dump()), "");
      continue;
    }
    OrderedJson equivalent = row.request;
    rule->second(equivalent);
    EXPECT_EQ(refusal_of(row.request.dump()), "");
    EXPECT_EQ(prompt_of(row.request.dump()), prompt_of(equivalent.dump()));
  }
  print_count("rows that follow our rule", ours);
  EXPECT_EQ(ours, own_rules().size());
}

// What we do where a row leaves it open. Empty: refused.
TEST(PromptVectorsTest, DecidesTheOpenRows) {
  const std::map<std::string, std::string> accepted_end = {
      {"effort_bad_'37'", ""},
      {"list_string_item", "this evening?<｜Assistant｜></think>"},
      {"list_reminder",
       "<｜latest_reminder｜>x<｜User｜>When does the water turn this "
       "evening?<｜Assistant｜></think>"},
      {"image_url_string", "<｜User｜><｜deepseek_image｜><｜Assistant｜></think>"},
      {"tool_bad_no_type", "this evening?<｜Assistant｜></think>"},
      {"result_missing",
       "<tool_result>x</tool_result>\n\nAnd the day after that?"
       "<｜Assistant｜></think>"},
      {"result_none", "</｜DSML｜ calls><｜end▁of▁sentence｜><｜Assistant｜></think>"},
      {"result_after_user",
       "<｜User｜>And the day after that?\n\n<tool_result>x</tool_result>"
       "<｜Assistant｜></think>"},
      {"result_split_by_user",
       "<tool_result>x</tool_result>\n\nAnd the day after that?\n\n"
       "<tool_result>y</tool_result><｜Assistant｜></think>"},
      {"result_split_by_system",
       "<tool_result>x</tool_result><｜System｜>y<｜User｜>"
       "<tool_result>z</tool_result><｜Assistant｜></think>"},
      {"call_empty_list", "And the day after that?<｜Assistant｜></think>"},
      {"call_args_object", "<tool_result>y</tool_result><｜Assistant｜></think>"},
      {"call_no_args", "<tool_result>y</tool_result><｜Assistant｜></think>"},
      {"prefix_null_content", "this evening?<｜Assistant｜></think>"},
  };
  std::size_t open = 0;
  for (const Row& row : read_rows()) {
    if (!is_open(row)) continue;
    SCOPED_TRACE(row.name);
    ++open;
    const std::string& end = accepted_end.at(row.name);
    const std::string prompt = prompt_of(row.request.dump());
    EXPECT_EQ(prompt.starts_with("refused: "), end.empty()) << prompt;
    EXPECT_TRUE(prompt.ends_with(end)) << prompt;
  }
  print_count("rows that leave it open", open);
  EXPECT_EQ(open, accepted_end.size());
}

}  // namespace
}  // namespace locket::chat
