#include "server/request_log.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/log.h"

namespace locket::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFieldBytes = 256;

// Rounded to what can be measured.
double milliseconds(double seconds) { return std::round(seconds * 1e4) / 10; }

std::string cut(std::string_view text) {
  if (text.size() <= kMostFieldBytes) return std::string(text);
  return std::string(text.substr(0, kMostFieldBytes)) + "...";
}

// Nothing that a terminal would obey.
std::string plain(std::string_view text) {
  std::string out = cut(text);
  std::ranges::replace_if(
      out, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return out;
}

// Where what was remembered came from.
std::string_view cache_source(const service::RequestUsage& usage) {
  if (usage.hit_tokens == 0) return "none";
  if (usage.disk_tokens == 0) return "ram";
  return usage.disk_tokens >= usage.hit_tokens ? "disk" : "ram+disk";
}

void add_generation(const RequestRecord& record, Json& json) {
  const service::RequestUsage& usage = record.usage;
  const service::RequestTimes& times = record.times;
  json["stream"] = record.is_stream;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["cached_tokens"] = usage.hit_tokens;
  json["disk_tokens"] = usage.disk_tokens;
  json["replayed_tokens"] = usage.replayed_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["reasoning_tokens"] = usage.reasoning_tokens;
  json["cache_source"] = cache_source(usage);
  json["queue_ms"] = milliseconds(times.queue_seconds);
  json["restore_ms"] = milliseconds(times.restore_seconds);
  json["prefill_ms"] = milliseconds(times.prompt_seconds);
  json["decode_ms"] = milliseconds(times.decode_seconds);
  json["first_token_ms"] = milliseconds(times.first_token_seconds);
  if (!record.finish.empty()) json["finish"] = cut(record.finish);
  if (record.bill) {
    json["bill"] = {{"hit", record.bill->hit},
                    {"miss", record.bill->miss},
                    {"output", record.bill->output},
                    {"total", record.bill->total()},
                    {"is_peak", record.bill->is_peak}};
  }
}

std::string generation_text(const RequestRecord& record) {
  const service::RequestUsage& usage = record.usage;
  const service::RequestTimes& times = record.times;
  std::string text = fmt::format(
      " | {} prompt, {} remembered ({}), {} generated | queue {:.2f} read {:.2f} write {:.2f} s",
      usage.prompt_tokens, usage.hit_tokens, cache_source(usage), usage.completion_tokens,
      times.queue_seconds, times.prompt_seconds, times.decode_seconds);
  if (!record.finish.empty()) text += fmt::format(" | {}", plain(record.finish));
  if (record.bill) text += fmt::format(" | ${:.6f}", record.bill->total());
  return text;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string request_json(const RequestRecord& record) {
  Json json = {{"event", "request"},
               {"id", cut(record.id)},
               {"peer", cut(record.peer)},
               {"tenant", cut(record.tenant)},
               {"method", cut(record.method)},
               {"path", cut(record.path)},
               {"model", cut(record.model)},
               {"status", record.status},
               {"total_ms", milliseconds(record.total_seconds)}};
  if (!record.error.empty()) json["error"] = cut(record.error);
  if (!record.ignored_fields.empty()) json["ignored_fields"] = record.ignored_fields;
  if (record.is_generation) add_generation(record, json);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string request_text(const RequestRecord& record) {
  std::string text = fmt::format("{} {} {} in {:.2f} s", plain(record.method), plain(record.path),
                                 record.status, record.total_seconds);
  for (const std::string* field : {&record.tenant, &record.model, &record.error}) {
    if (!field->empty()) text += fmt::format(" | {}", plain(*field));
  }
  if (record.is_generation) text += generation_text(record);
  return text + fmt::format(" | {}", plain(record.id));
}

void log_request(const RequestRecord& record) {
  log_record(request_text(record), request_json(record));
}

std::string rates_text(const service::DispatcherLoad& before, const service::DispatcherLoad& now,
                       double seconds, const MemoryNumbers& memory) {
  const std::uint64_t computed = now.prompt_tokens - before.prompt_tokens;
  const std::uint64_t remembered = now.hit_tokens - before.hit_tokens;
  const std::uint64_t generated = now.generated_tokens - before.generated_tokens;
  const bool is_idle = now.running + now.queued + computed + remembered + generated == 0;
  if (is_idle || seconds <= 0) return "";
  return fmt::format(
      "{} running, {} waiting | prompts {:.1f} tokens/s computed, {:.0f} % remembered | {:.1f} "
      "tokens/s generated | memory {:.0f} % full, disk {:.0f} %",
      now.running, now.queued, static_cast<double>(computed) / seconds,
      share(remembered, remembered + computed), static_cast<double>(generated) / seconds,
      share(memory.ram_used_bytes, memory.ram_budget_bytes),
      share(memory.disk_used_bytes, memory.disk_quota_bytes));
}

}  // namespace locket::server
