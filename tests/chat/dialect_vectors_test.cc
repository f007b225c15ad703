// The prompts of 52 requests of the Responses and the Messages format, compared segment by segment
// and id by id.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

struct Row {
  std::string name;
  Parser parser;
  std::string body;
  OrderedJson expected;
};

// The library that made the rows treats "any" as "auto". Ours forces a call, since a client that
// wants structured output sends it and fails on text.
constexpr std::string_view kForcedByOurRule = "messages_choice_any";

std::vector<Row> read_rows() {
  std::vector<Row> rows;
  for (OrderedJson& row : read_ordered_rows("prompt_vectors_dialects.jsonl")) {
    const bool is_responses = row["dialect"] == "responses";
    rows.push_back({row["name"], is_responses ? &parse_responses : &parse_messages_request,
                    row["request"].dump(), row["expected"]});
    if (rows.back().name != kForcedByOurRule) continue;
    OrderedJson& segments = rows.back().expected["segments"];
    segments.push_back({"t", "\n\n<"});
    segments.push_back({"c", "｜DSML｜"});
    segments.push_back({"t", " calls>\n"});
    rows.back().expected.erase("ids");
  }
  return rows;
}

OrderedJson segments_of(const RenderedPrompt& prompt) {
  OrderedJson segments = OrderedJson::array();
  for (const Segment& segment : prompt.segments) {
    const bool is_control = segment.kind == Segment::Kind::kControl;
    segments.push_back({is_control ? "c" : "t", segment.text});
  }
  return segments;
}

TEST(DialectVectorsTest, RendersEveryRowSegmentBySegment) {
  std::size_t equal = 0;
  for (const Row& row : read_rows()) {
    if (row.expected.contains("error")) continue;
    SCOPED_TRACE(row.name);
    const Result<ChatRequest> request = row.parser(row.body);
    ASSERT_TRUE(request.has_value()) << request.error().message;
    const RenderedPrompt prompt = render_segments(*request);
    EXPECT_EQ(segments_of(prompt), row.expected["segments"]);
    EXPECT_EQ(prompt.images.size(), row.expected["n_images"]);
    ++equal;
  }
  EXPECT_EQ(equal, 43U);
}

TEST(DialectVectorsTest, RefusesEveryRowThatIsRefused) {
  std::size_t refused = 0;
  for (const Row& row : read_rows()) {
    if (!row.expected.contains("error")) continue;
    EXPECT_NE(refusal(row.parser, row.body), "") << row.name;
    ++refused;
  }
  EXPECT_EQ(refused, 9U);
}

TEST(DialectVectorsTest, EncodesEveryRowIdById) {
  const tokenizer::Tokenizer* tokenizer = test_support::released_tokenizer("v41");
  if (tokenizer == nullptr) {
    if (test_support::must_have_released_tokenizers()) {
      FAIL() << test_support::missing_tokenizer_message("v41");
    }
    GTEST_SKIP() << test_support::missing_tokenizer_message("v41");
  }
  std::size_t equal = 0;
  for (const Row& row : read_rows()) {
    if (!row.expected.contains("ids")) continue;
    SCOPED_TRACE(row.name);
    const Result<ChatRequest> request = row.parser(row.body);
    ASSERT_TRUE(request.has_value()) << request.error().message;
    const Result<RenderedPrompt> prompt = render_v41(*request, *tokenizer);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    EXPECT_EQ(prompt->ids, row.expected["ids"].get<std::vector<tokenizer::TokenId>>());
    ++equal;
  }
  EXPECT_EQ(equal, 42U);
}

TEST(DialectVectorsTest, NamesTheCallWithoutAResult) {
  std::size_t named = 0;
  for (const Row& row : read_rows()) {
    const bool is_missing = row.name == "responses_call_missing_output" ||
                            row.name.starts_with("messages_tool_result_missing") ||
                            row.name == "messages_tool_result_text_first";
    if (!is_missing) continue;
    EXPECT_NE(refusal(row.parser, row.body).find("k1"), std::string::npos) << row.name;
    ++named;
  }
  EXPECT_EQ(named, 3U);
}

}  // namespace
}  // namespace locket::chat
