#include "cli/chat_session.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "cli/effort.h"
#include "cli/memory_path.h"
#include "cli/model_path.h"
#include "cli/text_table.h"
#include "tokenizer/utf8.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

std::string model_label(const fs::path& folder) {
  std::error_code ignored;
  return fs::weakly_canonical(folder, ignored).filename().string();
}

Result<MemoryChoice> memory_for(const ChatOptions& options, std::string_view option) {
  LOCKET_TRY(MemoryChoice choice, choose_memory(options.model.memory));
  if (!choice.is_off) return choice;
  return fail(ErrorCode::kBadRequest,
              fmt::format("{} needs the folder of the memory, where conversations are kept: {}",
                          option, choice.why_off));
}

std::string local_time(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  if (::localtime_r(&whole, &parts) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

}  // namespace

Result<ChatSession> ChatSession::open(const ChatOptions& options) {
  ChatSession session;
  session.request_.stop = options.sampling.stop;
  session.system_ = options.system;
  LOCKET_TRY_STATUS(apply_effort(options.effort, session.request_));
  if (!options.session.empty()) LOCKET_TRY_STATUS(session.continue_stored(options));
  session.add_system();
  if (!session.has_name()) return session;
  const auto& messages = session.stored().messages;
  session.request_.messages.insert(session.request_.messages.end(), messages.begin(),
                                   messages.end());
  return session;
}

Status ChatSession::continue_stored(const ChatOptions& options) {
  LOCKET_TRY(const MemoryChoice memory, memory_for(options, "--session"));
  LOCKET_TRY_STATUS(prepare_memory_folder(memory));
  LOCKET_TRY(const fs::path model, resolve_model(options.model.model));
  model_ = model_label(model);
  LOCKET_TRY(service::ConversationFile file,
             service::ConversationFile::open(memory.directory, options.session));
  file_.emplace(std::move(file));
  if (stored().messages.empty()) return {};
  if (!options.system.empty() && options.system != stored().system) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("session \"{}\" began with other instructions; leave --system out, or "
                            "take another name",
                            options.session));
  }
  system_ = stored().system;
  if (options.effort.empty()) {
    request_.thinking = stored().thinking;
    request_.effort = stored().effort;
  }
  return {};
}

void ChatSession::add_system() {
  if (system_.empty()) return;
  request_.messages.push_back(chat::text_message(chat::Role::kSystem, system_));
}

Status ChatSession::check_message(const std::string& text) const {
  if (!has_name() || tokenizer::is_valid_utf8(text)) return {};
  return fail(ErrorCode::kBadRequest,
              "this message is not UTF-8, which a session needs; it is left out");
}

Status ChatSession::save() {
  if (!has_name()) return {};
  service::Conversation conversation = {
      .model = model_, .system = system_, .thinking = request_.thinking, .effort = request_.effort};
  for (const chat::Message& message : request_.messages) {
    if (message.role != chat::Role::kSystem) conversation.messages.push_back(message);
  }
  return file_->save(conversation);
}

Status ChatSession::start_over() {
  request_.messages.clear();
  add_system();
  return save();
}

Status print_sessions(const ChatOptions& options) {
  LOCKET_TRY(const MemoryChoice memory, memory_for(options, "--sessions"));
  LOCKET_TRY(const service::ConversationList list, service::list_conversations(memory.directory));
  using Align = TextTable::Align;
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft});
  table.add_row({"session", "turns", "last use", "model"});
  for (const service::Conversation& conversation : list.conversations) {
    table.add_row({conversation.name, grouped(conversation.turns()),
                   local_time(conversation.last_use), conversation.model});
  }
  if (list.conversations.empty()) {
    fmt::print("No conversations are kept in {}.\n", memory.directory.string());
  } else {
    fmt::print("{}", table.text(0));
  }
  for (const std::string& line : list.unreadable) fmt::print(stderr, "locket: {}\n", line);
  return {};
}

}  // namespace locket::cli
