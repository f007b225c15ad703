#include "tests/support/messages_stream.h"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace locket::test_support {
namespace {

using nlohmann::json;

class MessagesReader {
 public:
  StreamCheck read(const std::vector<StreamEvent>& events) {
    for (std::size_t at = 0; at < events.size(); ++at) {
      report_.set_place(at);
      report_.require(stage_ != Stage::kOver, "an event behind the end");
      read_event(events[at]);
    }
    report_.require(stage_ == Stage::kOver, "the stream has no end");
    if (message_.is_object()) message_["content"] = content_;
    return {.body = message_, .error = error_, .problems = report_.take()};
  }

 private:
  enum class Stage { kStart, kBetween, kBlock, kEnding, kOver, kCount };

  void read_event(const StreamEvent& event) {
    const json data = report_.parse(event);
    const std::string type = text_at(data, "type");
    report_.require(!type.empty(), "data without a type");
    report_.require(event.name == type, "an event line that is not the type");
    if (type == "ping") return;
    if (type == "error") return read_error(data);
    if (type == "message_start") return start(data.value("message", json::object()));
    if (type == "content_block_start") return open_block(data);
    if (type == "content_block_delta") return add_delta(data);
    if (type == "content_block_stop") return close_block(data);
    if (type == "message_delta") return end_message(data);
    report_.require(type == "message_stop", fmt::format("an unknown event {}", type));
    enter(Stage::kEnding, Stage::kOver);
  }

  void enter(Stage from, Stage to) {
    report_.require(stage_ == from, "an event out of order");
    stage_ = to;
  }

  void start(json message) {
    enter(Stage::kStart, Stage::kBetween);
    report_.require_value(message, "type", "message");
    report_.require_value(message, "role", "assistant");
    report_.require_value(message, "content", json::array());
    report_.require_value(message, "stop_reason", nullptr);
    report_.require_value(message, "stop_sequence", nullptr);
    report_.require(!text_at(message, "id").empty() && !text_at(message, "model").empty(),
                    "a message without id or model");
    require_usage(message);
    message_ = std::move(message);
  }

  void require_usage(const json& holder) {
    const json usage = holder.value("usage", json());
    for (const char* key : {"input_tokens", "output_tokens", "cache_read_input_tokens",
                            "cache_creation_input_tokens"}) {
      report_.require(usage.is_object() && usage.contains(key) && usage[key].is_number_unsigned(),
                      fmt::format("no {}", key));
    }
  }

  void open_block(const json& data) {
    enter(Stage::kBetween, Stage::kBlock);
    report_.require_value(data, "index", content_.size());
    block_ = data.value("content_block", json::object());
    input_.clear();
    const std::string type = text_at(block_, "type");
    if (type == "text") {
      report_.require_value(block_, "text", "");
    } else if (type == "thinking") {
      report_.require_value(block_, "thinking", "");
      report_.require_value(block_, "signature", "");
    } else {
      report_.require(type == "tool_use", "an unknown block");
      report_.require_value(block_, "input", json::object());
      report_.require(!text_at(block_, "id").empty() && !text_at(block_, "name").empty(),
                      "a call without id or name");
    }
  }

  void add_delta(const json& data) {
    enter(Stage::kBlock, Stage::kBlock);
    report_.require_value(data, "index", content_.size());
    const json delta = data.value("delta", json::object());
    const std::string type = text_at(block_, "type");
    if (type == "tool_use") {
      report_.require_value(delta, "type", "input_json_delta");
      report_.require(!text_at(delta, "partial_json").empty(), "an empty delta");
      input_ += text_at(delta, "partial_json");
      return;
    }
    report_.require_value(delta, "type", type + "_delta");
    report_.require(!text_at(delta, type).empty(), "an empty delta");
    block_[type] = text_at(block_, type) + text_at(delta, type);
  }

  void close_block(const json& data) {
    enter(Stage::kBlock, Stage::kBetween);
    report_.require_value(data, "index", content_.size());
    if (!input_.empty()) {
      json input = json::parse(input_, nullptr, false);
      if (input.is_object()) {
        block_["input"] = std::move(input);
      } else {
        block_["input"] = {{"raw_arguments", input_}};
      }
    }
    content_.push_back(std::exchange(block_, json()));
  }

  void end_message(const json& data) {
    enter(Stage::kBetween, Stage::kEnding);
    report_.require(!content_.empty(), "a message without blocks");
    const json delta = data.value("delta", json::object());
    report_.require(!text_at(delta, "stop_reason").empty(), "no stop_reason");
    report_.require(delta.contains("stop_sequence"), "no stop_sequence");
    const bool is_sequence = text_at(delta, "stop_reason") == "stop_sequence";
    report_.require(is_sequence == !text_at(delta, "stop_sequence").empty(),
                    "stop_sequence without its reason, or the other way");
    require_usage(data);
    if (!message_.is_object()) return;
    message_.update(delta);
    message_["usage"].update(data.value("usage", json::object()));
  }

  void read_error(const json& data) {
    stage_ = Stage::kOver;
    error_ = data.value("error", json::object());
    report_.require(!text_at(error_, "type").empty(), "an error without type");
    report_.require(!text_at(error_, "message").empty(), "an error without message");
  }

  StreamReport report_;
  Stage stage_ = Stage::kStart;
  json message_;
  json content_ = json::array();
  json block_;
  std::string input_;
  json error_;
};

}  // namespace

StreamCheck check_messages_stream(const std::vector<StreamEvent>& events) {
  return MessagesReader().read(events);
}

}  // namespace locket::test_support
