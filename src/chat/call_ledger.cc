#include "chat/call_ledger.h"

namespace locket::chat {

void CallLedger::open(const std::vector<ToolCall>& calls) {
  ++round_;
  newest_ids_.clear();
  is_answered_.assign(calls.size(), false);
  first_unanswered_ = 0;
  for (std::size_t place = 0; place < calls.size(); ++place) {
    newest_ids_.push_back(calls[place].id);
    if (!calls[place].id.empty()) waiting_[calls[place].id].push_back({round_, place});
  }
}

std::optional<std::size_t> CallLedger::answer(const std::string& id) {
  if (id.empty()) return answer_first_waiting();
  const auto found = waiting_.find(id);
  if (found == waiting_.end() || found->second.empty()) return std::nullopt;
  const Waiting call = found->second.back();
  found->second.pop_back();
  if (call.round != round_) return 0;
  is_answered_[call.place] = true;
  return call.place;
}

std::optional<std::size_t> CallLedger::answer_first_waiting() {
  while (first_unanswered_ < is_answered_.size() && is_answered_[first_unanswered_]) {
    ++first_unanswered_;
  }
  if (first_unanswered_ == is_answered_.size()) return std::nullopt;
  const std::size_t place = first_unanswered_;
  is_answered_[place] = true;
  const std::string& id = newest_ids_[place];
  if (!id.empty()) waiting_[id].pop_back();
  return place;
}

}  // namespace locket::chat
