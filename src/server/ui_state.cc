#include "server/ui_state.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/check.h"
#include "server/reply_json.h"

namespace locket::server {
namespace {

using service::RequestProgress;

std::string_view progress_name(RequestProgress::Stage stage) {
  switch (stage) {
    case RequestProgress::Stage::kQueued:
      return "queued";
    case RequestProgress::Stage::kReading:
      return "reading";
    case RequestProgress::Stage::kGenerating:
      return "generating";
    case RequestProgress::Stage::kPaused:
      return "paused";
    case RequestProgress::Stage::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

double milliseconds_of(double seconds) { return std::round(seconds * 1e3) / 1e3; }

std::string model_json(const UiModel& model) {
  return JsonObject()
      .text("stage", stage_name(model.stage))
      .real("progress", std::clamp(milliseconds_of(model.loading_progress), 0.0, 1.0))
      .text("name", model.name)
      .text("numerics", model.numerics)
      .count("context_tokens", model.context_tokens)
      .text("version", model.version)
      .str();
}

std::string load_json(const service::DispatcherLoad& load) {
  return JsonObject()
      .count("queued", load.queued)
      .count("running", load.running)
      .count("paused", load.paused)
      .count("steps", load.steps)
      .count("prompt_tokens", load.prompt_tokens)
      .count("hit_tokens", load.hit_tokens)
      .count("generated_tokens", load.generated_tokens)
      .count("preemptions", load.preemptions)
      .str();
}

std::string requests_json(std::vector<RequestProgress> requests) {
  std::ranges::sort(requests, [](const RequestProgress& left, const RequestProgress& right) {
    const bool left_waits = left.stage == RequestProgress::Stage::kQueued;
    const bool right_waits = right.stage == RequestProgress::Stage::kQueued;
    return left_waits != right_waits ? right_waits : left.id < right.id;
  });
  requests.resize(std::min(requests.size(), kMostUiRequests));
  JsonList list;
  for (const RequestProgress& request : requests) {
    list.json(JsonObject()
                  .count("id", request.id)
                  .text("label", request.label)
                  .text("stage", progress_name(request.stage))
                  .count("prompt_tokens", request.prompt_tokens)
                  .count("read_tokens", request.read_tokens)
                  .count("hit_tokens", request.hit_tokens)
                  .count("completion_tokens", request.completion_tokens)
                  .real("age_seconds", milliseconds_of(request.age_seconds))
                  .str());
  }
  return list.str();
}

std::string memory_json(const MemoryNumbers& memory) {
  return JsonObject()
      .real("bytes_per_token", memory.bytes_per_token)
      .real("measured_bytes_per_token", memory.measured_bytes_per_token)
      .count("ram_used_bytes", memory.ram_used_bytes)
      .count("ram_budget_bytes", memory.ram_budget_bytes)
      .count("disk_used_bytes", memory.disk_used_bytes)
      .count("disk_quota_bytes", memory.disk_quota_bytes)
      .count("ram_evictions", memory.ram_evictions)
      .count("disk_evictions", memory.disk_evictions)
      .count("disk_corrupt", memory.disk_corrupt)
      .count("disk_written_bytes", memory.disk_written_bytes)
      .str();
}

double total_of(const DayBill& bill) { return bill.hit + bill.miss + bill.output; }

std::string bill_json(const DayBill& bill, std::string_view title, std::string_view name) {
  return JsonObject()
      .text(title, name)
      .count("requests", bill.requests)
      .real("hit", bill.hit)
      .real("miss", bill.miss)
      .real("output", bill.output)
      .str();
}

void add_bill(const DayBill& bill, DayBill& sum) {
  sum.requests += bill.requests;
  sum.hit += bill.hit;
  sum.miss += bill.miss;
  sum.output += bill.output;
}

std::string days_json(const std::vector<DayBill>& bills) {
  std::map<std::string, DayBill> days;
  for (const DayBill& bill : bills) add_bill(bill, days[bill.day]);
  JsonList list;
  for (const auto& [day, sum] : days) list.json(bill_json(sum, "day", day));
  return list.str();
}

std::string callers_json(const std::vector<DayBill>& bills) {
  const auto newest = std::ranges::max_element(bills, {}, &DayBill::day);
  std::vector<DayBill> callers;
  for (const DayBill& bill : bills) {
    if (bill.day == newest->day) callers.push_back(bill);
  }
  std::ranges::sort(callers, [](const DayBill& left, const DayBill& right) {
    const double a = total_of(left);
    const double b = total_of(right);
    return a != b ? a > b : left.tenant < right.tenant;
  });
  callers.resize(std::min(callers.size(), kMostUiCallers));
  JsonList list;
  for (const DayBill& bill : callers) list.json(bill_json(bill, "name", bill.tenant));
  return list.str();
}

std::string node_json(const engine::OverviewNode& node, double now_seconds) {
  JsonObject out;
  out.text("name", node.name)
      .integer("parent", node.parent)
      .integer("tokens", node.tokens)
      .count("ram_bytes", node.ram_bytes)
      .count("disk_bytes", node.disk_bytes)
      .json("pinned", node.is_pinned ? "true" : "false")
      .json("in_use", node.is_in_use ? "true" : "false");
  if (node.last_use_seconds <= 0) return out.null("age_seconds").str();
  const double age = std::max(0.0, now_seconds - node.last_use_seconds);
  return out.integer("age_seconds", static_cast<std::int64_t>(age)).str();
}

std::string prefixes_json(const UiState& state) {
  const engine::MemoryOverview none;
  const engine::MemoryOverview& prefixes = state.prefixes ? *state.prefixes : none;
  JsonObject out;
  out.count("version", prefixes.version)
      .count("left_out", prefixes.nodes_left_out)
      .json("complete", prefixes.is_complete ? "true" : "false");
  if (prefixes.version > 0 && prefixes.version == state.known_prefixes) return out.str();
  JsonList nodes;
  for (const engine::OverviewNode& node : prefixes.nodes) {
    nodes.json(node_json(node, state.now_seconds));
  }
  return out.json("nodes", nodes.str()).str();
}

}  // namespace

std::string ui_state_json(const UiState& state) {
  return JsonObject()
      .real("time", milliseconds_of(state.now_seconds))
      .json("model", model_json(state.model))
      .json("load", load_json(state.load))
      .json("requests", requests_json(state.requests))
      .count("request_count", state.requests.size())
      .json("memory", memory_json(state.memory))
      .json("days", days_json(state.bills))
      .json("callers", callers_json(state.bills))
      .json("prefixes", prefixes_json(state))
      .str();
}

std::uint64_t known_prefixes_of(std::string_view query) {
  constexpr std::string_view kName = "prefixes=";
  if (!query.starts_with(kName)) return 0;
  query.remove_prefix(kName.size());
  std::uint64_t version = 0;
  const auto read = std::from_chars(query.data(), query.data() + query.size(), version);
  return read.ec == std::errc() ? version : 0;
}

}  // namespace locket::server
