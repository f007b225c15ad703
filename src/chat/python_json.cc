#include "chat/python_json.h"

#include <fmt/format.h>
#include <iterator>

#include "base/check.h"
#include "chat/json_number.h"

namespace locket::chat {
namespace {

void append_value(const JsonValue& value, std::string& out);

void append_string(std::string_view text, std::string& out) {
  out.push_back('"');
  append_escaped(text, out);
  out.push_back('"');
}

void append_array(const JsonValue& value, std::string& out) {
  out.push_back('[');
  std::string_view separator;
  for (const JsonValue& item : value.items) {
    out.append(separator);
    append_value(item, out);
    separator = ", ";
  }
  out.push_back(']');
}

void append_object(const JsonValue& value, std::string& out) {
  out.push_back('{');
  std::string_view separator;
  for (const JsonMember& member : value.members) {
    out.append(separator);
    append_string(member.name, out);
    out.append(": ");
    append_value(member.value, out);
    separator = ", ";
  }
  out.push_back('}');
}

void append_value(const JsonValue& value, std::string& out) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out.append("null");
      return;
    case JsonValue::Kind::kBool:
      out.append(value.boolean ? "true" : "false");
      return;
    case JsonValue::Kind::kInteger:
      out.append(value.text);
      return;
    case JsonValue::Kind::kFloat:
      out.append(python_repr(read_double(value.text).value()));
      return;
    case JsonValue::Kind::kString:
      append_string(value.text, out);
      return;
    case JsonValue::Kind::kArray:
      append_array(value, out);
      return;
    case JsonValue::Kind::kObject:
      append_object(value, out);
      return;
    case JsonValue::Kind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace

std::string python_json(const JsonValue& value) {
  std::string out;
  append_value(value, out);
  return out;
}

void append_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view kCharacters = "\"\\\n\r\t\b\f";
  constexpr std::string_view kLetters = "\"\\nrtbf";
  for (const char byte : text) {
    const std::size_t which = kCharacters.find(byte);
    if (which != std::string_view::npos) {
      out.push_back('\\');
      out.push_back(kLetters[which]);
    } else if (static_cast<unsigned char>(byte) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(byte));
    } else {
      out.push_back(byte);
    }
  }
}

}  // namespace locket::chat
