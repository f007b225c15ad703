#include "server/metrics.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <string_view>

namespace locket::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using Buckets = Histogram::BucketBoundaries;

// What dashboards are drawn for.
const Buckets& token_buckets() {
  static const Buckets buckets = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                  0.75,  1,     2.5,  5,    7.5,  10,   15,   20,  25,   30};
  return buckets;
}

// Whole requests, up to two hours.
const Buckets& request_buckets() {
  static const Buckets buckets = {0.1, 0.25, 0.5, 1,  2,   3,   5,   10,   15,
                                  20,  30,   45,  60, 120, 300, 900, 1800, 7200};
  return buckets;
}

const Buckets& count_buckets() {
  static const Buckets buckets = {1,     2,      5,      10,     20,     50,    100,
                                  200,   500,    1000,   2000,   5000,   10000, 20000,
                                  50000, 100000, 200000, 500000, 1000000};
  return buckets;
}

// To a number that somebody else has counted.
void advance(Counter& counter, double value) {
  const double step = value - counter.Value();
  if (step > 0) counter.Increment(step);
}

template <class Number>
double as_double(Number value) {
  return static_cast<double>(value);
}

// Anybody may send any word as a method.
std::string method_label(const std::string& method) {
  constexpr std::array<std::string_view, 5> kKnown = {"GET", "HEAD", "POST", "OPTIONS", "DELETE"};
  return std::ranges::find(kKnown, method) != kKnown.end() ? method : "other";
}

// vLLM's words.
std::string finished_reason(const RequestRecord& record) {
  if (record.error == error_code_name(ErrorCode::kCancelled)) return "abort";
  if (!record.error.empty()) return "error";
  return record.finish == "length" ? "length" : "stop";
}

}  // namespace

struct Metrics::State {
  explicit State(const std::string& model_name) : model{{"model_name", model_name}} {}

  Counter& counter(const char* name, const char* help, const Labels& labels = {}) {
    return counters(name, help).Add(labels);
  }
  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Gauge& gauge(const char* name, const char* help, const Labels& labels = {}) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }
  Histogram& histogram(const char* name, const char* help, const Buckets& buckets,
                       const Labels& labels = {}) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels,
                                                                                     buckets);
  }

  void record_usage(const RequestRecord& record);
  void record_times(const RequestRecord& record);

  mutable std::mutex mutex;  // of what is set, not recorded; and of bills
  prometheus::Registry registry;
  Labels model;

  Family<Counter>& requests =
      counters("locket_requests_total", "Requests answered, by route and HTTP status");
  Gauge& running = gauge("locket_requests_running", "Choices that the model works on");
  Gauge& waiting = gauge("locket_requests_waiting", "Requests in the queue");
  Gauge& paused = gauge("locket_requests_paused", "Choices whose reader cannot follow");
  Counter& steps = counter("locket_steps_total", "Steps of the model");
  Gauge& since_step =
      gauge("locket_seconds_since_step", "Since the last step ended; 0 if there is nothing to do");
  Counter& preemptions =
      counter("locket_preemptions_total", "Sequences that gave their memory up and went on later");
  Counter& computed = counter("locket_prompt_tokens_computed_total", "Prompt tokens computed");
  Counter& remembered =
      counter("locket_prompt_tokens_remembered_total", "Prompt tokens that were remembered");
  Counter& generated = counter("locket_generated_tokens_total", "Tokens generated");
  Histogram& first_token =
      histogram("locket_time_to_first_token_seconds", "From a request's arrival to its first token",
                token_buckets());
  Histogram& token_gap =
      histogram("locket_inter_token_seconds", "Between two tokens of an answer", token_buckets());
  Histogram& queued =
      histogram("locket_queue_seconds", "In the queue before work began", request_buckets());

  Family<Counter>& hit_tokens = counters("locket_cache_hit_tokens_total",
                                         "Prompt tokens of ended requests that were remembered");
  Counter& ram_tokens = hit_tokens.Add({{"tier", "ram"}});
  Counter& disk_tokens = hit_tokens.Add({{"tier", "disk"}});
  Counter& miss_tokens = counter("locket_cache_miss_tokens_total",
                                 "Prompt tokens of ended requests that were not remembered");
  Counter& replayed = counter("locket_cache_replayed_tokens_total",
                              "Prompt tokens of ended requests that the decoder read again");
  Gauge& measured_bytes_per_token =
      gauge("locket_cache_measured_bytes_per_token",
            "Bytes of RAM in use for each token that is remembered there");
  Gauge& bytes_per_token =
      gauge("locket_cache_bytes_per_token", "Bytes that one token takes in the memory");
  Gauge& ram_bytes = gauge("locket_cache_ram_bytes", "Bytes of the memory in RAM");
  Gauge& ram_budget = gauge("locket_cache_ram_budget_bytes", "Most bytes of the memory in RAM");
  Counter& ram_evictions =
      counter("locket_cache_ram_evictions_total", "Pages and snapshots that left RAM");
  Counter& disk_hits =
      counter("locket_cache_disk_hits_total", "Requests of which something was read from disk");
  Counter& disk_misses = counter("locket_cache_disk_misses_total",
                                 "Requests of which nothing was found, in RAM or on disk");
  Gauge& disk_bytes = gauge("locket_cache_disk_bytes", "Bytes of the memory on disk");
  Gauge& disk_quota = gauge("locket_cache_disk_quota_bytes", "Most bytes of the memory on disk");
  Counter& disk_written = counter("locket_cache_disk_written_bytes_total", "Bytes written to disk");
  Counter& disk_write_seconds =
      counter("locket_cache_disk_write_seconds_total", "Seconds spent on writing to disk");
  Histogram& disk_restore = histogram(
      "locket_cache_disk_restore_seconds",
      "Until the last byte from disk was in RAM, of requests that read some", token_buckets());
  Counter& disk_evictions = counter("locket_cache_disk_evictions_total",
                                    "Pages and snapshots that left the disk for the quota");
  Counter& disk_corrupt = counter("locket_cache_disk_corrupt_total",
                                  "Values on disk that could not be trusted, and were dropped");

  Family<Gauge>& bills =
      prometheus::BuildGauge()
          .Name("locket_bill_dollars")
          .Help("What the requests of a day (UTC) would cost at the configured prices")
          .Register(registry);
  std::vector<Gauge*> bill_rows = {};

  Family<Counter>& http_requests =
      counters("http_requests_total", "Requests answered, by handler, method and HTTP status");
  Gauge& vllm_running =
      gauge("vllm:num_requests_running", "Requests that the model works on", model);
  Gauge& vllm_waiting = gauge("vllm:num_requests_waiting", "Requests in the queue", model);
  Gauge& vllm_usage =
      gauge("vllm:kv_cache_usage_perc", "Share of the memory in use, 0 to 1", model);
  Counter& vllm_preemptions =
      counter("vllm:num_preemptions_total", "Sequences that gave their memory up", model);
  // Python's client puts _total behind the names of counters; both ways of asking find something.
  Counter& vllm_queries =
      counter("vllm:prefix_cache_queries", "Prompt tokens that were looked up", model);
  Counter& vllm_queries_total =
      counter("vllm:prefix_cache_queries_total", "Prompt tokens that were looked up", model);
  Counter& vllm_hits = counter("vllm:prefix_cache_hits", "Prompt tokens that were found", model);
  Counter& vllm_hits_total =
      counter("vllm:prefix_cache_hits_total", "Prompt tokens that were found", model);
  Counter& vllm_prompt = counter("vllm:prompt_tokens_total", "Prompt tokens, found or not", model);
  Counter& vllm_generated = counter("vllm:generation_tokens_total", "Tokens generated", model);
  Family<Counter>& vllm_success =
      counters("vllm:request_success_total", "Requests that ended, by reason");
  Histogram& vllm_first_token = histogram("vllm:time_to_first_token_seconds",
                                          "From arrival to first token", token_buckets(), model);
  Histogram& vllm_token_gap = histogram("vllm:inter_token_latency_seconds",
                                        "Between two tokens of an answer", token_buckets(), model);
  Histogram& vllm_total = histogram("vllm:e2e_request_latency_seconds", "From arrival to the end",
                                    request_buckets(), model);
  Histogram& vllm_queue =
      histogram("vllm:request_queue_time_seconds", "In the queue", request_buckets(), model);
  Histogram& vllm_prefill = histogram("vllm:request_prefill_time_seconds", "Reading the prompt",
                                      request_buckets(), model);
  Histogram& vllm_decode =
      histogram("vllm:request_decode_time_seconds", "Generating", request_buckets(), model);
  Histogram& vllm_prompt_size =
      histogram("vllm:request_prompt_tokens", "Prompt tokens of a request", count_buckets(), model);
  Histogram& vllm_answer_size = histogram("vllm:request_generation_tokens",
                                          "Tokens generated for a request", count_buckets(), model);
  Histogram& vllm_most_tokens =
      histogram("vllm:request_max_num_generation_tokens", "Most tokens that a request allowed",
                count_buckets(), model);
};

void Metrics::State::record_usage(const RequestRecord& record) {
  const service::RequestUsage& usage = record.usage;
  const std::size_t hits = std::min(usage.hit_tokens, usage.prompt_tokens);
  const std::size_t from_disk = std::min(usage.disk_tokens, hits);
  ram_tokens.Increment(as_double(hits - from_disk));
  disk_tokens.Increment(as_double(from_disk));
  miss_tokens.Increment(as_double(usage.prompt_tokens - hits));
  replayed.Increment(as_double(usage.replayed_tokens));
  if (from_disk > 0) {
    disk_hits.Increment();
    disk_restore.Observe(record.times.restore_seconds);
  } else if (hits == 0 && usage.prompt_tokens > 0) {
    disk_misses.Increment();
  }
  vllm_prompt_size.Observe(as_double(usage.prompt_tokens));
  vllm_answer_size.Observe(as_double(usage.completion_tokens));
  vllm_most_tokens.Observe(as_double(record.max_tokens));
}

void Metrics::State::record_times(const RequestRecord& record) {
  const service::RequestTimes& times = record.times;
  if (times.first_token_seconds > 0) {
    first_token.Observe(times.first_token_seconds);
    vllm_first_token.Observe(times.first_token_seconds);
  }
  queued.Observe(times.queue_seconds);
  vllm_queue.Observe(times.queue_seconds);
  vllm_prefill.Observe(times.prompt_seconds);
  vllm_decode.Observe(times.decode_seconds);
  vllm_total.Observe(record.total_seconds);
}

Metrics::Metrics(const std::string& model_name) : state_(std::make_unique<State>(model_name)) {}

Metrics::~Metrics() = default;

void Metrics::record_request(const RequestRecord& record) {
  const std::string status = std::to_string(record.status);
  const std::string route = record.route.empty() ? "none" : record.route;
  state_->requests.Add({{"route", route}, {"status", status}}).Increment();
  state_->http_requests
      .Add({{"handler", route}, {"method", method_label(record.method)}, {"status", status}})
      .Increment();
  if (!record.is_generation) return;
  Labels labels = state_->model;
  labels.emplace("finished_reason", finished_reason(record));
  state_->vllm_success.Add(labels).Increment();
  state_->record_usage(record);
  state_->record_times(record);
}

void Metrics::record_token_gap(double seconds) {
  state_->token_gap.Observe(seconds);
  state_->vllm_token_gap.Observe(seconds);
}

void Metrics::set_load(const service::DispatcherLoad& load) {
  const std::lock_guard lock(state_->mutex);
  for (Gauge* gauge : {&state_->running, &state_->vllm_running})
    gauge->Set(as_double(load.running));
  for (Gauge* gauge : {&state_->waiting, &state_->vllm_waiting}) gauge->Set(as_double(load.queued));
  state_->paused.Set(as_double(load.paused));
  state_->since_step.Set(load.seconds_since_step);
  advance(state_->steps, as_double(load.steps));
  const double hits = as_double(load.hit_tokens);
  const double all = hits + as_double(load.prompt_tokens);
  const double generated = as_double(load.generated_tokens);
  const double preemptions = as_double(load.preemptions);
  advance(state_->computed, as_double(load.prompt_tokens));
  advance(state_->remembered, hits);
  for (Counter* counter : {&state_->vllm_hits, &state_->vllm_hits_total}) advance(*counter, hits);
  for (Counter* counter :
       {&state_->vllm_queries, &state_->vllm_queries_total, &state_->vllm_prompt}) {
    advance(*counter, all);
  }
  for (Counter* counter : {&state_->generated, &state_->vllm_generated}) {
    advance(*counter, generated);
  }
  for (Counter* counter : {&state_->preemptions, &state_->vllm_preemptions}) {
    advance(*counter, preemptions);
  }
}

void Metrics::set_memory(const MemoryNumbers& memory) {
  const std::lock_guard lock(state_->mutex);
  const double used = as_double(memory.ram_used_bytes);
  const double budget = as_double(memory.ram_budget_bytes);
  state_->bytes_per_token.Set(memory.bytes_per_token);
  state_->measured_bytes_per_token.Set(memory.measured_bytes_per_token);
  state_->ram_bytes.Set(used);
  state_->ram_budget.Set(budget);
  state_->vllm_usage.Set(budget > 0 ? used / budget : 0);
  state_->disk_bytes.Set(as_double(memory.disk_used_bytes));
  state_->disk_quota.Set(as_double(memory.disk_quota_bytes));
  advance(state_->ram_evictions, as_double(memory.ram_evictions));
  advance(state_->disk_evictions, as_double(memory.disk_evictions));
  advance(state_->disk_corrupt, as_double(memory.disk_corrupt));
  advance(state_->disk_written, as_double(memory.disk_written_bytes));
  advance(state_->disk_write_seconds, memory.disk_write_seconds);
}

void Metrics::set_bills(const std::vector<DayBill>& bills) {
  const std::lock_guard lock(state_->mutex);
  for (Gauge* row : state_->bill_rows) state_->bills.Remove(row);
  state_->bill_rows.clear();
  const auto add = [&](const DayBill& bill, const char* kind, double dollars) {
    Gauge& row = state_->bills.Add({{"day", bill.day}, {"tenant", bill.tenant}, {"kind", kind}});
    row.Set(dollars);
    state_->bill_rows.push_back(&row);
  };
  for (const DayBill& bill : bills) {
    add(bill, "hit", bill.hit);
    add(bill, "miss", bill.miss);
    add(bill, "output", bill.output);
  }
}

std::string Metrics::text() const {
  const std::lock_guard lock(state_->mutex);
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace locket::server
