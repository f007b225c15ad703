// Event streams taken apart as strict clients do, and put together again. A reader here is harder
// than any client: what some client is known to break on is a problem.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace locket::test_support {

struct StreamEvent {
  std::string name;  // of its `event:` line; empty: it has none
  std::string data;
};

struct EventStream {
  std::vector<StreamEvent> events;
  std::size_t comments = 0;
  std::vector<std::string> problems;  // of the framing
};

EventStream read_event_stream(std::string_view text);
std::string write_event_stream(const std::vector<StreamEvent>& events);

// What a stream adds up to, as the one body that it stands for.
struct StreamCheck {
  nlohmann::json body;
  nlohmann::json error;  // null: it did not fail
  std::vector<std::string> problems;
};

// What the checkers of the dialects share: events one after the other, and what is wrong with them.
class StreamReport {
 public:
  void require(bool holds, std::string_view problem);
  // The data as JSON; null, and a problem, if it is none.
  nlohmann::json parse(const StreamEvent& event);
  // Whether `object` has exactly that value under `key`.
  void require_value(const nlohmann::json& object, const std::string& key,
                     const nlohmann::json& value);
  void set_place(std::size_t event) { place_ = event; }
  std::vector<std::string> take() { return std::move(problems_); }

 private:
  std::size_t place_ = 0;
  std::vector<std::string> problems_;
};

// The member as text; empty if there is none.
std::string text_at(const nlohmann::json& object, const std::string& key);

}  // namespace locket::test_support
