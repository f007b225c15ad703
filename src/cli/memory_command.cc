// locket memory: what each generation keeps of its context.
#include <cstdio>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/live_memory.h"
#include "cli/measured_memory.h"
#include "cli/memory_plot.h"
#include "cli/memory_text.h"
#include "cli/model_setup.h"

namespace locket::cli {
namespace {

constexpr int kDone = 0;
constexpr std::int64_t kModelTokens = 2048;  // of a text that a MODEL reads, unless told otherwise

std::filesystem::path scratch_of(const MemoryOptions& options) {
  if (!options.scratch.empty()) return options.scratch;
  std::error_code ignored;
  const std::filesystem::path found = std::filesystem::temp_directory_path(ignored);
  return found.empty() ? "." : found;
}

void show(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // before minutes of work, and before what goes to stderr
}

Status write_plots(const std::filesystem::path& folder,
                   const std::vector<MeasuredMemory>& measured) {
  std::error_code ignored;  // writing says what is wrong
  std::filesystem::create_directories(folder, ignored);
  for (const MemoryPlot& plot : memory_plots(measured)) {
    LOCKET_TRY_STATUS(
        write_whole_file(folder / plot.file_name, std::as_bytes(std::span(plot.svg))));
  }
  return {};
}

}  // namespace

int run_memory(const MemoryOptions& options) {
  if (!options.json) show(lineage_table());
  std::vector<MeasuredMemory> measured;
  if (!options.is_computed_only) {
    measured = measure_released_memory({.tokens = options.tokens,
                                        .budget_bytes = options.budget_bytes,
                                        .scratch = scratch_of(options)});
  }
  if (options.json) {
    show(memory_json(measured));
  } else {
    if (!measured.empty()) show(measured_table(measured));
    show(ratio_table(measured));
  }
  int code = kDone;
  if (!options.svg_folder.empty()) {
    const Status written = write_plots(options.svg_folder, measured);
    if (!written) code = report(written.error());
  }
  const std::int64_t tokens = options.tokens > 0 ? options.tokens : kModelTokens;
  for (const std::filesystem::path& model : options.models) {
    const Result<std::string> text = live_memory_text(model, tokens);
    if (text && !options.json) show(*text);
    if (!text) code = report(text.error());
  }
  return code;
}

}  // namespace locket::cli
