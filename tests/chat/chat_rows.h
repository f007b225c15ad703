// What the tests of the chat room share: vectors with their key order, and short ways to render and
// to parse.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "chat/render_v41.h"
#include "chat/reply_parser.h"
#include "chat/request_json.h"
#include "chat/segments.h"
#include "tests/support/tokenizer_files.h"

namespace locket::chat {

using OrderedJson = nlohmann::ordered_json;

inline std::vector<OrderedJson> read_ordered_rows(const std::string& name) {
  std::vector<OrderedJson> rows;
  std::istringstream lines(test_support::read_text_file(name));
  for (std::string line; std::getline(lines, line);) rows.push_back(OrderedJson::parse(line));
  return rows;
}

// Replaces {"$repeat": [text, n]} by text, n times.
inline void expand_repeats(OrderedJson& value) {
  if (value.is_object() && value.contains("$repeat")) {
    const auto text = value["$repeat"][0].get<std::string>();
    std::string repeated;
    for (int i = 0; i < value["$repeat"][1].get<int>(); ++i) repeated += text;
    value = repeated;
    return;
  }
  if (!value.is_structured()) return;
  for (auto& item : value) expand_repeats(item);
}

// The prompt of a request in JSON, control tokens and all, as one text; "refused: ..." if the
// request is refused.
inline std::string prompt_of(std::string_view request) {
  const Result<ChatRequest> parsed = parse_chat_request(request);
  if (!parsed) return "refused: " + parsed.error().message;
  return join_segments(render_segments(*parsed).segments);
}

// The message of the refusal; empty if the request is accepted.
inline std::string refusal_of(std::string_view request) {
  const Result<ChatRequest> parsed = parse_chat_request(request);
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, ErrorCode::kBadRequest);
  return parsed.error().message;
}

inline Reply parse_whole(const ParserStart& start, std::string_view text,
                         FinishReason finish = FinishReason::kStop,
                         std::vector<std::string> stop = {}) {
  ReplyParser parser(start, std::move(stop));
  parser.push(text);
  parser.finish(finish);
  return parser.reply();
}

// One line that holds everything a Reply says, for comparisons and messages.
inline std::string describe(const Reply& reply) {
  OrderedJson out;
  out["reasoning"] = reply.reasoning ? OrderedJson(*reply.reasoning) : OrderedJson(nullptr);
  out["content"] = reply.content;
  out["tool_calls"] = OrderedJson::array();
  for (const ReplyCall& call : reply.tool_calls) {
    out["tool_calls"].push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  out["finish_reason"] = finish_reason_name(reply.finish_reason);
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace locket::chat
