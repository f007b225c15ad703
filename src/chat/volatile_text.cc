#include "chat/volatile_text.h"

#include <algorithm>
#include <cstddef>

#include "chat/json_reader.h"
#include "chat/json_value.h"
#include "chat/python_json.h"

namespace locket::chat {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// <total_tokens>N tokens left</total_tokens>
bool is_token_count(std::string_view line) {
  constexpr std::string_view kOpen = "<total_tokens>";
  constexpr std::string_view kClose = " tokens left</total_tokens>";
  if (line.size() <= kOpen.size() + kClose.size()) return false;
  if (!line.starts_with(kOpen) || !line.ends_with(kClose)) return false;
  line.remove_prefix(kOpen.size());
  line.remove_suffix(kClose.size());
  return std::all_of(line.begin(), line.end(), is_digit);
}

// The first line of `text`, with its newline.
std::string_view first_line(std::string_view text) {
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? text : text.substr(0, end + 1);
}

}  // namespace

std::string without_volatile_lines(std::string_view text) {
  constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";
  if (text.starts_with(kBillingHeader)) text.remove_prefix(first_line(text).size());
  std::string kept;
  bool is_behind_count = false;
  while (!text.empty()) {
    const std::string_view line = first_line(text);
    text.remove_prefix(line.size());
    std::string_view words = line;
    if (words.ends_with('\n')) words.remove_suffix(1);
    is_behind_count = is_token_count(words) || (is_behind_count && words.empty());
    if (!is_token_count(words)) kept += line;
  }
  // Counts pile up at the end, with newlines before each.
  while (is_behind_count && kept.ends_with('\n')) kept.pop_back();
  return kept;
}

std::string stable_user_id(std::string_view user_id) {
  const Result<JsonValue> read = read_json(user_id, "user_id", kRequestLimits);
  if (!read || !read->is_object()) {
    return std::string(user_id.substr(0, user_id.find("_session_")));
  }
  JsonValue object = *read;
  std::erase_if(object.members,
                [](const JsonMember& member) { return member.name == "session_id"; });
  std::sort(object.members.begin(), object.members.end(),
            [](const JsonMember& a, const JsonMember& b) { return a.name < b.name; });
  return python_json(object);
}

}  // namespace locket::chat
