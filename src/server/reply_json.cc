#include "server/reply_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "chat/python_json.h"
#include "tokenizer/tokenizer.h"

namespace locket::server {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  chat::append_escaped(tokenizer::repair_utf8(text), out);
  out.push_back('"');
  return out;
}

std::string json_real(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 64> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string out(buffer.data(), written.ptr);
  // A whole number stays recognisable as one that may have a fraction.
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

void JsonObject::add_key(std::string_view key) {
  if (body_.size() > 1) body_.push_back(',');
  body_.append(json_quoted(key)).push_back(':');
}

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  return json(key, json_quoted(value));
}

JsonObject& JsonObject::integer(std::string_view key, std::int64_t value) {
  return json(key, fmt::format("{}", value));
}

JsonObject& JsonObject::count(std::string_view key, std::size_t value) {
  return json(key, fmt::format("{}", value));
}

JsonObject& JsonObject::real(std::string_view key, double value) {
  return json(key, json_real(value));
}

JsonObject& JsonObject::null(std::string_view key) { return json(key, "null"); }

JsonObject& JsonObject::json(std::string_view key, std::string_view value) {
  add_key(key);
  body_.append(value);
  return *this;
}

JsonList& JsonList::text(std::string_view value) { return json(json_quoted(value)); }

JsonList& JsonList::count(std::size_t value) { return json(fmt::format("{}", value)); }

JsonList& JsonList::json(std::string_view value) {
  if (!is_empty()) body_.push_back(',');
  body_.append(value);
  return *this;
}

std::string data_event(std::string_view json) { return fmt::format("data: {}\n\n", json); }

std::string named_event(std::string_view name, std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n\n", name, json);
}

}  // namespace locket::server
