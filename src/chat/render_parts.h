// What the renderers of several generations have in common. Thread-safe as long as the writer is
// not shared.
#pragma once

#include <string_view>
#include <vector>

#include "chat/message.h"
#include "chat/reply.h"
#include "chat/segments.h"

namespace locket::chat {

// Whether an answer's header opens its reasoning, or says that there is none.
enum class Thought { kOpen, kClosed, kCount };

// The control token that says so.
std::string_view thought_token(Thought thought);

// REQUIRES: not kNone.
std::string_view task_token(Task task);

// Tools that the prompt shows: all, or the one that the choice names.
std::vector<const Tool*> shown_tools(const ChatRequest& request);

// The gap and the block that says what the answer must be; nothing if it may be anything.
void add_response_format(const ChatRequest& request, SegmentWriter& out);

// Whether the message's sampled tokens can stand for it: the header before it is the one that they
// were sampled under. A task in place of a header is none for forced calls.
bool is_replayed(const Message& message, Thought thought, Task task);

// Where the output begins that continues an unfinished last message.
ReplyStart continued_start(const ChatRequest& request, const Message& message);

}  // namespace locket::chat
