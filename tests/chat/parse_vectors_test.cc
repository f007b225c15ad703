// 195 model outputs, each whole, in every split in two, byte by byte and in small pieces.
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

struct Row {
  std::string name;
  ParserStart start;
  std::vector<std::string> stop;
  std::vector<std::string> pieces;  // of the output: one per id, or the whole text
  FinishReason finish = FinishReason::kStop;
  OrderedJson expected;
  bool squeezes_spaces = false;
  std::string policy;
  std::string missing;  // why the row cannot run
};

template <class Enum>
Enum find_named(std::string_view (*name_of)(Enum), const std::string& name) {
  for (int value = 0; value < static_cast<int>(Enum::kCount); ++value) {
    if (name_of(static_cast<Enum>(value)) == name) return static_cast<Enum>(value);
  }
  ADD_FAILURE() << "unknown name " << name;
  return Enum::kCount;
}

std::vector<std::string> decode(const OrderedJson& ids, const tokenizer::Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  tokenizer::StreamDecoder decoder(tokenizer);
  for (const OrderedJson& id : ids) pieces.push_back(decoder.push(id));
  pieces.push_back(decoder.finish());
  return pieces;
}

// Our rule where the row gives the library's result only.
void apply_own_rule(const std::string& policy, Row& row) {
  OrderedJson& expected = row.expected;
  const bool is_cut = policy.starts_with("C29");
  const bool is_malformed = policy.starts_with("C16") && policy != "C16 allows refusing";
  if (is_cut || is_malformed) {
    expected["tool_calls"] = OrderedJson::array();
    if (expected["finish_reason"] == "tool_calls") expected["finish_reason"] = "stop";
  }
  const std::map<std::string, std::string> contents = {
      {"empty_block_text", "It turns at 18:42."},
      {"empty_block_v4_text", "ok"},
      {"stray_invoke_close", "It turns at 18:42.On Friday it turns at 19:31."},
      {"stray_calls_close", "It turns at 18:42.\n"},
      {"tools_off_call", "It turns at 18:42."},
      {"tools_off_chat", ""},
      {"ids_cut_character", "ab\uFFFD"}};
  const auto content = contents.find(row.name);
  if (content != contents.end()) expected["content"] = content->second;
  if (row.name == "stray_close_in_reasoning") {
    expected["reasoning"] = "The table for today says 18:42, summer time included.x";
  }
}

Row read_row(const OrderedJson& json) {
  Row row;
  row.name = json["name"];
  const OrderedJson& parser = json["parser"];
  row.start.start = find_named(&reply_start_name, parser["start"]);
  row.start.tool_calls = parser["tool_calls"];
  row.start.json = parser["json"];
  row.stop = parser["stop"].get<std::vector<std::string>>();
  const OrderedJson& input = json["input"];
  if (!input["finish"].is_null()) row.finish = find_named(&finish_reason_name, input["finish"]);
  const tokenizer::Tokenizer* tokenizer = test_support::released_tokenizer("v41");
  if (input.contains("text")) {
    row.pieces = {input["text"]};
  } else if (tokenizer != nullptr) {
    row.pieces = decode(input["ids"], *tokenizer);
  } else {
    row.missing = test_support::missing_tokenizer_message("v41");
  }
  row.expected = json["expected"];
  row.squeezes_spaces = json.value("compare", "") == "content_runs_of_spaces_equal";
  row.policy = json.value("policy", "");
  apply_own_rule(row.policy, row);
  return row;
}

std::vector<Row> read_rows() {
  std::vector<Row> rows;
  for (const OrderedJson& json : read_ordered_rows("parse_vectors.jsonl")) {
    rows.push_back(read_row(json));
  }
  return rows;
}

std::string squeeze_spaces(const std::string& text) {
  std::string squeezed;
  for (const char byte : text) {
    if (byte != ' ' || !squeezed.ends_with(' ')) squeezed.push_back(byte);
  }
  return squeezed;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

std::string parse_pieces(const Row& row, const std::vector<std::string>& pieces) {
  ReplyParser parser(row.start, row.stop);
  for (const std::string& piece : pieces) parser.push(piece);
  parser.finish(row.finish);
  return describe(parser.reply());
}

std::vector<std::string> cut_every(const std::string& text, std::size_t bytes) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < text.size(); begin += bytes) {
    pieces.push_back(text.substr(begin, bytes));
  }
  return pieces;
}

// json_call may be answered either way; a test of JsonAnswer says what ours is.
bool is_open(const Row& row) { return row.policy.find(" may ") != std::string::npos; }

TEST(ParseVectorsTest, GivesTheResultOfEveryRow) {
  std::size_t plain = 0;
  std::size_t ours = 0;
  std::size_t skipped = 0;
  for (const Row& row : read_rows()) {
    if (is_open(row)) continue;
    if (!row.missing.empty()) {
      ++skipped;
      continue;
    }
    SCOPED_TRACE(row.name);
    OrderedJson result = OrderedJson::parse(parse_pieces(row, row.pieces));
    OrderedJson expected = row.expected;
    if (row.squeezes_spaces) {
      result["content"] = squeeze_spaces(result["content"]);
      expected["content"] = squeeze_spaces(expected["content"]);
    }
    EXPECT_EQ(result, expected);
    ++(row.policy.empty() ? plain : ours);
  }
  std::cout << "[  COUNT   ] outputs equal: " << plain << ", by our rule: " << ours
            << ", without their tokenizer: " << skipped << ", left open: 1\n";
  if (skipped > 0 && test_support::must_have_released_tokenizers()) {
    FAIL() << test_support::missing_tokenizer_message("v41");
  }
  EXPECT_EQ(plain + ours + skipped, 194U);
  EXPECT_EQ(ours, skipped == 0 ? 34U : 32U);
  if (skipped > 0)
    GTEST_SKIP() << skipped << " rows of ids: " << test_support::missing_tokenizer_message("v41");
}

TEST(ParseVectorsTest, GivesTheSameResultForEverySplit) {
  std::size_t rows = 0;
  for (const Row& row : read_rows()) {
    if (!row.missing.empty()) continue;
    SCOPED_TRACE(row.name);
    const std::string whole = parse_pieces(row, row.pieces);
    const std::string text = joined(row.pieces);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ASSERT_EQ(parse_pieces(row, {text.substr(0, cut), text.substr(cut)}), whole) << cut;
    }
    for (const std::size_t bytes : {1U, 2U, 3U, 5U, 7U}) {
      ASSERT_EQ(parse_pieces(row, cut_every(text, bytes)), whole) << bytes;
    }
    ++rows;
  }
  EXPECT_GE(rows, 188U);
}

TEST(ParseVectorsTest, StreamsWhatTheResultHolds) {
  for (const Row& row : read_rows()) {
    if (!row.missing.empty()) continue;
    SCOPED_TRACE(row.name);
    ReplyParser parser(row.start, row.stop);
    std::vector<ReplyEvent> events;
    const auto keep = [&events](std::vector<ReplyEvent> more) {
      events.insert(events.end(), more.begin(), more.end());
    };
    for (const std::string& piece : cut_every(joined(row.pieces), 3)) keep(parser.push(piece));
    keep(parser.finish(row.finish));
    std::string reasoning;
    std::string content;
    std::map<std::size_t, ReplyCall> begun;
    std::vector<ReplyCall> whole;
    for (const ReplyEvent& event : events) {
      EXPECT_EQ(tokenizer::repair_utf8(event.text), event.text);
      if (event.kind == ReplyEvent::Kind::kReasoning) reasoning += event.text;
      if (event.kind == ReplyEvent::Kind::kContent) content += event.text;
      if (event.kind == ReplyEvent::Kind::kCallName) begun[event.call].name = event.text;
      if (event.kind == ReplyEvent::Kind::kCallArguments) {
        begun.at(event.call).arguments += event.text;
      }
      if (event.kind == ReplyEvent::Kind::kCallEnd) whole.push_back(begun.at(event.call));
    }
    EXPECT_EQ(reasoning, parser.reply().reasoning.value_or(""));
    EXPECT_EQ(content, parser.reply().content);
    if (parser.reply().broken_calls == 0) {
      EXPECT_EQ(whole, parser.reply().tool_calls);
    }
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back().kind, ReplyEvent::Kind::kFinish);
    EXPECT_EQ(events.back().finish_reason, parser.reply().finish_reason);
  }
}

}  // namespace
}  // namespace locket::chat
