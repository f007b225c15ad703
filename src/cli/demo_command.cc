// locket demo: a hundred messages with the small model; does it remember the first? And does it
// still after a crash?
#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/demo_restart.h"
#include "cli/model_path.h"
#include "cli/model_setup.h"
#include "cli/recall_cases.h"
#include "cli/reply_printer.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

constexpr double kReleaseBytesPerToken = 890.0;  // DeepSeek-V4.1-Flash; see locket memory

std::string text_of(const chat::Message& message) { return message.content.front().text; }

// The first conversation, shortened, with its answer as it is made.
Status show_first(const ModelSetup& setup, const RecallCase& first) {
  const auto& messages = first.request.messages;
  constexpr std::size_t kShownAtStart = 4;
  constexpr std::size_t kShownAtEnd = 3;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i == kShownAtStart && messages.size() > kShownAtStart + kShownAtEnd) {
      fmt::print("       ... {} more messages ...\n",
                 messages.size() - kShownAtStart - kShownAtEnd);
    }
    if (i >= kShownAtStart && i + kShownAtEnd < messages.size()) continue;
    fmt::print("{:>5}  {}\n", messages[i].role == chat::Role::kUser ? "you" : "mini",
               text_of(messages[i]));
  }
  fmt::print("{:>5}  ", "mini");
  ReplyPrinter printer(stdout);
  const service::CompletionHooks hooks = {
      .on_event = [&](const chat::ReplyEvent& event) { printer.on_event(event); }};
  LOCKET_TRY(const service::Completion completion,
             service::complete(setup.loaded, first.request, {}, hooks));
  printer.finish();
  fmt::print("\nThat was message {} of {}, after {} tokens.\n", messages.size() + 1,
             messages.size() + 1, completion.prompt_tokens);
  const cache::KvLayout& layout = setup.model().layout();
  fmt::print(
      "What it keeps of them: {} bytes a token, and {} bytes for the newest {} tokens.\n"
      "DeepSeek-V4.1-Flash keeps {} bytes a token in the same format; the first DeepSeek kept\n"
      "389,120 (see: locket memory).\n\n",
      grouped_decimal(layout.bytes_per_token()), grouped(layout.ring_bytes()),
      setup.model().shape().window, grouped_decimal(kReleaseBytesPerToken));
  return {};
}

struct Score {
  std::size_t right = 0;
  std::size_t as_reference = 0;
  std::size_t tokens = 0;
  double seconds = 0;
};

Result<Score> count_right(const ModelSetup& setup, const std::vector<RecallCase>& cases,
                          std::size_t limit, std::string_view what) {
  Score score;
  const std::size_t count = std::min(limit, cases.size());
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_terminal) fmt::print(stderr, "\r{} {} of {} ", what, i + 1, count);
    LOCKET_TRY(const service::Completion completion,
               service::complete(setup.loaded, cases[i].request, {}, {}));
    score.right += completion.reply.content == cases[i].expected ? 1 : 0;
    score.as_reference += completion.reply.content == cases[i].reference ? 1 : 0;
    score.tokens += completion.prompt_tokens + completion.token_ids.size();
    score.seconds += completion.prompt_seconds + completion.generation_seconds;
  }
  if (is_terminal) fmt::print(stderr, "\r\033[K");
  return score;
}

Status demo(const DemoOptions& options) {
  LOCKET_TRY(const std::filesystem::path folder, resolve_model(options.model.model));
  LOCKET_TRY(const RecallCases cases, load_recall_cases(folder));
  LOCKET_TRY(const ModelSetup setup, set_up_model(options.model));
  fmt::print("A hundred messages with {}. Does it remember the first?\n\n",
             folder.filename().string());
  LOCKET_TRY_STATUS(show_first(setup, cases.recall.front()));
  const auto limit = static_cast<std::size_t>(options.conversations);
  const std::size_t recall_count = std::min(limit, cases.recall.size());
  const std::size_t control_count = std::min(limit, cases.controls.size());
  LOCKET_TRY(const Score recall, count_right(setup, cases.recall, limit, "conversation"));
  LOCKET_TRY(const Score controls, count_right(setup, cases.controls, limit, "control"));
  const std::size_t tokens = recall.tokens + controls.tokens;
  const double seconds = recall.seconds + controls.seconds;
  fmt::print("{:>3} of {:>3} such conversations end with the right answer.\n", recall.right,
             recall_count);
  fmt::print("{:>3} of {:>3} answers are those of the Python code that trained the model.\n",
             recall.as_reference, recall_count);
  fmt::print("{:>3} of {:>3} say that they do not know, when the fact is taken out.\n",
             controls.right, control_count);
  fmt::print("\n{} tokens in {:.1f} s: {} tokens a second.\n", grouped(tokens), seconds,
             grouped(static_cast<std::uint64_t>(static_cast<double>(tokens) / seconds)));
  return show_restart(options, setup, cases.recall.front());
}

}  // namespace

int run_demo(const DemoOptions& options) {
  const Status status = demo(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
