// How far long work is: a line that is written over on a terminal, and nothing elsewhere. Gone at
// the end of its life.
#pragma once

#include <cstdint>
#include <string>

namespace locket::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  void show(std::uint64_t done, std::uint64_t total);

 private:
  std::string what_;
  bool is_terminal_;
  int shown_ = -1;
};

}  // namespace locket::cli
