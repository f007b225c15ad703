#include "chat/call_parser.h"

#include "base/check.h"
#include "chat/markup.h"
#include "chat/python_json.h"

namespace locket::chat {
namespace {

constexpr std::string_view kInvokeMark = "invoke name=\"";
constexpr std::string_view kParameterMark = "parameter name=\"";
constexpr std::string_view kBehindParameter = " name=\"";
// Longer than every mark that is looked for in a tail.
constexpr std::size_t kTailBytes = 64;

bool ends_with_parameter_tag(std::string_view tail) {
  return tail.ends_with("<parameter") || tail.ends_with("｜parameter") ||
         tail.ends_with("｜ parameter");
}

bool is_tag_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || byte == '_' || byte == ' ';
}

}  // namespace

CallParser::CallParser(BlockStart start, std::size_t first_call)
    : tail_is_all_(start == BlockStart::kAfterTagOpen),
      value_end_({std::string(kTagClose)}),
      first_call_(first_call) {}

CallParser::Progress CallParser::push(char byte, ReplyEvents& events) {
  switch (state_) {
    case State::kBlock:
      push_block(byte);
      return Progress::kInside;
    case State::kName:
      push_name(byte);
      return Progress::kInside;
    case State::kCall:
      push_call(byte);
      return Progress::kInside;
    case State::kHeader:
      push_header(byte, events);
      return Progress::kInside;
    case State::kValue:
      push_value(byte, events);
      return Progress::kInside;
    case State::kCloser:
      return push_closer(byte, events);
    case State::kSkip:
      push_skip(byte);
      return Progress::kInside;
    case State::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void CallParser::enter(State state) {
  state_ = state;
  tail_.clear();
  awaits_header_ = false;
}

void CallParser::expect_closer(State from) {
  closed_from_ = from;
  closer_name_.clear();
  enter(State::kCloser);
}

void CallParser::keep(char byte) {
  if (tail_.size() == kTailBytes) {
    tail_.erase(0, kTailBytes / 2);
    tail_is_all_ = false;
  }
  tail_.push_back(byte);
}

void CallParser::push_block(char byte) {
  keep(byte);
  if (tail_.ends_with(kTagOpen)) has_tags_ = true;
  if (tail_.ends_with(kTagClose)) {
    tail_is_all_ = false;
    expect_closer(State::kBlock);
  } else if (tail_.ends_with(kInvokeMark)) {
    // Nothing but a space stands between the opener and its `invoke`: the block has no tag.
    if (tail_is_all_ && tail_.size() <= kInvokeMark.size() + 1) is_bare_ = true;
    begin_call();
  }
}

void CallParser::begin_call() {
  tail_is_all_ = false;
  has_tags_ = true;
  ++begun_calls_;
  open_ = OpenCall{};
  enter(State::kName);
}

void CallParser::push_name(char byte) {
  if (byte == '"') {
    enter(State::kCall);
  } else if (byte == '<' || byte == '\n') {
    enter(State::kSkip);
    push_skip(byte);
  } else {
    open_.call.name.push_back(byte);
  }
}

void CallParser::push_call(char byte) {
  if (awaits_header_ && byte != kBehindParameter[header_matched_++]) {
    enter(State::kSkip);
    push_skip(byte);
    return;
  }
  keep(byte);
  if (tail_.ends_with(kParameterMark)) {
    header_.clear();
    enter(State::kHeader);
  } else if (tail_.ends_with(kTagClose)) {
    expect_closer(State::kCall);
  } else if (ends_with_parameter_tag(tail_)) {
    awaits_header_ = true;
    header_matched_ = 0;
  }
}

void CallParser::push_header(char byte, ReplyEvents& events) {
  header_.push_back(byte);
  if (header_.ends_with(kTagClose)) {
    expect_closer(State::kSkip);
  } else if (header_.ends_with(kTagOpen)) {
    enter(State::kSkip);
  } else if (header_.ends_with("\">")) {
    begin_parameter(events);
  }
}

void CallParser::begin_parameter(ReplyEvents& events) {
  const std::string_view header = header_;
  const std::size_t name_end = header.find("\" ");
  if (name_end == std::string_view::npos) return enter(State::kSkip);
  const std::string_view attributes = header.substr(name_end + 1);
  const bool is_string = attributes.find(" string=\"true\"") != std::string_view::npos;
  const bool is_json = attributes.find(" string=\"false\"") != std::string_view::npos;
  if (is_string == is_json) return enter(State::kSkip);
  value_kind_ = is_string ? ValueKind::kString : ValueKind::kJson;
  announce(events);
  // The name is copied as the model wrote it, which for odd names is not JSON.
  std::string text = open_.parameters == 0 ? "{\"" : ", \"";
  text.append(header.substr(0, name_end)).append("\": ");
  if (is_string) text.push_back('"');
  add_arguments(text, events);
  ++open_.parameters;
  enter(State::kValue);
}

void CallParser::push_value(char byte, ReplyEvents& events) {
  const StopScanner::Step step = value_end_.push(byte);
  if (value_kind_ == ValueKind::kJson) {
    add_arguments(step.released, events);
  } else {
    std::string escaped;
    append_escaped(step.released, escaped);
    add_arguments(escaped, events);
  }
  if (step.match) expect_closer(State::kValue);
}

void CallParser::push_skip(char byte) {
  keep(byte);
  if (tail_.ends_with(kTagClose)) {
    expect_closer(State::kSkip);
  } else if (tail_.ends_with("<｜DSML｜ invoke name=\"") ||
             tail_.ends_with("<｜DSML｜invoke name=\"")) {
    begin_call();
  }
}

CallParser::Progress CallParser::push_closer(char byte, ReplyEvents& events) {
  if (is_tag_name_byte(byte) && closer_name_.size() < kTailBytes) {
    closer_name_.push_back(byte);
    return Progress::kInside;
  }
  if (byte == '>') return close(CloserForm::kWhole, events);
  close(CloserForm::kBroken, events);
  return push(byte, events);
}

CallParser::Progress CallParser::close(CloserForm form, ReplyEvents& events) {
  std::string_view name = closer_name_;
  while (name.starts_with(' ')) name.remove_prefix(1);
  if (form == CloserForm::kBroken) name = {};
  const bool closes_call = name == "invoke";
  const bool closes_parameter = name == "parameter";
  bool closes_block = name.ends_with("calls");
  State next = closed_from_;
  if (closed_from_ == State::kValue) {
    // Any closing tag ends a value, as there is no way to quote one.
    end_value(events);
    next = State::kCall;
    if (closes_call || closes_block) {
      end_call(events);
      next = State::kBlock;
    }
  } else if (closed_from_ == State::kCall) {
    if (!closes_parameter) {
      end_call(events);
      next = State::kBlock;
    }
  } else if (closed_from_ == State::kSkip) {
    if (closes_call) next = State::kBlock;
  } else {
    // A block of an unknown name ends with a tag of that name.
    closes_block = form == CloserForm::kWhole && !closes_call && !closes_parameter;
  }
  enter(next);
  return closes_block ? Progress::kBlockClosed : Progress::kInside;
}

void CallParser::end_value(ReplyEvents& events) {
  if (value_kind_ == ValueKind::kString) add_arguments("\"", events);
}

void CallParser::end_call(ReplyEvents& events) {
  announce(events);
  add_arguments(open_.parameters == 0 ? "{}" : "}", events);
  events.add_call_end(open_.number);
  calls_.push_back(std::move(open_.call));
  open_ = OpenCall{};
}

void CallParser::announce(ReplyEvents& events) {
  if (open_.is_announced) return;
  open_.is_announced = true;
  open_.number = first_call_ + announced_calls_;
  ++announced_calls_;
  events.add_call_text(ReplyEvent::Kind::kCallName, open_.number, open_.call.name);
}

void CallParser::add_arguments(std::string_view text, ReplyEvents& events) {
  open_.call.arguments.append(text);
  events.add_call_text(ReplyEvent::Kind::kCallArguments, open_.number, text);
}

}  // namespace locket::chat
