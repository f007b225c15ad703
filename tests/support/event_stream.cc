#include "tests/support/event_stream.h"

#include <fmt/format.h>
#include <utility>

namespace locket::test_support {
namespace {

class Reader {
 public:
  void line(std::string_view text) {
    if (text.empty()) return end_event();
    if (text.find('\r') != std::string_view::npos) problem("a carriage return");
    if (text.starts_with(':')) return comment(text);
    was_comment_ = false;
    if (text.starts_with("event: ")) {
      if (has_name_ || has_data_) problem("an event line that is not the first of its event");
      has_name_ = true;
      event_.name = text.substr(7);
    } else if (text.starts_with("data: ")) {
      if (has_data_) problem("two data lines in one event");
      has_data_ = true;
      event_.data = text.substr(6);
      if (event_.data.starts_with(':')) problem("a comment inside data");
    } else {
      problem(fmt::format("a line that is neither event, data nor comment: {}", text));
    }
  }

  EventStream take() {
    if (has_name_ || has_data_) problem("the stream ends inside an event");
    return std::move(stream_);
  }

  void problem(std::string text) { stream_.problems.push_back(std::move(text)); }

 private:
  void comment(std::string_view text) {
    if (text.size() < 3 || text[1] != ' ') problem("a comment without text");
    if (has_name_ || has_data_) problem("a comment inside an event");
    was_comment_ = true;
    ++stream_.comments;
  }

  void end_event() {
    if (was_comment_) problem("a blank line behind a comment");
    if (!has_data_) problem("a blank line without an event");
    if (has_data_) stream_.events.push_back(std::exchange(event_, {}));
    has_name_ = has_data_ = was_comment_ = false;
  }

  EventStream stream_;
  StreamEvent event_;
  bool has_name_ = false;
  bool has_data_ = false;
  bool was_comment_ = false;
};

}  // namespace

EventStream read_event_stream(std::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      reader.problem("the last line has no end");
      break;
    }
    reader.line(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return reader.take();
}

std::string write_event_stream(const std::vector<StreamEvent>& events) {
  std::string out;
  for (const StreamEvent& event : events) {
    if (!event.name.empty()) out += "event: " + event.name + "\n";
    out += "data: " + event.data + "\n\n";
  }
  return out;
}

void StreamReport::require(bool holds, std::string_view problem) {
  if (!holds) problems_.push_back(fmt::format("event {}: {}", place_, problem));
}

nlohmann::json StreamReport::parse(const StreamEvent& event) {
  nlohmann::json data = nlohmann::json::parse(event.data, nullptr, false);
  require(!data.is_discarded() && data.is_object(), "data that is no JSON object");
  return data.is_object() ? data : nlohmann::json::object();
}

void StreamReport::require_value(const nlohmann::json& object, const std::string& key,
                                 const nlohmann::json& value) {
  const bool holds = object.is_object() && object.contains(key) && object[key] == value;
  require(holds, fmt::format("{} is not {}", key, value.dump()));
}

std::string text_at(const nlohmann::json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return {};
  return object[key].get<std::string>();
}

}  // namespace locket::test_support
