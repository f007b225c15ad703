// Conversations with a name, kept between runs of the program: one small JSON file each, in the
// folder "conversations" of the memory's folder. A file is replaced as a whole and synced after
// every turn, so that whatever happens at most the turn in flight is lost. The file's name is a
// digest of the conversation's, which may hold anything.
//
// A file that cannot be read or trusted is an error that names it and is left as it is. Not
// thread-safe; a conversation is open in one process at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/folder.h"
#include "base/result.h"
#include "chat/message.h"

namespace locket::service {

struct Conversation {
  std::string name = {};
  std::string model = {};   // a label for people: who spoke last
  std::string system = {};  // instructions; empty: none
  chat::ThinkingMode thinking = chat::ThinkingMode::kChat;
  int effort = chat::kDefaultEffort;         // in thinking mode
  std::vector<chat::Message> messages = {};  // user and assistant in turn; reasoning is kept
  double last_use = 0;                       // seconds since 1970

  std::size_t turns() const { return messages.size() / 2; }
};

// kBadRequest unless the name is 1 to 200 bytes of UTF-8 without control characters.
[[nodiscard]] Status check_conversation_name(std::string_view name);

class ConversationFile {
 public:
  // kOverloaded with the process that has it open; kBadMemory with the file and what is wrong in
  // it; kIo. `memory`: the memory's folder, private and there.
  [[nodiscard]] static Result<ConversationFile> open(const std::filesystem::path& memory,
                                                     const std::string& name);

  // What was kept; one without messages and with last_use 0 if there was nothing.
  const Conversation& stored() const { return stored_; }
  // Keeps `conversation` in place of what was stored; its time of use becomes now. kBadRequest if
  // a text is not UTF-8. Upon an error the file is what it was.
  [[nodiscard]] Status save(const Conversation& conversation);

  const std::filesystem::path& path() const { return path_; }

 private:
  ConversationFile(FolderLock lock, std::filesystem::path path);

  FolderLock lock_;
  std::filesystem::path path_;
  Conversation stored_;
};

struct ConversationList {
  std::vector<Conversation> conversations;  // last used first
  std::vector<std::string> unreadable;      // what is wrong, one line a file
};

// All that are kept; none if there is no such folder. kIo if it cannot be listed.
[[nodiscard]] Result<ConversationList> list_conversations(const std::filesystem::path& memory);

}  // namespace locket::service
