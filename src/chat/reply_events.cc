#include "chat/reply_events.h"

#include <utility>

#include "chat/utf8.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

void ReplyEvents::add_call_text(ReplyEvent::Kind kind, std::size_t call, std::string_view text) {
  if (text.empty() && kind != ReplyEvent::Kind::kCallName) return;
  const bool joins = !events_.empty() && events_.back().kind == kind &&
                     events_.back().call == call && kind != ReplyEvent::Kind::kCallName;
  if (!joins) {
    events_.emplace_back();
    events_.back().kind = kind;
    events_.back().call = call;
  }
  events_.back().text.append(text);
}

void ReplyEvents::add_call_end(std::size_t call) {
  events_.emplace_back();
  events_.back().kind = ReplyEvent::Kind::kCallEnd;
  events_.back().call = call;
}

std::vector<ReplyEvent> ReplyEvents::take() {
  std::vector<ReplyEvent> taken = std::exchange(events_, {});
  if (taken.empty()) return taken;
  ReplyEvent& last = taken.back();
  const std::size_t tail = incomplete_utf8_tail(last.text);
  if (tail > 0) {
    ReplyEvent rest = last;
    rest.text.erase(0, last.text.size() - tail);
    last.text.resize(last.text.size() - tail);
    events_.push_back(std::move(rest));
    if (last.text.empty()) taken.pop_back();
  }
  for (ReplyEvent& event : taken) event.text = tokenizer::repair_utf8(event.text);
  return taken;
}

std::vector<ReplyEvent> ReplyEvents::take_last(FinishReason reason) {
  std::vector<ReplyEvent> taken = std::exchange(events_, {});
  for (ReplyEvent& event : taken) event.text = tokenizer::repair_utf8(event.text);
  taken.emplace_back();
  taken.back().kind = ReplyEvent::Kind::kFinish;
  taken.back().finish_reason = reason;
  return taken;
}

}  // namespace locket::chat
