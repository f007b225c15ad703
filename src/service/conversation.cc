#include "service/conversation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "tokenizer/utf8.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::size_t kMostNameBytes = 200;
constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 28;
constexpr std::size_t kDigestDigits = 64;
constexpr std::string_view kSuffix = ".json";

fs::path folder_of(const fs::path& memory) { return memory / "conversations"; }

std::string file_stem(std::string_view name) {
  return to_hex(sha256(std::as_bytes(std::span(name))));
}

std::string text_of(const chat::Message& message) {
  std::string text;
  for (const chat::ContentPart& part : message.content) text += part.text;
  return text;
}

std::string to_text(const Conversation& conversation) {
  Json messages = Json::array();
  for (const chat::Message& message : conversation.messages) {
    const bool is_user = message.role == chat::Role::kUser;
    Json entry = {{"role", is_user ? "user" : "assistant"}, {"content", text_of(message)}};
    if (!message.reasoning.empty()) entry["reasoning"] = message.reasoning;
    messages.push_back(std::move(entry));
  }
  const Json file = {{"what", "a conversation of locket chat --session"},
                     {"format", kFormat},
                     {"name", conversation.name},
                     {"model", conversation.model},
                     {"system", conversation.system},
                     {"thinking", conversation.thinking == chat::ThinkingMode::kThinking},
                     {"effort", conversation.effort},
                     {"last_use", conversation.last_use},
                     {"messages", std::move(messages)}};
  return file.dump(1) + "\n";
}

tl::unexpected<Error> fault(std::string reason) {
  return fail(ErrorCode::kBadMemory, std::move(reason));
}

Result<chat::Message> read_message(const Json& entry, std::size_t place) {
  const bool is_user = place % 2 == 0;
  const std::string role = entry.at("role").get<std::string>();
  if (role != (is_user ? "user" : "assistant")) {
    return fault(
        fmt::format("messages[{}].role is \"{}\"; user and assistant take turns", place, role));
  }
  chat::Message message = chat::text_message(is_user ? chat::Role::kUser : chat::Role::kAssistant,
                                             entry.at("content").get<std::string>());
  if (!is_user) message.reasoning = entry.value("reasoning", std::string());
  return message;
}

Result<Conversation> read_fields(const Json& file) {
  if (file.at("format") != kFormat) {
    return fault(
        fmt::format("format is {}; this program knows {}", file.at("format").dump(), kFormat));
  }
  Conversation conversation = {.name = file.at("name").get<std::string>(),
                               .model = file.at("model").get<std::string>(),
                               .system = file.at("system").get<std::string>()};
  LOCKET_TRY_STATUS(check_conversation_name(conversation.name));
  if (file.at("thinking").get<bool>()) conversation.thinking = chat::ThinkingMode::kThinking;
  const Json& effort = file.at("effort");
  if (!effort.is_number_integer() || effort < 1 || effort > 100) {
    return fault(fmt::format("effort is {}; 1 to 100 is right", effort.dump()));
  }
  conversation.effort = effort.get<int>();
  conversation.last_use = file.at("last_use").get<double>();
  if (!std::isfinite(conversation.last_use)) return fault("last_use is no number");
  const Json& messages = file.at("messages");
  if (!messages.is_array() || messages.size() % 2 != 0) {
    return fault("messages is no list of questions, each with its answer");
  }
  for (const Json& entry : messages) {
    LOCKET_TRY(chat::Message message, read_message(entry, conversation.messages.size()));
    conversation.messages.push_back(std::move(message));
  }
  return conversation;
}

Result<Conversation> read_conversation(const fs::path& path) {
  LOCKET_TRY(const std::string text, read_private_file(path, kMostFileBytes));
  std::string reason;
  try {
    Result<Conversation> read = read_fields(Json::parse(text));
    if (read && path.filename().string() == file_stem(read->name) + std::string(kSuffix)) {
      return read;
    }
    reason = read ? fmt::format("it is the file of another name, \"{}\"", read->name)
                  : read.error().message;
  } catch (const nlohmann::json::exception& error) {
    reason = error.what();
  }
  return fail(ErrorCode::kBadMemory, fmt::format("the conversation in {} cannot be read: {}; it is "
                                                 "left as it is (move it away to start anew)",
                                                 path.string(), reason));
}

Status check_text(std::string_view what, std::string_view text) {
  if (tokenizer::is_valid_utf8(text)) return {};
  return fail(ErrorCode::kBadRequest,
              fmt::format("{} is not UTF-8, so the conversation cannot be kept", what));
}

}  // namespace

Status check_conversation_name(std::string_view name) {
  const auto is_control = [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
  };
  if (!name.empty() && name.size() <= kMostNameBytes && tokenizer::is_valid_utf8(name) &&
      std::ranges::none_of(name, is_control)) {
    return {};
  }
  return fail(ErrorCode::kBadRequest,
              fmt::format("a session's name is 1 to {} bytes of UTF-8 without control characters",
                          kMostNameBytes));
}

ConversationFile::ConversationFile(FolderLock lock, std::filesystem::path path)
    : lock_(std::move(lock)), path_(std::move(path)) {}

Result<ConversationFile> ConversationFile::open(const std::filesystem::path& memory,
                                                const std::string& name) {
  LOCKET_TRY_STATUS(check_conversation_name(name));
  const fs::path folder = folder_of(memory);
  LOCKET_TRY_STATUS(make_private_folder(folder));
  LOCKET_TRY_STATUS(check_private_folder(folder));
  const std::string stem = file_stem(name);
  Result<FolderLock> lock = FolderLock::take(folder / (stem + ".lock"));
  if (!lock && lock.error().code == ErrorCode::kOverloaded) {
    return fail(ErrorCode::kOverloaded,
                fmt::format("session \"{}\" is open elsewhere: {}", name, lock.error().message));
  }
  if (!lock) return tl::make_unexpected(std::move(lock.error()));
  ConversationFile file(std::move(*lock), folder / (stem + std::string(kSuffix)));
  file.stored_.name = name;
  Result<Conversation> stored = read_conversation(file.path_);
  if (stored) {
    file.stored_ = std::move(*stored);
  } else if (stored.error().code != ErrorCode::kNotFound) {
    return tl::make_unexpected(std::move(stored.error()));
  }
  return file;
}

Status ConversationFile::save(const Conversation& conversation) {
  LOCKET_TRY_STATUS(check_text("the model's name", conversation.model));
  LOCKET_TRY_STATUS(check_text("the system prompt", conversation.system));
  for (const chat::Message& message : conversation.messages) {
    LOCKET_TRY_STATUS(check_text("a message", text_of(message)));
    LOCKET_TRY_STATUS(check_text("a message's reasoning", message.reasoning));
  }
  Conversation kept = conversation;
  kept.name = stored_.name;
  kept.last_use = wall_seconds();
  LOCKET_TRY_STATUS(replace_private_file(path_, to_text(kept)));
  stored_ = std::move(kept);
  return {};
}

Result<ConversationList> list_conversations(const std::filesystem::path& memory) {
  ConversationList list;
  std::error_code ignored;
  if (!fs::exists(folder_of(memory), ignored)) return list;
  LOCKET_TRY_STATUS(check_private_folder(folder_of(memory)));
  LOCKET_TRY(const std::vector<FolderEntry> entries, list_files(folder_of(memory)));
  for (const FolderEntry& entry : entries) {
    if (entry.name.size() != kDigestDigits + kSuffix.size() || !entry.name.ends_with(kSuffix)) {
      continue;
    }
    Result<Conversation> read = read_conversation(folder_of(memory) / entry.name);
    if (!read) {
      if (read.error().code != ErrorCode::kNotFound)
        list.unreadable.push_back(read.error().message);
      continue;
    }
    list.conversations.push_back(std::move(*read));
  }
  std::ranges::stable_sort(list.conversations, std::ranges::greater(), &Conversation::last_use);
  return list;
}

}  // namespace locket::service
