// A second process that runs this very program: with arguments of its own, its standard output
// read line by line, the same standard error. It is killed with the object that stands for it; if
// this process dies first, the child sees the end of its standard input. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace locket {

class ChildProcess {
 public:
  // `arguments` without the program's name. kIo if it cannot be started.
  [[nodiscard]] static Result<ChildProcess> start(const std::vector<std::string>& arguments);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  // As the system numbers it; -1 once it was killed.
  int process_id() const { return process_; }

  // The next line of its output, without its end; waits for it. kIo if the output ends before.
  [[nodiscard]] Result<std::string> read_line();
  // Ends it with SIGKILL, which it can neither see nor put off, and waits until it is gone. kIo if
  // it had ended by itself.
  [[nodiscard]] Status kill();

 private:
  // The child's process id, and our ends of the pipes to its input and from its output.
  ChildProcess(int process, int input, int output);
  // The status that waitpid() gives.
  int wait();

  int process_ = -1;  // -1: gone
  int input_ = -1;
  int output_ = -1;
  std::string unread_;
};

}  // namespace locket
