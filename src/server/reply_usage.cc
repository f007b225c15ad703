#include "server/reply_usage.h"

#include <algorithm>
#include <cmath>

#include "server/reply_json.h"

namespace locket::server {
namespace {

using service::RequestResult;
using service::RequestTimes;
using service::RequestUsage;

double milliseconds(double seconds) { return std::round(seconds * 1e6) / 1e3; }

std::size_t hits(const RequestUsage& usage) {
  return std::min(usage.hit_tokens, usage.prompt_tokens);
}

void add_extension(const RequestResult& result, const std::optional<Bill>& bill,
                   JsonObject& usage) {
  if (!bill) return;
  const RequestTimes& times = result.times;
  JsonObject detail;
  detail.count("prompt_tokens", result.usage.prompt_tokens)
      .count("hit_tokens", hits(result.usage))
      .count("disk_tokens", result.usage.disk_tokens)
      .count("replayed_tokens", result.usage.replayed_tokens)
      .count("completion_tokens", result.usage.completion_tokens)
      .count("reasoning_tokens", result.usage.reasoning_tokens)
      .real("queue_ms", milliseconds(times.queue_seconds))
      .real("restore_ms", milliseconds(times.restore_seconds))
      .real("prompt_ms", milliseconds(times.prompt_seconds))
      .real("decode_ms", milliseconds(times.decode_seconds))
      .real("first_token_ms", milliseconds(times.first_token_seconds));
  JsonObject price;
  price.text("currency", "USD")
      .real("hit", bill->hit)
      .real("miss", bill->miss)
      .real("output", bill->output)
      .real("total", bill->total())
      .json("is_peak", bill->is_peak ? "true" : "false");
  usage.json("locket", JsonObject().json("usage", detail.str()).json("bill", price.str()).str());
}

}  // namespace

std::string chat_usage(const RequestResult& result, const std::optional<Bill>& bill) {
  const RequestUsage& usage = result.usage;
  const std::size_t hit = hits(usage);
  JsonObject out;
  out.count("prompt_tokens", usage.prompt_tokens)
      .count("completion_tokens", usage.completion_tokens)
      .count("total_tokens", usage.prompt_tokens + usage.completion_tokens)
      .json("prompt_tokens_details", JsonObject().count("cached_tokens", hit).str())
      .json("completion_tokens_details",
            JsonObject().count("reasoning_tokens", usage.reasoning_tokens).str())
      .count("prompt_cache_hit_tokens", hit)
      .count("prompt_cache_miss_tokens", usage.prompt_tokens - hit);
  add_extension(result, bill, out);
  return out.str();
}

std::string responses_usage(const RequestResult& result, const std::optional<Bill>& bill) {
  const RequestUsage& usage = result.usage;
  JsonObject out;
  out.count("input_tokens", usage.prompt_tokens)
      .json("input_tokens_details", JsonObject().count("cached_tokens", hits(usage)).str())
      .count("output_tokens", usage.completion_tokens)
      .json("output_tokens_details",
            JsonObject().count("reasoning_tokens", usage.reasoning_tokens).str())
      .count("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  add_extension(result, bill, out);
  return out.str();
}

std::string messages_usage(const RequestResult& result, const std::optional<Bill>& bill) {
  const RequestUsage& usage = result.usage;
  const std::size_t hit = hits(usage);
  JsonObject out;
  out.count("input_tokens", usage.prompt_tokens - hit)
      .count("cache_creation_input_tokens", 0)
      .count("cache_read_input_tokens", hit)
      .count("output_tokens", usage.completion_tokens);
  add_extension(result, bill, out);
  return out.str();
}

std::string messages_first_usage(std::size_t prompt_tokens) {
  RequestResult result;
  result.usage.prompt_tokens = prompt_tokens;
  return messages_usage(result, std::nullopt);
}

}  // namespace locket::server
