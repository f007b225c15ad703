#include "cli/memory_plot.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

#include "cli/lineage_work.h"
#include "cli/svg_plot.h"
#include "cli/text_table.h"
#include "model/generations/lineage_bytes.h"

namespace locket::cli {
namespace {

constexpr int kFirstPower = 10;  // of two: 1k tokens
constexpr int kLastPower = 20;

// The layout that the vendor serves with, or the only one.
const model::LineageLayout& serving_layout(const model::LineageModel& entry) {
  for (const model::LineageLayout& layout : entry.layouts) {
    if (layout.name.starts_with("vendor serving")) return layout;
  }
  return entry.layouts.front();
}

// "V3" of "V3 / V3.1 / R1".
std::string short_name(const std::string& generation) {
  return generation.substr(0, generation.find(" /"));
}

// How long a text of the model may be, released or usable.
std::int64_t longest_text(const std::string& id) {
  if (id.starts_with("v1")) return 4096;
  if (id.starts_with("v4")) return std::int64_t{1} << 20;
  return std::int64_t{1} << 17;
}

LinePlot empty_line_plot() {
  LinePlot plot;
  plot.x_name = "tokens of context (logarithmic)";
  constexpr std::array<std::pair<int, const char*>, 6> kTicks = {
      {{10, "1k"}, {12, "4k"}, {14, "16k"}, {16, "64k"}, {18, "256k"}, {20, "1M"}}};
  for (const auto& [power, text] : kTicks) {
    plot.x_ticks.push_back({.x = std::exp2(power)});
    plot.x_texts.emplace_back(text);
  }
  return plot;
}

MemoryPlot bytes_plot(const std::vector<MeasuredMemory>& measured) {
  BarPlot plot = {.title = "What a token of context costs",
                  .subtitle = "bytes that grow with the text, all layers together",
                  .value_name = "bytes per token (logarithmic)",
                  .bar_name = "as the vendor serves it, by the layout",
                  .mark_names = {"measured in memory", "measured on disk, with rings"},
                  .bars = {}};
  if (measured.empty()) plot.mark_names.clear();
  for (const model::LineageModel& entry : model::lineage_models()) {
    const double bytes = serving_layout(entry).bytes_per_token();
    PlotBar bar = {.name = short_name(entry.generation),
                   .value = bytes,
                   .text = grouped_decimal(std::round(bytes)) + " B",
                   .marks = {}};
    if (const MeasuredMemory* const found = find_measured(measured, entry.id)) {
      const double here = found->live.page_bytes_per_token();
      bar.marks = {here, found->stored.bytes_per_token()};
      if (here > 1.01 * bytes) bar.text += fmt::format("; here {} B", grouped_decimal(here));
    }
    plot.bars.push_back(std::move(bar));
  }
  return {"lineage_bytes.svg", bar_plot(plot)};
}

MemoryPlot text_plot() {
  LinePlot plot = empty_line_plot();
  plot.title = "The memory of one text";
  plot.subtitle =
      "vendor's serving layout, rings and open groups included; a dot: longer texts are not there";
  plot.y_name = "bytes (logarithmic)";
  for (const model::LineageModel& entry : model::lineage_models()) {
    if (entry.id == "v1-7b" || entry.id == "v2-lite") continue;
    const model::LineageLayout& layout = serving_layout(entry);
    PlotLine line = {.name = short_name(entry.generation), .points = {}};
    for (int power = kFirstPower; power <= kLastPower; ++power) {
      const double tokens = std::exp2(power);
      if (tokens > static_cast<double>(longest_text(entry.id))) break;
      line.points.push_back(
          {tokens, layout.bytes_per_token() * tokens + static_cast<double>(layout.fixed_bytes())});
    }
    plot.lines.push_back(std::move(line));
  }
  return {"lineage_text.svg", line_plot(plot)};
}

MemoryPlot work_plot() {
  LinePlot plot = empty_line_plot();
  plot.title = "What attention costs a generated token";
  plot.subtitle = "multiply-adds of attention and of the search before it, all layers, computed";
  plot.y_name = "multiply-adds (logarithmic)";
  for (const model::LineageModel& entry : model::lineage_models()) {
    if (entry.id == "v1-7b" || entry.id == "v2-lite") continue;
    PlotLine line = {.name = short_name(entry.generation), .points = {}};
    for (int power = kFirstPower; power <= kLastPower; ++power) {
      const std::int64_t tokens = std::int64_t{1} << power;
      if (tokens > longest_text(entry.id)) break;
      const auto work = attention_work(entry.id, tokens);
      if (work) line.points.push_back({static_cast<double>(tokens), work->total()});
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  return {"lineage_work.svg", line_plot(plot)};
}

}  // namespace

std::vector<MemoryPlot> memory_plots(const std::vector<MeasuredMemory>& measured) {
  return {bytes_plot(measured), text_plot(), work_plot()};
}

}  // namespace locket::cli
