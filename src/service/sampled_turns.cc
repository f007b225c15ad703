#include "service/sampled_turns.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/json_equal.h"
#include "chat/message_text.h"

namespace locket::service {
namespace {

using Json = nlohmann::json;

Json::binary_t to_bytes(const std::vector<tokenizer::TokenId>& ids) {
  std::vector<std::uint8_t> bytes(ids.size() * sizeof(tokenizer::TokenId));
  if (!ids.empty()) std::memcpy(bytes.data(), ids.data(), bytes.size());
  return Json::binary_t(std::move(bytes));
}

std::vector<tokenizer::TokenId> to_ids(const Json::binary_t& bytes) {
  std::vector<tokenizer::TokenId> ids(bytes.size() / sizeof(tokenizer::TokenId));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(ids[0]));
  return ids;
}

std::string to_value(const SampledTurn& turn) {
  Json calls = Json::array();
  for (const chat::ReplyCall& call : turn.calls) {
    calls.push_back(Json::array({call.id, call.name, call.arguments}));
  }
  const Json value = {
      {"ids", to_bytes(turn.ids)},
      {"start", static_cast<unsigned>(turn.start.start)},
      {"tool_calls", turn.start.tool_calls},
      {"json", turn.start.json},
      {"reasoning", turn.reasoning ? Json(*turn.reasoning) : Json(nullptr)},
      {"content", turn.content},
      {"calls", std::move(calls)},
  };
  std::string text;
  Json::to_cbor(value, text);
  return text;
}

SampledTurn read_turn(const Json& value) {
  SampledTurn turn;
  turn.ids = to_ids(value.at("ids").get_binary());
  turn.start = {.start = static_cast<chat::ReplyStart>(value.at("start").get<unsigned>()),
                .tool_calls = value.at("tool_calls").get<bool>(),
                .json = value.at("json").get<bool>()};
  const Json& reasoning = value.at("reasoning");
  if (!reasoning.is_null()) turn.reasoning = reasoning.get<std::string>();
  turn.content = value.at("content").get<std::string>();
  for (const Json& call : value.at("calls")) {
    turn.calls.push_back({.name = call.at(1).get<std::string>(),
                          .arguments = call.at(2).get<std::string>(),
                          .id = call.at(0).get<std::string>()});
  }
  return turn;
}

std::optional<SampledTurn> from_value(const std::string& text) {
  try {
    SampledTurn turn = read_turn(Json::from_cbor(text));
    if (turn.start.start < chat::ReplyStart::kCount) return turn;
  } catch (const nlohmann::json::exception&) {
    // Of another format: there is no such turn.
  }
  return std::nullopt;
}

// Clients cut blanks off the ends of texts.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// A text that the client left out agrees with any.
bool agrees(std::string_view sent, std::string_view said) {
  return trimmed(sent).empty() || trimmed(sent) == trimmed(said);
}

// The message's calls in the order in which the turn made them; none if they are not the same.
std::optional<std::vector<chat::ToolCall>> in_order_made(const std::vector<chat::ToolCall>& sent,
                                                         const SampledTurn& turn) {
  if (sent.size() != turn.calls.size()) return std::nullopt;
  std::vector<chat::ToolCall> ordered;
  for (const chat::ReplyCall& made : turn.calls) {
    const auto call = std::ranges::find(sent, made.id, &chat::ToolCall::id);
    const bool is_same = call != sent.end() && call->name == made.name &&
                         chat::is_same_arguments(call->arguments, made.arguments);
    if (!is_same) return std::nullopt;
    ordered.push_back(*call);
  }
  return ordered;
}

void put_back_turn(SampledTurn turn, chat::Message& message) {
  std::optional<std::vector<chat::ToolCall>> calls = in_order_made(message.tool_calls, turn);
  if (!calls) return;
  message.tool_calls = std::move(*calls);
  const std::string reasoning = turn.reasoning.value_or("");
  const bool is_same =
      agrees(message.reasoning, reasoning) && agrees(chat::joined_text(message), turn.content);
  if (trimmed(message.reasoning).empty()) message.reasoning = reasoning;
  if (!is_same) return;
  message.sampled = std::move(turn.ids);
  message.sampled_start = turn.start.start;
}

}  // namespace

Result<SampledTurns> SampledTurns::open(const KeptOptions& options) {
  LOCKET_TRY(KeptRecords records, KeptRecords::open(options, "turns"));
  return SampledTurns(std::move(records));
}

void SampledTurns::keep(std::string_view tenant, const SampledTurn& turn) {
  std::vector<std::string> names;
  for (const chat::ReplyCall& call : turn.calls) {
    if (call.id.empty()) return;
    names.push_back(tenant_name(tenant, call.id));
  }
  if (!names.empty()) records_.keep(names, to_value(turn));
}

std::optional<SampledTurn> SampledTurns::find(std::string_view tenant, const std::string& call_id) {
  const std::shared_ptr<const std::string> value = records_.find(tenant_name(tenant, call_id));
  if (value == nullptr) return std::nullopt;
  return from_value(*value);
}

void SampledTurns::put_back(std::string_view tenant, chat::ChatRequest& request) {
  for (chat::Message& message : request.messages) {
    const bool can_be_found = message.role == chat::Role::kAssistant && !message.is_unfinished &&
                              !message.tool_calls.empty() && !message.tool_calls[0].id.empty();
    if (!can_be_found) continue;
    std::optional<SampledTurn> turn = find(tenant, message.tool_calls[0].id);
    if (turn) put_back_turn(std::move(*turn), message);
  }
}

}  // namespace locket::service
