// From the messages of a request to the turns of a prompt: tool results move into user turns, in
// the order of their calls; neighbouring user turns merge; tools and response format get a system
// turn to hang on. Pure functions, thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "chat/message.h"

namespace locket::chat {

// One block of a user turn. Points into the request.
struct UserBlock {
  const Message* message = nullptr;
  bool is_result = false;
  std::size_t call_place =
      0;  // of a result: where its call stands in the newest message with calls
};

struct Turn {
  enum class Kind { kSystem, kUser, kReminder, kAssistant, kCount };
  Kind kind = Kind::kUser;
  const Message* message = nullptr;  // nullptr: kUser, and a system turn that no message stands for
  std::vector<UserBlock> blocks;     // kUser
  Task task = Task::kNone;           // kUser
};

// What becomes of several reminders in a row: the first one stays, or all do.
enum class Reminders { kFirst, kAll, kCount };

// REQUIRES: `request` passed check_messages() and outlives the turns.
std::vector<Turn> prepare_messages(const ChatRequest& request, Reminders reminders);

// Whether tools or a response format must be shown, and so need a system turn.
bool needs_system_turn(const ChatRequest& request);

}  // namespace locket::chat
