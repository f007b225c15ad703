#include "server/responses_items.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/check.h"
#include "chat/json_reader.h"
#include "server/compact_arguments.h"
#include "server/reply_json.h"

namespace locket::server {
namespace {

using chat::FinishReason;

// The answer's UUID without its dashes.
std::string id_suffix(const ReplyInfo& info) {
  std::string suffix = info.id;
  std::erase(suffix, '-');
  return suffix;
}

std::string_view id_prefix(ItemKind kind) {
  switch (kind) {
    case ItemKind::kReasoning:
      return "rs";
    case ItemKind::kMessage:
      return "msg";
    case ItemKind::kFunctionCall:
      return "fc";
    case ItemKind::kCustomCall:
      return "ctc";
    case ItemKind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::string_view status_name(ItemStatus status) {
  switch (status) {
    case ItemStatus::kInProgress:
      return "in_progress";
    case ItemStatus::kCompleted:
      return "completed";
    case ItemStatus::kIncomplete:
      return "incomplete";
    case ItemStatus::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

bool is_cut(FinishReason reason) {
  return reason == FinishReason::kLength || reason == FinishReason::kContentFilter;
}

std::string whole_text_item(const ReplyInfo& info, ItemKind kind, std::size_t index,
                            std::string_view text, ItemStatus status) {
  const std::string parts = JsonList().json(content_part(kind, text)).str();
  return text_item(kind, response_item_id(info, kind, index), parts, status);
}

}  // namespace

std::string response_id(const ReplyInfo& info) { return "resp_" + id_suffix(info); }

std::string response_item_id(const ReplyInfo& info, ItemKind kind, std::size_t output_index) {
  return fmt::format("{}_{}_{}", id_prefix(kind), id_suffix(info), output_index);
}

ItemKind call_kind(const ReplyInfo& info, std::string_view tool_name) {
  const auto& custom = info.custom_tools;
  const bool is_custom = std::find(custom.begin(), custom.end(), tool_name) != custom.end();
  return is_custom ? ItemKind::kCustomCall : ItemKind::kFunctionCall;
}

std::string custom_input(std::string_view arguments) {
  const Result<chat::JsonValue> value = chat::read_json(arguments, "arguments");
  if (!value || !value->is_object()) return std::string(arguments);
  const chat::JsonValue* input = value->find("input");
  if (input == nullptr && value->members.size() == 1) input = &value->members.front().value;
  return input != nullptr && input->is_string() ? input->text : std::string(arguments);
}

std::string content_part(ItemKind kind, std::string_view text) {
  JsonObject part;
  if (kind == ItemKind::kReasoning) {
    part.text("type", "reasoning_text").text("text", text);
  } else {
    part.text("type", "output_text")
        .text("text", text)
        .json("annotations", "[]")
        .json("logprobs", "[]");
  }
  return part.str();
}

std::string text_item(ItemKind kind, std::string_view id, std::string_view parts,
                      ItemStatus status) {
  JsonObject item;
  item.text("id", id);
  if (kind == ItemKind::kReasoning) {
    item.text("type", "reasoning").json("summary", "[]");
  } else {
    item.text("type", "message").text("role", "assistant");
  }
  return item.json("content", parts).text("status", status_name(status)).str();
}

std::string call_item(const ReplyInfo& info, std::string_view id, const chat::ReplyCall& call,
                      ItemStatus status) {
  JsonObject item;
  item.text("id", id);
  if (call_kind(info, call.name) == ItemKind::kCustomCall) {
    return item.text("type", "custom_tool_call")
        .text("call_id", call.id)
        .text("name", call.name)
        .text("input", call.arguments)
        .text("status", status_name(status))
        .str();
  }
  item.text("type", "function_call").text("call_id", call.id);
  const auto nested =
      std::find_if(info.namespaces.begin(), info.namespaces.end(),
                   [&](const chat::ToolNamespace& entry) { return entry.flat == call.name; });
  if (nested == info.namespaces.end()) {
    item.text("name", call.name);
  } else {
    item.text("name", nested->name).text("namespace", nested->name_space);
  }
  return item.text("arguments", call.arguments).text("status", status_name(status)).str();
}

ItemStatus last_text_status(const chat::Reply& reply) {
  const bool has_calls = !reply.tool_calls.empty() || reply.broken_calls > 0;
  return is_cut(reply.finish_reason) && !has_calls ? ItemStatus::kIncomplete
                                                   : ItemStatus::kCompleted;
}

std::vector<std::string> output_items(const ReplyInfo& info, const chat::Reply& reply) {
  std::vector<std::string> items;
  const std::string reasoning = reply.reasoning.value_or("");
  const ItemStatus last = last_text_status(reply);
  if (!reasoning.empty()) {
    const ItemStatus status = reply.content.empty() ? last : ItemStatus::kCompleted;
    items.push_back(whole_text_item(info, ItemKind::kReasoning, 0, reasoning, status));
  }
  const bool is_empty = reasoning.empty() && reply.tool_calls.empty();
  if (!reply.content.empty() || is_empty) {
    items.push_back(whole_text_item(info, ItemKind::kMessage, items.size(), reply.content, last));
  }
  for (chat::ReplyCall call : reply.tool_calls) {
    const ItemKind kind = call_kind(info, call.name);
    call.arguments = compact_arguments(call.arguments);
    if (kind == ItemKind::kCustomCall) call.arguments = custom_input(call.arguments);
    const std::string id = response_item_id(info, kind, items.size());
    items.push_back(call_item(info, id, call, ItemStatus::kCompleted));
  }
  return items;
}

std::string response_object(const ReplyInfo& info, const ResponseParts& parts) {
  JsonObject out;
  out.text("id", response_id(info))
      .text("object", "response")
      .integer("created_at", info.created)
      .text("status", parts.status)
      .text("model", info.model)
      .json("error", parts.error)
      .json("incomplete_details", parts.incomplete_details)
      .null("instructions")
      .json("output", parts.output)
      .json("parallel_tool_calls", "true")
      .null("previous_response_id")
      .json("store", "false")
      .json("text", R"({"format":{"type":"text"}})")
      .text("tool_choice", "auto")
      .json("tools", "[]")
      .text("truncation", "disabled")
      .json("metadata", "{}")
      .json("usage", parts.usage);
  return out.str();
}

std::string finished_response(const ReplyInfo& info, const std::vector<std::string>& output,
                              FinishReason reason, std::string usage) {
  JsonList items;
  for (const std::string& item : output) items.json(item);
  ResponseParts parts = {.status = "completed", .output = items.str(), .usage = std::move(usage)};
  if (is_cut(reason)) {
    const bool is_length = reason == FinishReason::kLength;
    parts.status = "incomplete";
    parts.incomplete_details =
        JsonObject().text("reason", is_length ? "max_output_tokens" : "content_filter").str();
  }
  return response_object(info, parts);
}

std::string_view finished_event(FinishReason reason) {
  return is_cut(reason) ? "response.incomplete" : "response.completed";
}

}  // namespace locket::server
