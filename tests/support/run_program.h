// Runs the built program as a user would: with arguments, standard input, an environment, or in a
// terminal of its own. Not thread-safe. A program that outlives its time is killed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace locket::test_support {

// Long enough for a build with sanitizers on a busy machine.
inline constexpr int kProgramTimeoutMs = 300'000;

struct ProgramCall {
  std::vector<std::string> arguments = {};
  std::string input = {};  // all of standard input
  // Set on top of this process's. LOCKET_MEMORY is off if it is not among them: no test writes into
  // the memory of the person who runs it.
  std::map<std::string, std::string> environment = {};
  std::filesystem::path folder = {};  // to run in; empty: the current one
  int timeout_ms = kProgramTimeoutMs;
};

struct ProgramResult {
  int exit_code = -1;  // of a program that a signal ended: 128 + the signal
  bool is_timed_out = false;
  std::string output;
  std::string errors;
};

ProgramResult run_program(const ProgramCall& call);
ProgramResult run_program(std::vector<std::string> arguments, std::string input = {});

// The program in a terminal, for what it does only there.
class TerminalProgram {
 public:
  explicit TerminalProgram(const std::vector<std::string>& arguments);
  // Of `call`, arguments and environment count.
  explicit TerminalProgram(const ProgramCall& call);
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;
  ~TerminalProgram();

  // Keys as they come from a keyboard: "\n" is Enter, "\x03" is Ctrl-C, "\x04" is Ctrl-D.
  void type(std::string_view keys) const;
  // Waits until the program has printed `text` after what the last successful call found. False if
  // it ends, or the time is over, before.
  bool wait_for(std::string_view text, int timeout_ms = kProgramTimeoutMs);
  // Ends it at once with SIGKILL.
  void kill();
  // The exit code, as in ProgramResult; -1 if the time is over before.
  int wait_for_end(int timeout_ms = kProgramTimeoutMs);

  // Everything printed so far, what was typed included.
  const std::string& screen() const { return screen_; }

 private:
  // More of the screen; false at the end of the program or of the time.
  bool read_more(int timeout_ms);

  int process_ = -1;
  int terminal_ = -1;
  std::string screen_;
  std::size_t found_ = 0;  // end of what wait_for() found
};

}  // namespace locket::test_support
