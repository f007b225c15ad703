// What agents put into their requests that changes from one to the next and says nothing to the
// model. Left in place it would part a prompt from all that was remembered of the conversation.
// Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace locket::chat {

// A text of the system's without a line "x-anthropic-billing-header: ..." at its start, and without
// lines that are a count of tokens left and nothing else. The same words elsewhere stay.
std::string without_volatile_lines(std::string_view text);

// What stays the same over a user's sessions: of a JSON object all members but "session_id", in the
// order of their names; of other texts what stands before "_session_".
std::string stable_user_id(std::string_view user_id);

}  // namespace locket::chat
