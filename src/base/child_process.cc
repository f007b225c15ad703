#include "base/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/check.h"

namespace locket {
namespace {

constexpr const char* kOwnProgram = "/proc/self/exe";

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

struct Pipe {
  Pipe() : is_open(::pipe2(ends.data(), O_CLOEXEC) == 0) {}
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_if_open(ends[0]);
    close_if_open(ends[1]);
  }
  std::array<int, 2> ends = {-1, -1};  // to read, to write
  bool is_open;
};

}  // namespace

ChildProcess::ChildProcess(int process, int input, int output)
    : process_(process), input_(input), output_(output) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      unread_(std::move(other.unread_)) {}

ChildProcess::~ChildProcess() {
  if (process_ >= 0) {
    ::kill(process_, SIGKILL);
    static_cast<void>(wait());
  }
  close_if_open(input_);
  close_if_open(output_);
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = arguments;
  texts.insert(texts.begin(), "locket");
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  Pipe input;
  Pipe output;
  if (!input.is_open || !output.is_open) {
    return fail(ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, kOwnProgram, &actions, nullptr, list.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot start {}: {}", kOwnProgram, std::strerror(error)));
  }
  return ChildProcess(process, std::exchange(input.ends[1], -1), std::exchange(output.ends[0], -1));
}

Result<std::string> ChildProcess::read_line() {
  LOCKET_CHECK(output_ >= 0);
  while (true) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> buffer = {};
    const ssize_t count = ::read(output_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorCode::kIo, "a process that was started has ended too early");
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Status ChildProcess::kill() {
  LOCKET_CHECK(process_ >= 0);
  ::kill(process_, SIGKILL);
  const int status = wait();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return {};
  return fail(ErrorCode::kIo, "a process that was started has ended before it was killed");
}

int ChildProcess::wait() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

}  // namespace locket
