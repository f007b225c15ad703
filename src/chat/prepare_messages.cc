#include "chat/prepare_messages.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "chat/call_ledger.h"

namespace locket::chat {
namespace {

Turn message_turn(Turn::Kind kind, const Message* message) {
  Turn turn;
  turn.kind = kind;
  turn.message = message;
  return turn;
}

// A turn with a task ends there: nothing merges into it.
void add_block(std::vector<Turn>& turns, UserBlock block) {
  const bool can_merge =
      !turns.empty() && turns.back().kind == Turn::Kind::kUser && turns.back().task == Task::kNone;
  if (!can_merge) turns.push_back(message_turn(Turn::Kind::kUser, nullptr));
  Turn& turn = turns.back();
  turn.task = block.message->task;
  turn.blocks.push_back(block);
}

void add_message(std::vector<Turn>& turns, const Message& message, CallLedger& ledger,
                 Reminders reminders) {
  switch (message.role) {
    case Role::kSystem:
      turns.push_back(message_turn(Turn::Kind::kSystem, &message));
      return;
    case Role::kUser:
    case Role::kDeveloper:
      add_block(turns, {&message, false, 0});
      return;
    case Role::kTool: {
      const std::size_t place = ledger.answer(message.tool_call_id).value_or(0);
      add_block(turns, {&message, true, place});
      return;
    }
    case Role::kAssistant:
      if (!message.tool_calls.empty()) ledger.open(message.tool_calls);
      turns.push_back(message_turn(Turn::Kind::kAssistant, &message));
      return;
    case Role::kLatestReminder:
      if (reminders == Reminders::kAll || turns.empty() ||
          turns.back().kind != Turn::Kind::kReminder) {
        turns.push_back(message_turn(Turn::Kind::kReminder, &message));
      }
      return;
    case Role::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// Results in the order of their calls; text blocks keep their slots.
void sort_results(Turn& turn) {
  std::vector<UserBlock> results;
  std::copy_if(turn.blocks.begin(), turn.blocks.end(), std::back_inserter(results),
               [](const UserBlock& block) { return block.is_result; });
  std::stable_sort(results.begin(), results.end(), [](const UserBlock& a, const UserBlock& b) {
    return a.call_place < b.call_place;
  });
  auto next = results.begin();
  for (UserBlock& block : turn.blocks) {
    if (block.is_result) block = *next++;
  }
}

}  // namespace

bool needs_system_turn(const ChatRequest& request) {
  return has_visible_tools(request) || request.response_format.kind != ResponseFormat::Kind::kText;
}

std::vector<Turn> prepare_messages(const ChatRequest& request, Reminders reminders) {
  std::vector<Turn> turns;
  const bool starts_with_system =
      !request.messages.empty() && request.messages.front().role == Role::kSystem;
  if (needs_system_turn(request) && !starts_with_system) {
    turns.push_back(message_turn(Turn::Kind::kSystem, nullptr));
  }
  CallLedger ledger;
  for (const Message& message : request.messages) {
    add_message(turns, message, ledger, reminders);
  }
  for (Turn& turn : turns) sort_results(turn);
  return turns;
}

}  // namespace locket::chat
