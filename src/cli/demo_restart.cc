#include "cli/demo_restart.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/child_process.h"
#include "base/folder.h"
#include "base/hash.h"
#include "cli/memory_path.h"
#include "cli/model_path.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRuns = 5;  // of each kind; the median is shown

// A folder of this process's own below the memory's folder, or below the one for temporary files.
// Those of demos that were killed are removed on the way.
class DemoFolder {
 public:
  static Result<DemoFolder> make(const std::string& memory_option) {
    LOCKET_TRY(const fs::path parent, parent_folder(memory_option));
    std::array<std::byte, 8> unique = {};
    random_bytes(unique);
    const fs::path path = parent / (std::string(kPrefix) + to_hex(unique));
    remove_abandoned(parent);
    LOCKET_TRY_STATUS(make_private_folder(path));
    LOCKET_TRY(FolderLock lock, FolderLock::take(path / kLockName));
    return DemoFolder(path, std::move(lock));
  }
  DemoFolder(DemoFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  DemoFolder& operator=(DemoFolder&&) = delete;
  DemoFolder(const DemoFolder&) = delete;
  DemoFolder& operator=(const DemoFolder&) = delete;
  ~DemoFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  fs::path memory() const { return path_ / kMemoryName; }

 private:
  static constexpr const char* kPrefix = "locket-demo-";
  static constexpr const char* kLockName = "lock";
  static constexpr const char* kMemoryName = "memory";

  DemoFolder(fs::path path, FolderLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  static Result<fs::path> parent_folder(const std::string& memory_option) {
    LOCKET_TRY(const MemoryChoice choice, choose_memory(memory_option));
    if (!choice.is_off) {
      const Status prepared = prepare_memory_folder(choice);
      if (prepared) return choice.directory;
      if (choice.source != MemoryChoice::Source::kDefault) {
        return tl::make_unexpected(prepared.error());
      }
    }
    std::error_code ignored;
    return fs::temp_directory_path(ignored);
  }

  static void remove_abandoned(const fs::path& parent) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(parent, ignored)) {
      if (!entry.path().filename().string().starts_with(kPrefix)) continue;
      // Without a memory in it, it may be one that is just being made.
      if (!check_private_folder(entry.path()) || !fs::exists(entry.path() / kMemoryName, ignored)) {
        continue;
      }
      if (FolderLock::take(entry.path() / kLockName)) fs::remove_all(entry.path(), ignored);
    }
  }

  fs::path path_;
  FolderLock lock_;
};

// The command line of a worker.
std::vector<std::string> worker_arguments(const DemoOptions& options, const fs::path& model,
                                          const std::string& task, const std::string& memory) {
  return {"demo-worker",     model.string(),
          "--task",          task,
          "--memory",        memory,
          "--mode",          options.model.mode,
          "--replay",        options.model.replay,
          "--threads",       std::to_string(options.model.threads),
          "--memory-budget", std::to_string(options.model.memory_budget_bytes)};
}

// What a worker that answered says.
struct Answered {
  std::size_t prompt_tokens = 0;
  std::size_t disk_tokens = 0;
  std::size_t replayed_tokens = 0;
  double load_seconds = 0;
  double restore_seconds = 0;
  double first_token_seconds = 0;
  std::string logits;
  std::string answer;

  // New ones, and those that have to fill the windows again.
  std::size_t run_tokens() const { return prompt_tokens - disk_tokens + replayed_tokens; }
};

Result<nlohmann::json> read_report(ChildProcess& worker) {
  LOCKET_TRY(const std::string line, worker.read_line());
  nlohmann::json report = nlohmann::json::parse(line, nullptr, false);
  if (report.is_discarded()) return fail(ErrorCode::kInternal, "a worker says: " + line);
  return report;
}

Result<Answered> answer(const std::vector<std::string>& arguments) {
  LOCKET_TRY(ChildProcess worker, ChildProcess::start(arguments));
  LOCKET_TRY(const nlohmann::json report, read_report(worker));
  try {
    return Answered{.prompt_tokens = report.at("prompt_tokens"),
                    .disk_tokens = report.at("disk_tokens"),
                    .replayed_tokens = report.at("replayed_tokens"),
                    .load_seconds = report.at("load_seconds"),
                    .restore_seconds = report.at("restore_seconds"),
                    .first_token_seconds = report.at("first_token_seconds"),
                    .logits = report.at("logits"),
                    .answer = report.at("answer")};
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::kInternal, fmt::format("a worker says: {}", error.what()));
  }
}

// Several new processes, one after the other; the one of the median time to the first token.
Result<Answered> answer_often(const std::vector<std::string>& arguments) {
  std::vector<Answered> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    LOCKET_TRY(Answered run, answer(arguments));
    if (!runs.empty() && (run.logits != runs[0].logits || run.answer != runs[0].answer)) {
      return fail(ErrorCode::kInternal, "two processes answered the same question differently");
    }
    runs.push_back(std::move(run));
  }
  std::ranges::sort(runs, {}, &Answered::first_token_seconds);
  return runs[runs.size() / 2];
}

std::string milliseconds(double seconds) { return fmt::format("{:.1f} ms", seconds * 1e3); }

void print_comparison(const Answered& restored, const Answered& computed) {
  using Align = TextTable::Align;
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  table.add_row({"", "from disk", "computed again"});
  table.add_row(
      {"tokens of the prompt", grouped(restored.prompt_tokens), grouped(computed.prompt_tokens)});
  table.add_row({"their memory read from disk", grouped(restored.disk_tokens),
                 grouped(computed.disk_tokens)});
  table.add_row(
      {"run through the model", grouped(restored.run_tokens()), grouped(computed.run_tokens())});
  table.add_row({"time to the first token", milliseconds(restored.first_token_seconds),
                 milliseconds(computed.first_token_seconds)});
  fmt::print("{}", table.text(2));
}

// What lies on disk when the first process is killed.
struct Remembered {
  std::size_t tokens = 0;
  std::uint64_t bytes = 0;
};

Result<Remembered> remember_and_be_killed(const std::vector<std::string>& arguments,
                                          const fs::path& memory) {
  LOCKET_TRY(ChildProcess reader, ChildProcess::start(arguments));
  LOCKET_TRY(const nlohmann::json report, read_report(reader));
  LOCKET_TRY_STATUS(reader.kill());
  const std::size_t tokens = report.value("tokens", std::size_t{0});
  if (tokens == 0) return fail(ErrorCode::kInternal, "a worker has read nothing");
  return Remembered{.tokens = tokens, .bytes = allocated_bytes_below(memory)};
}

Status check_same(const Answered& restored, const Answered& computed) {
  if (restored.logits == computed.logits && restored.answer == computed.answer) return {};
  return fail(ErrorCode::kInternal,
              fmt::format("from disk \"{}\" (logits {}), computed \"{}\" (logits {}): these must "
                          "be the same",
                          restored.answer, restored.logits, computed.answer, computed.logits));
}

void print_figures(const Remembered& remembered, const Answered& restored, double bytes_per_token) {
  fmt::print("\nOf the {} tokens {} are new; the others fill the windows of the layers again.\n",
             grouped(restored.run_tokens()),
             grouped(restored.prompt_tokens - restored.disk_tokens));
  fmt::print("Medians of {} new processes each, without the {:.2f} s of loading the model.\n",
             kRuns, restored.load_seconds);
  fmt::print(
      "The logits of the prompt's last token are the same bits in all of them (SHA-256 {}...).\n",
      restored.logits.substr(0, 12));
  fmt::print(
      "On disk: {} bytes for {} tokens, {} a token. {} of these are what the model keeps of a\n"
      "token, the others its newest windows and the store's own files. It is removed now.\n",
      grouped(remembered.bytes), grouped(remembered.tokens),
      grouped(remembered.bytes / remembered.tokens), grouped_decimal(bytes_per_token));
}

}  // namespace

Status show_restart(const DemoOptions& wishes, const ModelSetup& setup,
                    const RecallCase& conversation) {
  DemoOptions options = wishes;
  options.model.mode = model::numerics_mode_name(setup.model().numerics().mode);
  if (setup.model().numerics().mode == model::NumericsMode::kPlain) {
    fmt::print("\nMode plain keeps nothing on disk, so there is no restart to show.\n");
    return {};
  }
  const auto& messages = conversation.request.messages;
  fmt::print(
      "\nAnd after a crash? Another process reads the first {} messages, writes what it keeps of\n"
      "them to disk, and is killed (SIGKILL) before the last question. A new one answers it:\n\n"
      "{:>5}  {}\n",
      messages.size() - 1, "you", messages.back().content.front().text);
  std::fflush(stdout);
  LOCKET_TRY(const fs::path model, resolve_model(options.model.model));
  LOCKET_TRY(const DemoFolder folder, DemoFolder::make(options.model.memory));
  const std::string memory = folder.memory().string();
  LOCKET_TRY(const Remembered remembered,
             remember_and_be_killed(worker_arguments(options, model, "remember", memory),
                                    folder.memory()));
  LOCKET_TRY(const Answered restored,
             answer_often(worker_arguments(options, model, "answer", memory)));
  LOCKET_TRY(const Answered computed,
             answer_often(worker_arguments(options, model, "answer", "off")));
  LOCKET_TRY_STATUS(check_same(restored, computed));
  fmt::print("{:>5}  {}\n\n", "mini", restored.answer);
  print_comparison(restored, computed);
  print_figures(remembered, restored, setup.model().layout().bytes_per_token());
  return {};
}

}  // namespace locket::cli
