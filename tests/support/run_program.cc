#include "tests/support/run_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace locket::test_support {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCannotStart = 127;  // as a shell says it
constexpr int kSignalBase = 128;

// Milliseconds left until `end`, at least 0.
int left_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

// Argument and environment lists in the form that exec takes; made before the fork.
class ExecLists {
 public:
  explicit ExecLists(const ProgramCall& call) {
    std::map<std::string, std::string> environment = call.environment;
    environment.try_emplace("LOCKET_MEMORY", "off");
    texts_.push_back(LOCKET_PROGRAM);
    texts_.insert(texts_.end(), call.arguments.begin(), call.arguments.end());
    const std::size_t argument_count = texts_.size();
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!environment.contains(text.substr(0, text.find('=')))) texts_.push_back(text);
    }
    for (const auto& [name, value] : environment) texts_.push_back(name + "=" + value);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      (i < argument_count ? arguments_ : environment_).push_back(texts_[i].data());
    }
    arguments_.push_back(nullptr);
    environment_.push_back(nullptr);
  }

  [[noreturn]] void exec() const {
    std::signal(SIGPIPE, SIG_DFL);
    ::execve(LOCKET_PROGRAM, arguments_.data(), environment_.data());
    ::_exit(kCannotStart);
  }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> arguments_;
  std::vector<char*> environment_;
};

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) ADD_FAILURE() << "pipe: " << std::strerror(errno);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends = {-1, -1};  // to read, to write
};

// One program with its three pipes.
class PipedProgram {
 public:
  explicit PipedProgram(const ProgramCall& call) : call_(call) {
    const ExecLists lists(call);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(input_.ends[0], STDIN_FILENO);
      ::dup2(output_.ends[1], STDOUT_FILENO);
      ::dup2(errors_.ends[1], STDERR_FILENO);
      for (Pipe* pipe : {&input_, &output_, &errors_}) {
        pipe->close_end(0);
        pipe->close_end(1);
      }
      if (!call_.folder.empty() && ::chdir(call_.folder.c_str()) != 0) ::_exit(kCannotStart);
      lists.exec();
    }
    input_.close_end(0);
    output_.close_end(1);
    errors_.close_end(1);
  }

  ProgramResult finish() {
    const auto end = Clock::now() + std::chrono::milliseconds(call_.timeout_ms);
    ProgramResult result;
    while (output_.ends[0] >= 0 || errors_.ends[0] >= 0) {
      if (!exchange(left_until(end), result)) {
        result.is_timed_out = true;
        ADD_FAILURE() << "the program has not ended after " << call_.timeout_ms << " ms";
        ::kill(process_, SIGKILL);
        break;
      }
    }
    int status = 0;
    ::waitpid(process_, &status, 0);
    result.exit_code = exit_code_of(status);
    return result;
  }

 private:
  // Waits for one of the pipes and serves it; false if the time is over.
  bool exchange(int timeout_ms, ProgramResult& result) {
    if (sent_ == call_.input.size()) input_.close_end(1);
    std::array<pollfd, 3> places = {pollfd{input_.ends[1], POLLOUT, 0},
                                    pollfd{output_.ends[0], POLLIN, 0},
                                    pollfd{errors_.ends[0], POLLIN, 0}};
    const int ready = ::poll(places.data(), places.size(), timeout_ms);
    if (ready == 0) return false;
    if (ready < 0) return errno == EINTR;
    if (places[0].revents != 0) send_some();
    if (places[1].revents != 0) receive(output_, result.output);
    if (places[2].revents != 0) receive(errors_, result.errors);
    return true;
  }

  void send_some() {
    const ssize_t count =
        ::write(input_.ends[1], call_.input.data() + sent_, call_.input.size() - sent_);
    if (count < 0) {  // the program does not read it
      sent_ = call_.input.size();
    } else {
      sent_ += static_cast<std::size_t>(count);
    }
  }

  static void receive(Pipe& pipe, std::string& text) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(pipe.ends[0], buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    } else {
      pipe.close_end(0);
    }
  }

  const ProgramCall& call_;
  Pipe input_;
  Pipe output_;
  Pipe errors_;
  std::size_t sent_ = 0;
  int process_ = -1;
};

}  // namespace

ProgramResult run_program(const ProgramCall& call) {
  std::signal(SIGPIPE, SIG_IGN);
  return PipedProgram(call).finish();
}

ProgramResult run_program(std::vector<std::string> arguments, std::string input) {
  return run_program({.arguments = std::move(arguments), .input = std::move(input)});
}

TerminalProgram::TerminalProgram(const std::vector<std::string>& arguments)
    : TerminalProgram(ProgramCall{.arguments = arguments}) {}

TerminalProgram::TerminalProgram(const ProgramCall& call) {
  const ExecLists lists(call);
  process_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
  if (process_ == 0) lists.exec();
  if (process_ < 0) ADD_FAILURE() << "forkpty: " << std::strerror(errno);
}

void TerminalProgram::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

TerminalProgram::~TerminalProgram() {
  kill();
  if (terminal_ >= 0) ::close(terminal_);
}

void TerminalProgram::type(std::string_view keys) const {
  while (!keys.empty()) {
    const ssize_t count = ::write(terminal_, keys.data(), keys.size());
    if (count <= 0) {
      ADD_FAILURE() << "typing: " << std::strerror(errno);
      return;
    }
    keys.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool TerminalProgram::read_more(int timeout_ms) {
  pollfd place = {terminal_, POLLIN, 0};
  if (::poll(&place, 1, timeout_ms) <= 0) return false;
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(terminal_, buffer.data(), buffer.size());
  if (count <= 0) return false;  // Linux says EIO when the last process has left the terminal
  screen_.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

bool TerminalProgram::wait_for(std::string_view text, int timeout_ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    const std::size_t at = screen_.find(text, found_);
    if (at != std::string::npos) {
      found_ = at + text.size();
      return true;
    }
    if (!read_more(left_until(end))) return false;
  }
}

int TerminalProgram::wait_for_end(int timeout_ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (read_more(left_until(end))) {
  }
  if (left_until(end) == 0) return -1;
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  return exit_code_of(status);
}

}  // namespace locket::test_support
