// locket chat: a conversation in the terminal. Ctrl-C stops the answer, not the program.
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>
#include <unistd.h>

#include "base/interrupt.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/model_setup.h"
#include "cli/reply_printer.h"

namespace locket::cli {
namespace {

constexpr int kEndedByInterrupt = 130;  // as a shell says it

bool is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

// What Ctrl-C means now: it stops the answer that is being made; where there is none, it says so to
// a person at the prompt, and ends the program while the model is loaded or a script talks.
class Interruption {
 public:
  std::stop_token start_answer() {
    const std::lock_guard lock(mutex_);
    source_ = std::stop_source();
    state_ = State::kAnswering;
    return source_.get_token();
  }
  void start_waiting() {
    const std::lock_guard lock(mutex_);
    state_ = State::kWaiting;
  }
  void on_interrupt() {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kAnswering) {
      source_.request_stop();
      return;
    }
    if (state_ == State::kLoading || !is_terminal()) std::_Exit(kEndedByInterrupt);
    fmt::print("\n(nothing to stop; /exit or Ctrl-D ends)\n> ");
    std::fflush(stdout);
  }

 private:
  enum class State { kLoading, kWaiting, kAnswering };

  std::mutex mutex_;
  std::stop_source source_;
  State state_ = State::kLoading;
};

// One answer; it joins the conversation, also if it was stopped half-way.
Status answer(const ModelSetup& setup, const service::CompletionDefaults& defaults,
              std::stop_token stop, ChatSession& session) {
  chat::ChatRequest& conversation = session.request();
  ReplyPrinter printer(stdout);
  const service::CompletionHooks hooks = {
      .on_event = [&](const chat::ReplyEvent& event) { printer.on_event(event); },
      .on_prompt = {},
      .stop = std::move(stop)};
  const Result<service::Completion> completion =
      service::complete(setup.loaded, conversation, defaults, hooks);
  printer.finish();
  if (!completion) return tl::make_unexpected(completion.error());
  if (completion->is_cancelled) fmt::print("(stopped)\n");
  if (completion->reply.finish_reason == chat::FinishReason::kLength) {
    fmt::print("(cut off: the limit of tokens is reached)\n");
  }
  chat::Message message = chat::text_message(chat::Role::kAssistant, completion->reply.content);
  message.reasoning = completion->reply.reasoning.value_or("");
  conversation.messages.push_back(std::move(message));
  const Status saved = session.save();
  if (!saved) {
    report(saved.error());
    fmt::print(stderr, "This turn is not kept; the next one is tried again.\n");
  }
  return {};
}

void print_help() {
  fmt::print(
      "Type a message and press Enter. Ctrl-C stops an answer; /new starts over; /exit or Ctrl-D "
      "ends.\n");
}

void start_over(ChatSession& session) {
  const Status status = session.start_over();
  if (!status) report(status.error());
  if (!is_terminal()) return;
  if (!session.has_name()) {
    fmt::print("(a new conversation)\n");
  } else if (status) {
    fmt::print("(session \"{}\" starts over; what was said in it is forgotten)\n",
               session.stored().name);
  }
}

// What there is already, for a person who comes back.
void print_continuation(const ChatSession& session) {
  if (!is_terminal() || !session.has_name()) return;
  const service::Conversation& stored = session.stored();
  if (stored.messages.empty()) {
    fmt::print("(session \"{}\" is new)\n", stored.name);
    return;
  }
  fmt::print("(session \"{}\" goes on after {} {} with {}; the last one was:)\n> {}\n{}\n",
             stored.name, stored.turns(), stored.turns() == 1 ? "turn" : "turns", stored.model,
             stored.messages[stored.messages.size() - 2].content.front().text,
             stored.messages.back().content.front().text);
}

// This turn failed; the conversation goes on without it.
void report_turn(const Error& error) {
  if (error.code == ErrorCode::kCancelled) {
    fmt::print("(stopped)\n");
    return;
  }
  report(error);
  if (error.code == ErrorCode::kContextTooLong || error.code == ErrorCode::kOverBudget) {
    fmt::print(stderr, "The conversation has become too long; /new starts over.\n");
  }
}

void say(const ModelSetup& setup, const service::CompletionDefaults& defaults,
         const std::string& line, Interruption& interruption, ChatSession& session) {
  const Status valid = session.check_message(line);
  if (!valid) {
    report(valid.error());
    return;
  }
  session.request().messages.push_back(chat::text_message(chat::Role::kUser, line));
  const Status status = answer(setup, defaults, interruption.start_answer(), session);
  interruption.start_waiting();
  if (!status) {
    session.request().messages.pop_back();
    report_turn(status.error());
  }
}

Status converse(const ChatOptions& options, Interruption& interruption) {
  LOCKET_TRY(ChatSession session, ChatSession::open(options));
  LOCKET_TRY(const ModelSetup setup, set_up_remembering_model(options.model));
  const service::CompletionDefaults defaults = completion_defaults(options.sampling);
  interruption.start_waiting();
  if (is_terminal()) print_help();
  print_continuation(session);
  std::string line;
  while (true) {
    if (is_terminal()) fmt::print("> ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line) || line == "/exit") break;
    if (line.empty()) continue;
    if (line == "/help") {
      print_help();
      continue;
    }
    if (line == "/new") {
      start_over(session);
      continue;
    }
    say(setup, defaults, line, interruption, session);
  }
  if (is_terminal() && !std::cin) fmt::print("\n");
  return {};
}

}  // namespace

int run_chat(const ChatOptions& options) {
  if (options.lists_sessions) {
    const Status status = print_sessions(options);
    return status ? 0 : report(status.error());
  }
  Interruption interruption;
  // Made first, so that the engine's threads leave Ctrl-C to it.
  const InterruptWatcher watcher([&] { interruption.on_interrupt(); });
  const Status status = converse(options, interruption);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
