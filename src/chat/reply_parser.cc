#include "chat/reply_parser.h"

#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "chat/answer.h"
#include "chat/call_parser.h"
#include "chat/markup.h"
#include "chat/reply_events.h"
#include "chat/stop_scanner.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {
namespace {

using Answer = std::variant<PlainAnswer, JsonAnswer>;

// Without tools, markup in reasoning is only text.
std::vector<std::string> reasoning_marks(const ParserStart& start) {
  std::vector<std::string> marks = {std::string(kThinkClose)};
  if (!start.tool_calls) return marks;
  marks.emplace_back(kTagOpen);
  for (const std::string_view mark : kClosingTags) marks.emplace_back(mark);
  return marks;
}

Answer make_answer(const ParserStart& start, std::vector<std::string> stop, StopText stop_text) {
  if (start.json) return JsonAnswer(std::move(stop), stop_text);
  const bool continues = start.start == ReplyStart::kContentContinued;
  return PlainAnswer(std::move(stop), stop_text,
                     continues ? LeadingNewlines::kKeep : LeadingNewlines::kDrop);
}

}  // namespace

class ReplyParser::Machine {
 public:
  Machine(const ParserStart& start, std::vector<std::string> stop, StopText stop_text)
      : start_(start),
        awaits_lead_space_(start.has_lead_space),
        reasoning_marks_(reasoning_marks(start)),
        reasoning_gate_(start.start == ReplyStart::kReasoningContinued ? LeadingNewlines::kKeep
                                                                       : LeadingNewlines::kDrop),
        answer_(make_answer(start, std::move(stop), stop_text)) {
    switch (start.start) {
      case ReplyStart::kContent:
        stage_ = Stage::kAnswer;
        return;
      case ReplyStart::kCalls:
        stage_ = Stage::kCalls;
        calls_.emplace(BlockStart::kInside, 0);
        return;
      case ReplyStart::kContentContinued:
        stage_ = Stage::kAnswer;
        break;
      case ReplyStart::kReasoning:
      case ReplyStart::kReasoningContinued:
        stage_ = Stage::kReasoning;
        break;
      case ReplyStart::kCount:
        LOCKET_CHECK(false);
    }
    reply_.reasoning.emplace();
  }

  void push(std::string_view text) {
    for (const char byte : text) {
      if (stage_ == Stage::kFinished) return;
      if (!std::exchange(awaits_lead_space_, false) || byte != ' ') step(byte);
    }
  }

  bool is_finished() const { return stage_ == Stage::kFinished; }

  std::vector<ReplyEvent> take_events() { return record(events_.take()); }

  std::vector<ReplyEvent> finish(FinishReason reason) {
    if (stage_ == Stage::kReasoning) {
      std::string text;
      reasoning_gate_.put(reasoning_marks_.take_rest(), text);
      reasoning_gate_.release(text);
      events_.add_text(ReplyEvent::Kind::kReasoning, text);
    } else if (stage_ == Stage::kAnswer) {
      std::string text;
      std::visit([&text](auto& answer) { answer.finish(text); }, answer_);
      events_.add_text(ReplyEvent::Kind::kContent, text);
    } else if (stage_ == Stage::kCalls) {
      end_block(calls_->is_complete_without_closer() ? BlockEnd::kWhole : BlockEnd::kCutOff);
    }
    stage_ = Stage::kFinished;
    if (reply_.stop_index) reason = FinishReason::kStop;
    if (reason == FinishReason::kStop && !reply_.tool_calls.empty()) {
      reason = FinishReason::kToolCalls;
    }
    reply_.finish_reason = reason;
    return record(events_.take_last(reason));
  }

  const Reply& reply() const { return reply_; }

 private:
  enum class Stage { kReasoning, kAnswer, kCalls, kFinished, kCount };
  enum class BlockEnd { kWhole, kCutOff, kCount };

  void step(char byte) {
    switch (stage_) {
      case Stage::kReasoning:
        step_reasoning(byte);
        return;
      case Stage::kAnswer:
        step_answer(byte);
        return;
      case Stage::kCalls:
        step_calls(byte);
        return;
      case Stage::kFinished:
        return;
      case Stage::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  void step_reasoning(char byte) {
    const StopScanner::Step step = reasoning_marks_.push(byte);
    std::string text;
    reasoning_gate_.put(step.released, text);
    if (step.match == std::size_t{0}) {
      reasoning_gate_.swallow();
      stage_ = Stage::kAnswer;
    } else if (step.match == std::size_t{1}) {
      reasoning_gate_.swallow();
      open_block();
    } else if (step.match) {
      reasoning_gate_.release(text);
    }
    events_.add_text(ReplyEvent::Kind::kReasoning, text);
  }

  void step_answer(char byte) {
    std::string text;
    const AnswerStep step =
        std::visit([&](auto& answer) { return answer.push(byte, text); }, answer_);
    events_.add_text(ReplyEvent::Kind::kContent, text);
    if (step == AnswerStep::kCallOpened) open_block();
    if (step == AnswerStep::kStopped) {
      reply_.stop_index = std::visit([](auto& answer) { return answer.stop_index(); }, answer_);
      stage_ = Stage::kFinished;
    }
  }

  void open_block() {
    calls_.emplace(BlockStart::kAfterTagOpen, 0);
    stage_ = Stage::kCalls;
  }

  void step_calls(char byte) {
    ReplyEvents suppressed;
    const CallParser::Progress progress =
        calls_->push(byte, start_.tool_calls ? events_ : suppressed);
    if (!start_.tool_calls) {
      // Calls were not offered: the block leaves no trace, and the answer goes on behind it.
      const bool is_over =
          progress == CallParser::Progress::kBlockClosed || calls_->is_complete_without_closer();
      if (is_over) stage_ = Stage::kAnswer;
      return;
    }
    if (progress == CallParser::Progress::kInside) return;
    const bool is_empty = calls_->is_empty();
    end_block(BlockEnd::kWhole);
    stage_ = is_empty ? Stage::kAnswer : Stage::kFinished;
  }

  // A block that was cut off delivers no call at all: it is not known what else it was to hold.
  void end_block(BlockEnd end) {
    if (!start_.tool_calls) return;
    if (end == BlockEnd::kWhole) reply_.tool_calls = calls_->take_calls();
    for (ReplyCall& call : reply_.tool_calls) {
      call.name = tokenizer::repair_utf8(call.name);
      call.arguments = tokenizer::repair_utf8(call.arguments);
    }
    reply_.broken_calls = calls_->begun_calls() - reply_.tool_calls.size();
  }

  std::vector<ReplyEvent> record(std::vector<ReplyEvent> events) {
    for (const ReplyEvent& event : events) {
      if (event.kind == ReplyEvent::Kind::kReasoning) reply_.reasoning->append(event.text);
      if (event.kind == ReplyEvent::Kind::kContent) reply_.content.append(event.text);
    }
    return events;
  }

  ParserStart start_;
  bool awaits_lead_space_;
  Stage stage_ = Stage::kAnswer;
  StopScanner reasoning_marks_;
  NewlineGate reasoning_gate_;
  Answer answer_;
  std::optional<CallParser> calls_;
  ReplyEvents events_;
  Reply reply_;
};

ReplyParser::ReplyParser(const ParserStart& start, std::vector<std::string> stop,
                         StopText stop_text)
    : machine_(std::make_unique<Machine>(start, std::move(stop), stop_text)) {}
ReplyParser::ReplyParser(ReplyParser&&) noexcept = default;
ReplyParser& ReplyParser::operator=(ReplyParser&&) noexcept = default;
ReplyParser::~ReplyParser() = default;

std::vector<ReplyEvent> ReplyParser::push(std::string_view text) {
  machine_->push(text);
  return machine_->take_events();
}

bool ReplyParser::is_finished() const { return machine_->is_finished(); }

std::vector<ReplyEvent> ReplyParser::finish(FinishReason reason) {
  return machine_->finish(reason);
}

const Reply& ReplyParser::reply() const { return machine_->reply(); }

}  // namespace locket::chat
