#include "tests/support/responses_stream.h"

#include <fmt/format.h>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace locket::test_support {
namespace {

using nlohmann::json;

class ResponsesReader {
 public:
  explicit ResponsesReader(CutCalls cut) : cut_(cut) {}

  StreamCheck read(const std::vector<StreamEvent>& events) {
    for (std::size_t at = 0; at < events.size(); ++at) {
      report_.set_place(at);
      report_.require(!is_over_, "an event behind the end");
      read_event(events[at], at);
    }
    report_.require(is_over_, "the stream has no last response");
    return {.body = last_, .error = error_, .problems = report_.take()};
  }

 private:
  struct Item {
    json added;
    std::string type;
    std::string text;            // of the deltas
    bool has_part = false;       // its content part is open
    bool has_done_text = false;  // the event that repeats the whole text
    bool has_done_part = false;
  };

  static std::string part_type(const Item& item) {
    return item.type == "reasoning" ? "reasoning_text" : "output_text";
  }
  bool is_text(const Item& item) const {
    return item.type == "reasoning" || item.type == "message";
  }

  void read_event(const StreamEvent& event, std::size_t at) {
    const json data = report_.parse(event);
    const std::string type = text_at(data, "type");
    report_.require(!type.empty(), "data without a type");
    report_.require(event.name == type, "an event line that is not the type");
    report_.require_value(data, "sequence_number", at);
    if (at == 0) return read_first(data, type, "response.created");
    if (at == 1) return read_first(data, type, "response.in_progress");
    if (data.contains("response")) return read_last(data["response"], type);
    if (type == "response.output_item.added") return open_item(data);
    if (!item_) return report_.require(false, "an event of an item that was not added");
    report_.require_value(data, "output_index", next_index_);
    if (type == "response.output_item.done") return close_item(data.value("item", json()));
    report_.require_value(data, "item_id", item_->added.value("id", json()));
    read_item_event(data, type);
  }

  void read_first(const json& data, const std::string& type, const std::string& wanted) {
    report_.require(type == wanted, fmt::format("not {}", wanted));
    const json response = data.value("response", json::object());
    report_.require_value(response, "object", "response");
    report_.require_value(response, "status", "in_progress");
    report_.require_value(response, "output", json::array());
    report_.require(!text_at(response, "id").empty(), "a response without id");
    report_.require(id_.empty() || id_ == text_at(response, "id"), "another response");
    id_ = text_at(response, "id");
  }

  void open_item(const json& data) {
    if (item_) {
      const bool may_be_left = cut_ == CutCalls::kAllowed && !is_text(*item_);
      report_.require(may_be_left, "an item was not done");
      ++next_index_;
    }
    report_.require_value(data, "output_index", next_index_);
    item_.emplace();
    item_->added = data.value("item", json::object());
    item_->type = text_at(item_->added, "type");
    report_.require_value(item_->added, "status", "in_progress");
    report_.require(ids_.insert(text_at(item_->added, "id")).second, "an item id twice");
    if (is_text(*item_)) {
      report_.require_value(item_->added, "content", json::array());
    } else {
      const char* text = item_->type == "function_call" ? "arguments" : "input";
      report_.require_value(item_->added, text, "");
      report_.require(!text_at(item_->added, "call_id").empty(), "a call without call_id");
      report_.require(!text_at(item_->added, "name").empty(), "a call without name");
    }
  }

  void read_item_event(const json& data, const std::string& type) {
    if (is_text(*item_)) {
      report_.require_value(data, "content_index", 0);
      if (type.starts_with("response.content_part.")) return read_part(data, type);
      report_.require(item_->has_part, "text outside of a content part");
      return read_text(data, type, "response." + part_type(*item_), "text");
    }
    const bool is_custom = item_->type == "custom_tool_call";
    read_text(data, type,
              is_custom ? "response.custom_tool_call_input" : "response.function_call_arguments",
              is_custom ? "input" : "arguments");
  }

  void read_part(const json& data, const std::string& type) {
    const bool is_added = type == "response.content_part.added";
    const json part = data.value("part", json::object());
    report_.require_value(part, "type", part_type(*item_));
    report_.require_value(part, "text", is_added ? "" : item_->text);
    if (is_added) {
      report_.require(!item_->has_part && item_->text.empty(), "a content part twice");
      item_->has_part = true;
    } else {
      report_.require(type == "response.content_part.done", "an unknown event");
      report_.require(item_->has_part && item_->has_done_text, "a part done before its text");
      item_->has_part = false;
      item_->has_done_part = true;
    }
  }

  void read_text(const json& data, const std::string& type, const std::string& stem,
                 const char* key) {
    report_.require(!item_->has_done_text, "an event behind the whole text");
    if (type == stem + ".delta") {
      report_.require(!text_at(data, "delta").empty(), "an empty delta");
      item_->text += text_at(data, "delta");
      return;
    }
    report_.require(type == stem + ".done", fmt::format("{} inside of {}", type, item_->type));
    report_.require_value(data, key, item_->text);
    item_->has_done_text = true;
  }

  void close_item(json item) {
    report_.require(item_->has_done_text, "an item done before its text");
    report_.require(!is_text(*item_) || item_->has_done_part, "an item done before its part");
    for (const char* key : {"id", "type", "call_id", "name", "namespace"}) {
      report_.require(item.value(key, json()) == item_->added.value(key, json()),
                      fmt::format("another {} than in the beginning", key));
    }
    const std::string status = text_at(item, "status");
    report_.require(status == "completed" || status == "incomplete", "an item without its status");
    if (is_text(*item_)) {
      const json content = item.value("content", json::array());
      report_.require(content.size() == 1, "an item without its one part");
      if (content.size() == 1) report_.require_value(content[0], "text", item_->text);
    } else {
      const char* text = item_->type == "function_call" ? "arguments" : "input";
      report_.require_value(item, text, item_->text);
    }
    output_.push_back(std::move(item));
    item_.reset();
    ++next_index_;
  }

  void read_last(const json& response, const std::string& type) {
    is_over_ = true;
    last_ = response;
    report_.require(text_at(response, "id") == id_, "another response");
    const std::string status = text_at(response, "status");
    report_.require(type == "response." + status, "a status that is not the event's");
    report_.require(status == "completed" || status == "incomplete" || status == "failed",
                    "an unknown end");
    report_.require(response.value("output", json()) == output_,
                    "an output that is not that of the stream");
    if (status == "failed") {
      error_ = response.value("error", json::object());
      report_.require(!text_at(error_, "code").empty(), "an error without code");
      report_.require(!text_at(error_, "message").empty(), "an error without message");
      return;
    }
    const bool may_be_open = cut_ == CutCalls::kAllowed && item_ && !is_text(*item_);
    report_.require(!item_ || may_be_open, "the last item was not done");
    report_.require(
        status == "incomplete" || response.value("incomplete_details", json("missing")).is_null(),
        "incomplete_details of a whole response");
    report_.require(status == "completed" ||
                        !text_at(response.value("incomplete_details", json()), "reason").empty(),
                    "no reason for being incomplete");
    const json usage = response.value("usage", json());
    for (const char* key : {"input_tokens", "output_tokens", "total_tokens", "input_tokens_details",
                            "output_tokens_details"}) {
      report_.require(usage.is_object() && usage.contains(key), fmt::format("no {}", key));
    }
  }

  CutCalls cut_;
  StreamReport report_;
  std::string id_;
  std::optional<Item> item_;
  std::size_t next_index_ = 0;
  std::set<std::string> ids_;
  json output_ = json::array();
  json last_;
  json error_;
  bool is_over_ = false;
};

}  // namespace

StreamCheck check_responses_stream(const std::vector<StreamEvent>& events, CutCalls cut) {
  return ResponsesReader(cut).read(events);
}

}  // namespace locket::test_support
