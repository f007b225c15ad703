// Collects the events of one step: joins neighbouring deltas, and holds back bytes that begin a
// character until it is whole. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/reply.h"

namespace locket::chat {

class ReplyEvents {
 public:
  void add_text(ReplyEvent::Kind kind, std::string_view text) { add_call_text(kind, 0, text); }
  void add_call_text(ReplyEvent::Kind kind, std::size_t call, std::string_view text);
  void add_call_end(std::size_t call);

  // The events so far. Broken UTF-8 in them is repaired; an unfinished character at the very end
  // stays back.
  std::vector<ReplyEvent> take();

  // The last events: unfinished characters become U+FFFD, then kFinish.
  std::vector<ReplyEvent> take_last(FinishReason reason);

 private:
  std::vector<ReplyEvent> events_;
};

}  // namespace locket::chat
