#include "cli/reply_printer.h"

#include <unistd.h>

#include "base/check.h"

namespace locket::cli {
namespace {

constexpr const char* kDim = "\033[2m";
constexpr const char* kPlain = "\033[0m";

}  // namespace

ReplyPrinter::ReplyPrinter(std::FILE* out)
    : out_(out), is_terminal_(::isatty(::fileno(out)) == 1) {}

void ReplyPrinter::enter(Part part) {
  if (part == part_) return;
  if (part_ == Part::kReasoning) {
    std::fputs(is_terminal_ ? kPlain : "\n</reasoning>", out_);
  }
  if (part_ != Part::kNothing) std::fputc('\n', out_);
  if (part == Part::kReasoning) std::fputs(is_terminal_ ? kDim : "<reasoning>\n", out_);
  part_ = part;
}

void ReplyPrinter::on_event(const chat::ReplyEvent& event) {
  using Kind = chat::ReplyEvent::Kind;
  switch (event.kind) {
    case Kind::kReasoning:
      enter(Part::kReasoning);
      break;
    case Kind::kContent:
      enter(Part::kContent);
      break;
    case Kind::kCallName:
      enter(Part::kNothing);
      enter(Part::kCall);
      std::fputs("call ", out_);
      break;
    case Kind::kCallArguments:
      break;
    case Kind::kCallEnd:
    case Kind::kFinish:
      return;
    case Kind::kCount:
      LOCKET_CHECK(false);
  }
  std::fputs(event.text.c_str(), out_);
  if (event.kind == Kind::kCallName) std::fputc(' ', out_);
  std::fflush(out_);
}

void ReplyPrinter::finish() {
  enter(Part::kNothing);
  std::fflush(out_);
}

}  // namespace locket::cli
