#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/live_memory.h"
#include "cli/model_setup.h"
#include "cli/text_table.h"
#include "model/generations/lineage_bytes.h"

namespace locket::cli {
namespace {

constexpr int kDone = 0;
constexpr double kMebi = 1024.0 * 1024.0;
constexpr double kBytesPerGib = 1024.0;  // bytes per token of one GiB at 2^20 tokens

std::string layout_formula(const model::LineageLayout& layout) {
  std::string text;
  for (const model::LineageStream& stream : layout.streams) {
    text += (text.empty() ? "" : " + ") + stream.formula();
  }
  return text;
}

std::string layout_lines(const model::LineageLayout& layout, double smallest) {
  const double bytes = layout.bytes_per_token();
  const auto fixed = static_cast<double>(layout.fixed_bytes());
  const std::string fixed_text = fixed > 0 ? fmt::format("{:.2f}", fixed / kMebi) : "-";
  return fmt::format("  {:<50}{:>12}{:>9.2f}{:>11.3f}{:>11}\n      = {}\n", layout.name,
                     grouped_decimal(bytes), bytes / smallest, bytes / kBytesPerGib, fixed_text,
                     layout_formula(layout));
}

// Every kind of row once, the largest first.
std::string row_legend(const std::vector<model::LineageModel>& models) {
  std::map<std::int64_t, std::set<std::string>, std::greater<>> rows;
  for (const model::LineageModel& entry : models) {
    for (const model::LineageLayout& layout : entry.layouts) {
      for (const auto& stream : layout.streams) rows[stream.row_bytes].insert(stream.row);
    }
  }
  std::string text;
  for (const auto& [bytes, kinds] : rows) {
    text += fmt::format("  {:>5} B  {}\n", bytes, fmt::join(kinds, "; "));
  }
  return text;
}

std::string lineage_table() {
  const std::vector<model::LineageModel> models = model::lineage_models();
  const double smallest = models.back().layouts.front().bytes_per_token();
  std::string text = fmt::format("{:<52}{:>12}{:>9}{:>11}{:>11}\n", "generation, layout",
                                 "bytes/token", "x V4.1", "GiB at 1M", "MiB fixed");
  for (const model::LineageModel& entry : models) {
    text += entry.generation + "\n";
    for (const model::LineageLayout& layout : entry.layouts) text += layout_lines(layout, smallest);
  }
  return text +
         "\n= layers x bytes of a row / tokens per row, summed over what a layer stores\n"
         "GiB at 1M: for 1,048,576 tokens. MiB fixed: rings and open groups, once per sequence\n"
         "\nWhat a row is made of\n" +
         row_legend(models);
}

}  // namespace

int run_memory(const MemoryOptions& options) {
  fmt::print("{}", lineage_table());
  int code = kDone;
  for (const std::filesystem::path& model : options.models) {
    std::fflush(stdout);  // before minutes of work, and before what goes to stderr
    const Result<std::string> measured = live_memory_text(model, options.tokens);
    if (measured) {
      fmt::print("{}", *measured);
    } else {
      code = report(measured.error());
    }
  }
  return code;
}

}  // namespace locket::cli
