#include "server/responses_writer.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "server/compact_arguments.h"
#include "server/reply_errors.h"
#include "server/reply_json.h"
#include "server/reply_usage.h"
#include "server/responses_items.h"

namespace locket::server {
namespace {

using chat::ReplyEvent;

class ResponsesWriter final : public ReplyWriter {
 public:
  explicit ResponsesWriter(ReplyInfo info) : info_(std::move(info)) {
    LOCKET_CHECK(info_.choice_count == 1);
  }

  std::string begin() override {
    const std::string response = response_object(info_, {});
    std::string out = write_response("response.created", response);
    return out += write_response("response.in_progress", response);
  }

  std::string update(const service::ChoiceUpdate& update) override {
    std::string out;
    for (const ReplyEvent& event : update.events) out += write_event(event);
    return out;
  }

  std::string end(const service::RequestResult& result, const std::optional<Bill>& bill) override {
    LOCKET_CHECK(!result.error && result.choices.size() == 1);
    const chat::Reply& reply = result.choices.front().reply;
    const ItemStatus status = last_text_status(reply);
    std::string out = close_text(status);
    if (output_.empty()) {
      out += open_text(ItemKind::kMessage);
      out += close_text(status);
    }
    return out += write_response(finished_event(reply.finish_reason),
                                 finished_response(info_, output_, reply.finish_reason,
                                                   responses_usage(result, bill)));
  }

  std::string fail(const Error& error) override {
    const ApiError what = api_error(error);
    JsonList items;
    for (const std::string& item : output_) items.json(item);
    const ResponseParts parts = {
        .status = "failed",
        .output = items.str(),
        .error = JsonObject().text("code", what.code).text("message", what.message).str()};
    return write_response("response.failed", response_object(info_, parts));
  }

  std::string keep_alive() const override { return std::string(kKeepAliveComment); }

 private:
  struct OpenItem {
    ItemKind kind = ItemKind::kMessage;
    std::string id;
    std::string text = {};      // of the deltas so far
    chat::ReplyCall call = {};  // of calls: name and id
  };

  std::string write_event(const ReplyEvent& event) {
    switch (event.kind) {
      case ReplyEvent::Kind::kReasoning:
        return add_text(ItemKind::kReasoning, event.text);
      case ReplyEvent::Kind::kContent:
        return add_text(ItemKind::kMessage, event.text);
      case ReplyEvent::Kind::kCallName:
        return open_call(event);
      case ReplyEvent::Kind::kCallArguments:
        return add_arguments(arguments_.push(event.text));
      case ReplyEvent::Kind::kCallEnd:
        return close_call();
      case ReplyEvent::Kind::kFinish:
        return {};
      case ReplyEvent::Kind::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  bool is_text_open() const {
    return open_ && (open_->kind == ItemKind::kReasoning || open_->kind == ItemKind::kMessage);
  }

  // The beginning of an event, with its type and number.
  JsonObject begin_event(std::string_view type) {
    JsonObject event;
    event.text("type", type).count("sequence_number", sequence_++);
    return event;
  }

  JsonObject begin_item_event(std::string_view type) {
    LOCKET_CHECK(open_.has_value());
    return begin_event(type).text("item_id", open_->id).count("output_index", output_index_);
  }

  std::string write_response(std::string_view type, std::string_view response) {
    return named_event(type, begin_event(type).json("response", response).str());
  }

  std::string write_item(std::string_view type, std::string_view item) {
    return named_event(
        type, begin_event(type).count("output_index", output_index_).json("item", item).str());
  }

  std::string write_part(std::string_view type, std::string_view text) {
    return named_event(type, begin_item_event(type)
                                 .count("content_index", 0)
                                 .json("part", content_part(open_->kind, text))
                                 .str());
  }

  void begin_item(ItemKind kind) {
    // A call that was left unfinished keeps its place.
    if (open_) ++output_index_;
    open_ = OpenItem{.kind = kind, .id = response_item_id(info_, kind, output_index_)};
  }

  std::string end_item(std::string item) {
    std::string out = write_item("response.output_item.done", item);
    output_.push_back(std::move(item));
    ++output_index_;
    open_.reset();
    return out;
  }

  std::string open_text(ItemKind kind) {
    begin_item(kind);
    const std::string item = text_item(kind, open_->id, "[]", ItemStatus::kInProgress);
    std::string out = write_item("response.output_item.added", item);
    return out += write_part("response.content_part.added", "");
  }

  std::string add_text(ItemKind kind, const std::string& text) {
    std::string out;
    if (!is_text_open() || open_->kind != kind) {
      out += close_text(ItemStatus::kCompleted);
      out += open_text(kind);
    }
    open_->text += text;
    const bool is_reasoning = kind == ItemKind::kReasoning;
    const std::string_view type =
        is_reasoning ? "response.reasoning_text.delta" : "response.output_text.delta";
    JsonObject event = begin_item_event(type);
    event.count("content_index", 0).text("delta", text);
    if (!is_reasoning) event.json("logprobs", "[]");
    return out += named_event(type, event.str());
  }

  std::string close_text(ItemStatus status) {
    if (!is_text_open()) return {};
    const bool is_reasoning = open_->kind == ItemKind::kReasoning;
    const std::string_view type =
        is_reasoning ? "response.reasoning_text.done" : "response.output_text.done";
    JsonObject event = begin_item_event(type);
    event.count("content_index", 0).text("text", open_->text);
    if (!is_reasoning) event.json("logprobs", "[]");
    std::string out = named_event(type, event.str());
    out += write_part("response.content_part.done", open_->text);
    const std::string parts = JsonList().json(content_part(open_->kind, open_->text)).str();
    return out += end_item(text_item(open_->kind, open_->id, parts, status));
  }

  std::string open_call(const ReplyEvent& event) {
    std::string out = close_text(ItemStatus::kCompleted);
    begin_item(call_kind(info_, event.text));
    arguments_ = CompactArguments();
    open_->call = {.name = event.text, .arguments = {}, .id = event.call_id};
    return out += write_item("response.output_item.added",
                             call_item(info_, open_->id, open_->call, ItemStatus::kInProgress));
  }

  std::string add_arguments(const std::string& arguments) {
    LOCKET_CHECK(open_ && !is_text_open());
    open_->text += arguments;
    if (arguments.empty() || open_->kind == ItemKind::kCustomCall) return {};
    return write_delta("response.function_call_arguments.delta", arguments);
  }

  std::string write_delta(std::string_view type, std::string_view delta) {
    return named_event(type, begin_item_event(type).text("delta", delta).str());
  }

  std::string close_call() {
    std::string out = add_arguments(arguments_.finish());
    if (open_->kind == ItemKind::kCustomCall) {
      // Only the whole arguments say what the tool's text is.
      open_->call.arguments = custom_input(open_->text);
      if (!open_->call.arguments.empty()) {
        out += write_delta("response.custom_tool_call_input.delta", open_->call.arguments);
      }
      out += write_done("response.custom_tool_call_input.done", "input");
    } else {
      open_->call.arguments = open_->text;
      out += write_done("response.function_call_arguments.done", "arguments");
    }
    return out += end_item(call_item(info_, open_->id, open_->call, ItemStatus::kCompleted));
  }

  std::string write_done(std::string_view type, std::string_view key) {
    return named_event(type, begin_item_event(type).text(key, open_->call.arguments).str());
  }

  ReplyInfo info_;
  std::size_t sequence_ = 0;
  std::size_t output_index_ = 0;  // of the item that is open, or of the next one
  std::optional<OpenItem> open_;
  CompactArguments arguments_;       // of the call that is open
  std::vector<std::string> output_;  // the items that are done
};

}  // namespace

std::unique_ptr<ReplyWriter> make_responses_writer(ReplyInfo info) {
  return std::make_unique<ResponsesWriter>(std::move(info));
}

std::string responses_body(const ReplyInfo& info, const service::RequestResult& result,
                           const std::optional<Bill>& bill) {
  LOCKET_CHECK(!result.error && result.choices.size() == 1);
  const chat::Reply& reply = result.choices.front().reply;
  return finished_response(info, output_items(info, reply), reply.finish_reason,
                           responses_usage(result, bill));
}

}  // namespace locket::server
