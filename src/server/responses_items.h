// The objects of the Responses dialect as JSON: output items and the response around them. A stream
// and a body build the same items from here, with the same ids. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/reply.h"
#include "server/reply_writer.h"

namespace locket::server {

enum class ItemStatus { kInProgress, kCompleted, kIncomplete, kCount };
enum class ItemKind { kReasoning, kMessage, kFunctionCall, kCustomCall, kCount };

std::string response_id(const ReplyInfo& info);
// The id of the item at that place of the output.
std::string response_item_id(const ReplyInfo& info, ItemKind kind, std::size_t output_index);

// Whether calls of that tool are function_call or custom_tool_call items.
ItemKind call_kind(const ReplyInfo& info, std::string_view tool_name);
// What a custom tool is given, taken out of the arguments that the model wrote.
std::string custom_input(std::string_view arguments);

// The one part of an item that holds `text`. REQUIRES: kReasoning or kMessage.
std::string content_part(ItemKind kind, std::string_view text);

// Items. `parts` is a list of parts, empty where the item has just begun.
std::string text_item(ItemKind kind, std::string_view id, std::string_view parts,
                      ItemStatus status);
// `call.arguments` as they are to be written; the input of a custom tool.
std::string call_item(const ReplyInfo& info, std::string_view id, const chat::ReplyCall& call,
                      ItemStatus status);

// The status of the last text of an answer: incomplete if the limit cut it off.
ItemStatus last_text_status(const chat::Reply& reply);

// The output of a whole answer.
std::vector<std::string> output_items(const ReplyInfo& info, const chat::Reply& reply);

struct ResponseParts {
  std::string_view status = "in_progress";
  std::string output = "[]";
  std::string usage = "null";
  std::string error = "null";
  std::string incomplete_details = "null";
};

std::string response_object(const ReplyInfo& info, const ResponseParts& parts);
// The response of an answer that did not fail.
std::string finished_response(const ReplyInfo& info, const std::vector<std::string>& output,
                              chat::FinishReason reason, std::string usage);
// "response.completed" or "response.incomplete".
std::string_view finished_event(chat::FinishReason reason);

}  // namespace locket::server
