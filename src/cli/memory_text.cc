#include "cli/memory_text.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/memory_ratios.h"
#include "cli/text_table.h"
#include "model/generations/lineage_bytes.h"

namespace locket::cli {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

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

std::string decimal(double value) { return fmt::format("{:.2f}", value); }

// At most two decimals.
std::string rounded(double value) { return grouped_decimal(std::round(100 * value) / 100); }

std::string mebibytes(std::uint64_t bytes) {
  return bytes == 0 ? "-" : decimal(static_cast<double>(bytes) / kMebi);
}

std::string streams_text(const cache::KvLayout& layout) {
  std::vector<std::string> parts;
  for (const StreamGroup& group : stream_groups(layout)) {
    parts.push_back(fmt::format("{} {} x {} / {}", group.name, group.layers, group.row_bytes,
                                group.tokens_per_row));
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

Json layouts_json(const model::LineageModel& entry) {
  Json layouts = Json::array();
  for (const model::LineageLayout& layout : entry.layouts) {
    Json streams = Json::array();
    for (const model::LineageStream& stream : layout.streams) {
      streams.push_back({{"name", stream.name},
                         {"row", stream.row},
                         {"formula", stream.formula()},
                         {"bytes_per_token", stream.bytes_per_token()}});
    }
    layouts.push_back({{"layout", layout.name},
                       {"bytes_per_token", layout.bytes_per_token()},
                       {"fixed_bytes", layout.fixed_bytes()},
                       {"streams", std::move(streams)}});
  }
  return layouts;
}

Json measured_json(const MeasuredMemory& measured) {
  Json out = {{"id", measured.id}, {"generation", measured.generation}};
  if (!measured.fault.empty()) {
    out["fault"] = measured.fault;
    return out;
  }
  Json streams = Json::array();
  for (const StreamGroup& group : stream_groups(measured.memory.layout)) {
    streams.push_back({{"name", group.name},
                       {"layers", group.layers},
                       {"row_bytes", group.row_bytes},
                       {"tokens_per_row", group.tokens_per_row},
                       {"bytes_per_token", group.bytes_per_token()}});
  }
  out["mode"] = measured.mode;
  out["tokens"] = measured.live.tokens;
  out["streams"] = std::move(streams);
  out["computed_bytes_per_token"] = measured.memory.layout.bytes_per_token();
  out["page_bytes_per_token"] = measured.live.page_bytes_per_token();
  out["resident_bytes_per_token"] = measured.live.resident_bytes_per_token();
  out["ring_bytes"] = measured.live.ring_bytes;
  out["disk_row_bytes_per_token"] = measured.stored.row_bytes_per_token();
  out["disk_bytes_per_token"] = measured.stored.bytes_per_token();
  out["snapshots"] = measured.stored.snapshots;
  out["snapshot_bytes"] = measured.stored.snapshot_bytes;
  return out;
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

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

std::string measured_table(const std::vector<MeasuredMemory>& measured) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight, Align::kRight});
  table.add_row(
      {"", "tokens", "computed", "in pages", "resident", "on disk", "with rings", "rings, MiB"});
  std::string streams;
  std::string faults;
  for (const MeasuredMemory& one : measured) {
    if (!one.fault.empty()) {
      faults += folded(fmt::format("{} is not measured: {}", one.generation, one.fault), 96, "  ");
      continue;
    }
    table.add_row(
        {one.generation, grouped(static_cast<std::uint64_t>(one.live.tokens)),
         rounded(one.memory.layout.bytes_per_token()), rounded(one.live.page_bytes_per_token()),
         rounded(one.live.resident_bytes_per_token()), rounded(one.stored.row_bytes_per_token()),
         rounded(one.stored.bytes_per_token()), mebibytes(one.live.ring_bytes)});
    streams += folded(
        fmt::format("{} (mode {}): {}", one.generation, one.mode, streams_text(one.memory.layout)),
        96, "  ");
  }
  return "\nMeasured here, bytes per token: random rows of the released shapes\n" + table.text(2) +
         faults +
         "\n  in pages: the page pool's account; resident: growth of the process, rings apart;\n"
         "  on disk: files of the store, without and with the rings that a session stores of one\n"
         "  long prompt (every 8,192 tokens and at its end). Rings once per sequence.\n"
         "\nThe streams of these (layers x bytes of a row / tokens per row)\n" +
         streams;
}

std::string ratio_table(const std::vector<MeasuredMemory>& measured) {
  const auto cell = [](const MemoryRatio& ratio, const std::optional<double>& value) {
    return value ? ratio.text(*value) : std::string("-");
  };
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add_row({"", "published", "computed", "measured"});
  std::string reasons;
  for (const MemoryRatio& ratio : memory_ratios(measured)) {
    table.add_row({ratio.claim, ratio.text(ratio.published), cell(ratio, ratio.computed),
                   cell(ratio, ratio.measured)});
    reasons += fmt::format("  {}\n      {}{}{}\n", ratio.claim, ratio.source,
                           ratio.layout.empty() ? "" : "; computed: ", ratio.layout);
    if (!ratio.reason.empty()) reasons += folded(ratio.reason, 90, "      ");
  }
  return "\nWhat was published\n" + table.text(2) + "\nSources, and why the figures differ\n" +
         reasons;
}

std::string memory_json(const std::vector<MeasuredMemory>& measured) {
  Json computed = Json::array();
  for (const model::LineageModel& entry : model::lineage_models()) {
    computed.push_back(
        {{"id", entry.id}, {"generation", entry.generation}, {"layouts", layouts_json(entry)}});
  }
  Json found = Json::array();
  for (const MeasuredMemory& one : measured) found.push_back(measured_json(one));
  Json ratios = Json::array();
  for (const MemoryRatio& ratio : memory_ratios(measured)) {
    ratios.push_back({{"claim", ratio.claim},
                      {"source", ratio.source},
                      {"published", ratio.published},
                      {"layout", ratio.layout},
                      {"computed", optional_json(ratio.computed)},
                      {"measured", optional_json(ratio.measured)},
                      {"reason", ratio.reason}});
  }
  const Json out = {{"computed", std::move(computed)},
                    {"measured", std::move(found)},
                    {"published", std::move(ratios)}};
  return out.dump(2) + "\n";
}

}  // namespace locket::cli
