#include "server/messages_writer.h"

#include <utility>

#include "base/check.h"
#include "chat/json_reader.h"
#include "server/compact_arguments.h"
#include "server/reply_errors.h"
#include "server/reply_json.h"
#include "server/reply_usage.h"

namespace locket::server {
namespace {

using chat::FinishReason;
using chat::Reply;
using chat::ReplyEvent;

std::string message_id(const ReplyInfo& info) {
  std::string id = info.id;
  std::erase(id, '-');
  return "msg_" + id;
}

struct StopFacts {
  std::string_view reason = "end_turn";
  std::string sequence = "null";  // JSON
};

// `calls`: of the answer, also those that a stream has begun and the model broke.
StopFacts stop_facts(const ReplyInfo& info, const Reply& reply, std::size_t calls) {
  if (reply.finish_reason == FinishReason::kLength) return {.reason = "max_tokens"};
  if (reply.finish_reason == FinishReason::kContentFilter) return {.reason = "refusal"};
  if (calls > 0) return {.reason = "tool_use"};
  if (reply.stop_index && *reply.stop_index < info.stop.size()) {
    return {.reason = "stop_sequence", .sequence = json_quoted(info.stop[*reply.stop_index])};
  }
  return {};
}

std::string thinking_block(std::string_view text) {
  return JsonObject().text("type", "thinking").text("thinking", text).text("signature", "").str();
}

std::string text_block(std::string_view text) {
  return JsonObject().text("type", "text").text("text", text).str();
}

// `input`: JSON.
std::string call_block(std::string_view id, std::string_view name, std::string_view input) {
  return JsonObject()
      .text("type", "tool_use")
      .text("id", id)
      .text("name", name)
      .json("input", input)
      .str();
}

std::string input_of(const chat::ReplyCall& call) {
  const Result<chat::JsonValue> value = chat::read_json(call.arguments, "arguments");
  std::string arguments = compact_arguments(call.arguments);
  if (value && value->is_object()) return arguments;
  return JsonObject().text("raw_arguments", arguments).str();
}

JsonObject message_head(const ReplyInfo& info, std::string_view content) {
  JsonObject message;
  message.text("id", message_id(info))
      .text("type", "message")
      .text("role", "assistant")
      .text("model", info.model)
      .json("content", content);
  return message;
}

class MessagesWriter final : public ReplyWriter {
 public:
  explicit MessagesWriter(ReplyInfo info) : info_(std::move(info)) {
    LOCKET_CHECK(info_.choice_count == 1);
  }

  std::string begin() override {
    const std::string message = message_head(info_, "[]")
                                    .null("stop_reason")
                                    .null("stop_sequence")
                                    .json("usage", messages_first_usage(info_.prompt_tokens))
                                    .str();
    return write("message_start",
                 JsonObject().text("type", "message_start").json("message", message));
  }

  std::string update(const service::ChoiceUpdate& update) override {
    std::string out;
    for (const ReplyEvent& event : update.events) out += write_event(event);
    return out;
  }

  std::string end(const service::RequestResult& result, const std::optional<Bill>& bill) override {
    LOCKET_CHECK(!result.error && result.choices.size() == 1);
    std::string out = close_block();
    // A message without blocks is an error to some clients.
    if (index_ == 0) {
      out += open_block(Block::kText, text_block(""));
      out += close_block();
    }
    const StopFacts stop = stop_facts(info_, result.choices.front().reply, calls_);
    JsonObject delta;
    delta.text("stop_reason", stop.reason).json("stop_sequence", stop.sequence);
    out += write("message_delta", JsonObject()
                                      .text("type", "message_delta")
                                      .json("delta", delta.str())
                                      .json("usage", messages_usage(result, bill)));
    return out += write("message_stop", JsonObject().text("type", "message_stop"));
  }

  std::string fail(const Error& error) override {
    return named_event("error", error_body(Dialect::kMessages, error));
  }

  std::string keep_alive() const override {
    return named_event("ping", JsonObject().text("type", "ping").str());
  }

 private:
  enum class Block { kNone, kThinking, kText, kCall, kCount };

  static std::string write(std::string_view name, const JsonObject& event) {
    return named_event(name, event.str());
  }

  std::string write_event(const ReplyEvent& event) {
    switch (event.kind) {
      case ReplyEvent::Kind::kReasoning: {
        std::string out = ensure_block(Block::kThinking, thinking_block(""));
        return out += write_delta("thinking_delta", "thinking", event.text);
      }
      case ReplyEvent::Kind::kContent: {
        std::string out = ensure_block(Block::kText, text_block(""));
        return out += write_delta("text_delta", "text", event.text);
      }
      case ReplyEvent::Kind::kCallName: {
        arguments_ = CompactArguments();
        ++calls_;
        std::string out = close_block();
        return out += open_block(Block::kCall, call_block(event.call_id, event.text, "{}"));
      }
      case ReplyEvent::Kind::kCallArguments:
        return write_arguments(arguments_.push(event.text));
      case ReplyEvent::Kind::kCallEnd: {
        std::string out = write_arguments(arguments_.finish());
        return out += close_block();
      }
      case ReplyEvent::Kind::kFinish:
        return {};
      case ReplyEvent::Kind::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  std::string ensure_block(Block kind, std::string_view empty_block) {
    if (open_ == kind) return {};
    std::string out = close_block();
    return out += open_block(kind, empty_block);
  }

  std::string open_block(Block kind, std::string_view block) {
    open_ = kind;
    return write("content_block_start", JsonObject()
                                            .text("type", "content_block_start")
                                            .count("index", index_)
                                            .json("content_block", block));
  }

  std::string close_block() {
    if (open_ == Block::kNone) return {};
    open_ = Block::kNone;
    return write("content_block_stop",
                 JsonObject().text("type", "content_block_stop").count("index", index_++));
  }

  std::string write_arguments(std::string_view arguments) {
    if (arguments.empty()) return {};
    return write_delta("input_json_delta", "partial_json", arguments);
  }

  std::string write_delta(std::string_view type, std::string_view key, std::string_view text) {
    return write("content_block_delta",
                 JsonObject()
                     .text("type", "content_block_delta")
                     .count("index", index_)
                     .json("delta", JsonObject().text("type", type).text(key, text).str()));
  }

  ReplyInfo info_;
  std::size_t index_ = 0;  // of the block that is open, or of the next one
  Block open_ = Block::kNone;
  std::size_t calls_ = 0;       // begun
  CompactArguments arguments_;  // of the call that is open
};

}  // namespace

std::unique_ptr<ReplyWriter> make_messages_writer(ReplyInfo info) {
  return std::make_unique<MessagesWriter>(std::move(info));
}

std::string messages_body(const ReplyInfo& info, const service::RequestResult& result,
                          const std::optional<Bill>& bill) {
  LOCKET_CHECK(!result.error && result.choices.size() == 1);
  const Reply& reply = result.choices.front().reply;
  const std::string reasoning = reply.reasoning.value_or("");
  JsonList blocks;
  if (!reasoning.empty()) blocks.json(thinking_block(reasoning));
  if (!reply.content.empty()) blocks.json(text_block(reply.content));
  for (const chat::ReplyCall& call : reply.tool_calls) {
    blocks.json(call_block(call.id, call.name, input_of(call)));
  }
  if (blocks.is_empty()) blocks.json(text_block(""));
  const StopFacts stop = stop_facts(info, reply, reply.tool_calls.size());
  return message_head(info, blocks.str())
      .text("stop_reason", stop.reason)
      .json("stop_sequence", stop.sequence)
      .json("usage", messages_usage(result, bill))
      .str();
}

}  // namespace locket::server
