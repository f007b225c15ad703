// Prints an answer while it is made: content to standard output, reasoning apart (dim on a
// terminal, between lines of its own elsewhere), calls as one line each.
#pragma once

#include <cstdio>

#include "chat/reply.h"

namespace locket::cli {

class ReplyPrinter {
 public:
  explicit ReplyPrinter(std::FILE* out);

  void on_event(const chat::ReplyEvent& event);
  // Ends the line that is open.
  void finish();

 private:
  // What the text on the screen belongs to.
  enum class Part { kNothing, kReasoning, kContent, kCall };
  void enter(Part part);

  std::FILE* out_;
  bool is_terminal_;
  Part part_ = Part::kNothing;
};

}  // namespace locket::cli
