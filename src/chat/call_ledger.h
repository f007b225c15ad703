// Which calls of the history wait for a result, so that results can be matched and ordered. One
// conversation, messages in order. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "chat/message.h"

namespace locket::chat {

class CallLedger {
 public:
  // An assistant message with calls.
  void open(const std::vector<ToolCall>& calls);

  // Takes the result for `id`; an empty id means the first waiting call of the newest message with
  // calls. Returns the place of the call in that newest message (0 for a call of an older one), or
  // none if no such call waits.
  std::optional<std::size_t> answer(const std::string& id);

 private:
  struct Waiting {
    std::size_t round = 0;
    std::size_t place = 0;
  };

  std::optional<std::size_t> answer_first_waiting();

  std::unordered_map<std::string, std::vector<Waiting>> waiting_;  // oldest round first
  std::size_t round_ = 0;
  std::vector<std::string> newest_ids_;
  std::vector<bool> is_answered_;     // of the newest message's calls
  std::size_t first_unanswered_ = 0;  // all before are answered
};

}  // namespace locket::chat
