// The conversation of locket chat: without a name it lives as long as the program; with one
// (--session) it is kept in the memory's folder after every turn and goes on where it was left.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/message.h"
#include "cli/options.h"
#include "service/conversation.h"

namespace locket::cli {

class ChatSession {
 public:
  // kBadRequest if the session is wanted and the memory is off, or if --system differs from what
  // the session began with; errors of service::ConversationFile::open() and of the memory's folder.
  [[nodiscard]] static Result<ChatSession> open(const ChatOptions& options);

  // The messages so far, with the system prompt; service::complete() takes it as it is.
  chat::ChatRequest& request() { return request_; }
  bool has_name() const { return file_.has_value(); }
  // What was kept before; REQUIRES: has_name().
  const service::Conversation& stored() const { return file_->stored(); }

  // Whether `text` can become a message: one of a kept conversation must be UTF-8.
  [[nodiscard]] Status check_message(const std::string& text) const;
  // Keeps the messages so far. Does nothing without a name.
  [[nodiscard]] Status save();
  // Forgets all messages but the system prompt, here and in the file.
  [[nodiscard]] Status start_over();

 private:
  ChatSession() = default;

  [[nodiscard]] Status continue_stored(const ChatOptions& options);
  void add_system();

  chat::ChatRequest request_;
  std::string model_;   // a label for people
  std::string system_;  // empty: none
  std::optional<service::ConversationFile> file_;
};

// locket chat --sessions.
[[nodiscard]] Status print_sessions(const ChatOptions& options);

}  // namespace locket::cli
