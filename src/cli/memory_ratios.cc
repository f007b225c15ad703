#include "cli/memory_ratios.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cli/text_table.h"
#include "model/generations/lineage_bytes.h"

namespace locket::cli {
namespace {

using Unit = MemoryRatio::Unit;
using Measures = std::vector<MeasuredMemory>;

// The layout of a model whose name begins with `layout`.
double computed_bytes(std::string_view id, std::string_view layout) {
  for (const model::LineageModel& model : model::lineage_models()) {
    if (model.id != id) continue;
    for (const model::LineageLayout& known : model.layouts) {
      if (known.name.starts_with(layout)) return known.bytes_per_token();
    }
  }
  LOCKET_CHECK(false);
}

std::optional<double> page_bytes(const Measures& measured, std::string_view id) {
  const MeasuredMemory* const found = find_measured(measured, id);
  if (found == nullptr) return std::nullopt;
  return found->live.page_bytes_per_token();
}

// Of texts of the same length only: a snapshot weighs the more the shorter the text is.
std::optional<double> disk_percent(const Measures& measured, std::string_view part,
                                   std::string_view whole) {
  const MeasuredMemory* const one = find_measured(measured, part);
  const MeasuredMemory* const other = find_measured(measured, whole);
  if (one == nullptr || other == nullptr || one->stored.tokens != other->stored.tokens) {
    return std::nullopt;
  }
  return 100 * one->stored.bytes_per_token() / other->stored.bytes_per_token();
}

std::optional<double> quotient(std::optional<double> above, std::optional<double> below) {
  if (!above || !below) return std::nullopt;
  return *above / *below;
}

std::optional<double> percent_less(std::optional<double> now, std::optional<double> before) {
  const auto share = quotient(now, before);
  if (!share) return std::nullopt;
  return 100 * (1 - *share);
}

std::optional<double> percent_of(std::optional<double> part, std::optional<double> whole) {
  const auto share = quotient(part, whole);
  if (!share) return std::nullopt;
  return 100 * *share;
}

std::vector<MemoryRatio> early_ratios(const Measures& measured) {
  const double v1 = computed_bytes("v1-67b", "bf16");
  const auto v1_pages = page_bytes(measured, "v1-67b");
  return {{.claim = "V2 keeps 93.3 % less than V1 67B",
           .source = "V2 report, abstract",
           .unit = Unit::kPercent,
           .published = 93.3,
           .layout = "V2 at 6 bits an element",
           .computed = percent_less(computed_bytes("v2", "vendor serving"), v1),
           .measured = percent_less(page_bytes(measured, "v2"), v1_pages),
           .reason = "it holds at 6 bits an element on average, a format that is not published; "
                     "this program keeps V2's rows in bf16"},
          {.claim = "V3 keeps 70.272 KB a token",
           .source = "Insights into DeepSeek-V3 (ISCA 2025), table 1",
           .unit = Unit::kBytes,
           .published = 70272,
           .layout = "bf16",
           .computed = computed_bytes("v3", "bf16"),
           .measured = page_bytes(measured, "v3"),
           .reason = {}}};
}

std::vector<MemoryRatio> v4_ratios(const Measures& measured) {
  const double v32 = computed_bytes("v3.2", "vendor serving");
  const auto v32_pages = page_bytes(measured, "v3.2");
  return {{.claim = "V4-Flash keeps about 3.5 KB a token",
           .source = "follows from V4.1's abstract and V4's row formats",
           .unit = Unit::kBytes,
           .published = 3500,
           .layout = "584 B rows, FP4 index keys",
           .computed = computed_bytes("v4-flash", "vendor serving"),
           .measured = page_bytes(measured, "v4-flash"),
           .reason = "the published figure is rounded"},
          {.claim = "V4-Flash keeps 7 % of what V3.2 keeps",
           .source = "V4 report and model card",
           .unit = Unit::kPercent,
           .published = 7,
           .layout = "both as the vendor serves them",
           .computed = percent_of(computed_bytes("v4-flash", "vendor serving"), v32),
           .measured = percent_of(page_bytes(measured, "v4-flash"), v32_pages),
           .reason = "the published figure is rounded; with bf16 rows it would be 8 %"},
          {.claim = "V4-Pro keeps 10 % of what V3.2 keeps",
           .source = "V4 report and model card",
           .unit = Unit::kPercent,
           .published = 10,
           .layout = "both as the vendor serves them",
           .computed = percent_of(computed_bytes("v4-pro", "vendor serving"), v32),
           .measured = percent_of(page_bytes(measured, "v4-pro"), v32_pages),
           .reason = "the published figure is rounded; with bf16 rows it would be 11 %"}};
}

std::vector<MemoryRatio> v41_ratios(const Measures& measured) {
  const double v41 = computed_bytes("v4.1-flash", "vendor serving");
  const double v4 = computed_bytes("v4-flash", "vendor serving");
  const auto v41_pages = page_bytes(measured, "v4.1-flash");
  return {{.claim = "V4.1-Flash keeps 890 bytes a token",
           .source = "V4.1 report, abstract",
           .unit = Unit::kBytes,
           .published = 890,
           .layout = "288 B rows, FP4 index keys",
           .computed = v41,
           .measured = v41_pages,
           .reason = {}},
          {.claim = "V4.1-Flash keeps about 1/4 of V4-Flash",
           .source = "V4.1 report, abstract and figure 1(b)",
           .unit = Unit::kPercent,
           .published = 25,
           .layout = "both as the vendor serves them",
           .computed = 100 * v41 / v4,
           .measured = percent_of(v41_pages, page_bytes(measured, "v4-flash")),
           .reason = "the published figure is rounded"},
          {.claim = "V4.1-Flash keeps about 1/8 of V4-Flash on disk",
           .source = "V4.1 report, abstract and 3.2.1",
           .unit = Unit::kPercent,
           .published = 12.5,
           .layout = {},
           .computed = std::nullopt,
           .measured = disk_percent(measured, "v4.1-flash", "v4-flash"),
           .reason = "V4's service kept windows on its disks, nearly half of what was there; this "
                     "program keeps the same few snapshots of windows for both, so that the "
                     "quarter of the rows is left"},
          {.claim = "V1 67B keeps 437 times what V4.1-Flash keeps",
           .source = "V4.1 report, figure 1(b)",
           .unit = Unit::kTimes,
           .published = 437,
           .layout = "V1 in bf16, V4.1 as served",
           .computed = computed_bytes("v1-67b", "bf16") / v41,
           .measured = quotient(page_bytes(measured, "v1-67b"), v41_pages),
           .reason = "the published figure is rounded; it compares bf16 with FP4"}};
}

}  // namespace

std::string MemoryRatio::text(double value) const {
  switch (unit) {
    case Unit::kBytes:
      return grouped_decimal(value) + " B";
    case Unit::kPercent:
      return fmt::format("{:.4g} %", value);
    case Unit::kTimes:
      return fmt::format("{:.4g} x", value);
    case Unit::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::vector<MemoryRatio> memory_ratios(const std::vector<MeasuredMemory>& measured) {
  std::vector<MemoryRatio> all = early_ratios(measured);
  for (auto& part : {v4_ratios(measured), v41_ratios(measured)}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace locket::cli
