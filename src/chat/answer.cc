#include "chat/answer.h"

#include <utility>

#include "base/check.h"
#include "chat/markup.h"

namespace locket::chat {
namespace {

constexpr std::string_view kFence = "```";
constexpr std::string_view kFenceLine = "\n```";

// Stop strings first: they win against marks that end at the same byte. Then `extra`, then the
// closing tags of tool markup.
std::vector<std::string> with_marks(std::vector<std::string> stop,
                                    std::initializer_list<std::string_view> extra) {
  for (const std::string_view mark : extra) stop.emplace_back(mark);
  for (const std::string_view mark : kClosingTags) stop.emplace_back(mark);
  return stop;
}

bool is_fence_label_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '+';
}

}  // namespace

void NewlineGate::put(std::string_view text, std::string& out) {
  for (const char byte : text) {
    if (byte == '\n') {
      if (!drops_leading_) ++held_;
      continue;
    }
    drops_leading_ = false;
    release(out);
    out.push_back(byte);
  }
}

void NewlineGate::release(std::string& out) {
  out.append(held_, '\n');
  held_ = 0;
}

PlainAnswer::PlainAnswer(std::vector<std::string> stop, StopText stop_text, LeadingNewlines leading)
    : stop_count_(stop.size()),
      stop_text_(stop_text),
      scanner_(with_marks(std::move(stop), {kTagOpen, kThinkClose})),
      gate_(leading) {}

AnswerStep PlainAnswer::push(char byte, std::string& out) {
  const StopScanner::Step step = scanner_.push(byte);
  gate_.put(step.released, out);
  if (!step.match) return AnswerStep::kGoOn;
  if (*step.match == stop_count_) {
    gate_.swallow();
    return AnswerStep::kCallOpened;
  }
  gate_.release(out);
  if (*step.match > stop_count_) return AnswerStep::kGoOn;
  if (stop_text_ == StopText::kKeep) out.append(scanner_.pattern(*step.match));
  stop_index_ = *step.match;
  return AnswerStep::kStopped;
}

void PlainAnswer::finish(std::string& out) {
  gate_.put(scanner_.take_rest(), out);
  gate_.release(out);
}

JsonAnswer::JsonAnswer(std::vector<std::string> stop, StopText stop_text)
    : stop_count_(stop.size()),
      stop_text_(stop_text),
      before_({"{", "[", std::string(kFence), std::string(kThinkClose), std::string(kTagOpen)}),
      inside_(with_marks(std::move(stop), {kFenceLine, kTagOpen, kThinkClose})),
      after_({std::string(kTagOpen), std::string(kThinkClose)}),
      gate_(LeadingNewlines::kKeep) {}

AnswerStep JsonAnswer::push(char byte, std::string& out) {
  switch (state_) {
    case State::kBefore:
      return push_before(byte, out);
    case State::kFence:
      if (is_fence_label_byte(byte)) return AnswerStep::kGoOn;
      state_ = State::kBefore;
      return push_before(byte, out);
    case State::kInside:
      return push_inside(byte, out);
    case State::kAfter:
      return push_after(byte, out);
    case State::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void JsonAnswer::put_outside(std::string_view text, std::string& out) {
  if (has_gap_ || text.find_first_not_of("\r\n") == std::string_view::npos) return;
  has_gap_ = true;
  out.push_back(' ');
}

AnswerStep JsonAnswer::push_before(char byte, std::string& out) {
  const StopScanner::Step step = before_.push(byte);
  put_outside(step.released, out);
  if (!step.match) return AnswerStep::kGoOn;
  switch (*step.match) {
    case 0:
    case 1:
      state_ = State::kInside;
      return push_inside(byte, out);
    case 2:
      state_ = State::kFence;
      return AnswerStep::kGoOn;
    case 3:
      return AnswerStep::kGoOn;
    default:
      return AnswerStep::kCallOpened;
  }
}

AnswerStep JsonAnswer::push_inside(char byte, std::string& out) {
  follow_value(byte);
  const StopScanner::Step step = inside_.push(byte);
  gate_.put(step.released, out);
  if (!step.match) return AnswerStep::kGoOn;
  if (*step.match < stop_count_) {
    gate_.release(out);
    if (stop_text_ == StopText::kKeep) out.append(inside_.pattern(*step.match));
    stop_index_ = *step.match;
    return AnswerStep::kStopped;
  }
  const std::size_t mark = *step.match - stop_count_;
  if (mark == 0) {
    gate_.swallow();
    state_ = State::kAfter;
    has_gap_ = false;
    return AnswerStep::kGoOn;
  }
  if (!is_whole_) {
    // In an open value a mark is only text.
    const std::string_view text = mark == 1   ? kTagOpen
                                  : mark == 2 ? kThinkClose
                                              : kClosingTags[mark - 3];
    gate_.put(text, out);
    return AnswerStep::kGoOn;
  }
  if (mark == 1) {
    gate_.swallow();
    return AnswerStep::kCallOpened;
  }
  gate_.release(out);
  return AnswerStep::kGoOn;
}

AnswerStep JsonAnswer::push_after(char byte, std::string& out) {
  const StopScanner::Step step = after_.push(byte);
  put_outside(step.released, out);
  return step.match == std::size_t{0} ? AnswerStep::kCallOpened : AnswerStep::kGoOn;
}

void JsonAnswer::follow_value(char byte) {
  if (is_whole_) return;
  if (is_in_string_) {
    const bool ends = byte == '"' && !is_escaped_;
    is_escaped_ = byte == '\\' && !is_escaped_;
    is_in_string_ = !ends;
    return;
  }
  if (byte == '"') is_in_string_ = true;
  if (byte == '{' || byte == '[') ++depth_;
  if (byte == '}' || byte == ']') is_whole_ = --depth_ == 0;
}

void JsonAnswer::finish(std::string& out) {
  if (state_ == State::kInside) {
    gate_.put(inside_.take_rest(), out);
    gate_.release(out);
    return;
  }
  put_outside(state_ == State::kAfter ? after_.take_rest() : before_.take_rest(), out);
}

}  // namespace locket::chat
