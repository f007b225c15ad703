// JSON text as answers are written: one object or list after the other, keys in the order in which
// they are added, no blanks; and the lines of an event stream around it. Text may hold any bytes:
// what is no UTF-8 becomes U+FFFD, so that an answer is always JSON. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace locket::server {

// `text` with quotes around it.
std::string json_quoted(std::string_view text);

// The shortest form that reads back as `value`; what is no finite number becomes null.
std::string json_real(double value);

class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& integer(std::string_view key, std::int64_t value);
  JsonObject& count(std::string_view key, std::size_t value);
  JsonObject& real(std::string_view key, double value);
  JsonObject& null(std::string_view key);
  // REQUIRES: `value` is JSON.
  JsonObject& json(std::string_view key, std::string_view value);
  std::string str() const { return body_ + "}"; }

 private:
  void add_key(std::string_view key);

  std::string body_ = "{";
};

class JsonList {
 public:
  JsonList& text(std::string_view value);
  JsonList& count(std::size_t value);
  // REQUIRES: `value` is JSON.
  JsonList& json(std::string_view value);
  bool is_empty() const { return body_.size() == 1; }
  std::string str() const { return body_ + "]"; }

 private:
  std::string body_ = "[";
};

// One event of a stream. REQUIRES: `json` holds no line break, as all text from here.
std::string data_event(std::string_view json);
std::string named_event(std::string_view name, std::string_view json);

// A comment without a blank line behind it: some clients take every blank line for an event.
inline constexpr std::string_view kKeepAliveComment = ": keep-alive\n";

}  // namespace locket::server
