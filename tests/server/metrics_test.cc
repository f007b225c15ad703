#include "server/metrics.h"

#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace locket::server {
namespace {

// The value of one row of the page, as printed; empty if there is no such row.
std::string row(const Metrics& metrics, const std::string& name) {
  std::istringstream lines(metrics.text());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return line.substr(name.size() + 1);
  }
  return "";
}

RequestRecord generation() {
  RequestRecord record;
  record.method = "POST";
  record.path = "/v1/chat/completions";
  record.route = "/v1/chat/completions";
  record.is_generation = true;
  record.finish = "stop";
  record.max_tokens = 100;
  record.total_seconds = 2;
  record.usage = {.prompt_tokens = 1000,
                  .hit_tokens = 900,
                  .disk_tokens = 600,
                  .replayed_tokens = 128,
                  .completion_tokens = 40};
  record.times = {.queue_seconds = 0.2,
                  .restore_seconds = 0.03,
                  .prompt_seconds = 0.5,
                  .decode_seconds = 1.3,
                  .first_token_seconds = 0.75};
  return record;
}

TEST(MetricsTest, CountsRequestsByRouteAndStatus) {
  Metrics metrics("deepseek-flash");
  RequestRecord record;
  record.method = "GET";
  record.route = "/v1/models";
  metrics.record_request(record);
  metrics.record_request(record);
  record.status = 404;
  record.route = "";
  record.method = "BREW-\"\n";
  metrics.record_request(record);
  EXPECT_EQ(row(metrics, R"(locket_requests_total{route="/v1/models",status="200"})"), "2");
  EXPECT_EQ(row(metrics, R"(locket_requests_total{route="none",status="404"})"), "1");
  EXPECT_EQ(row(metrics, R"(http_requests_total{handler="/v1/models",method="GET",status="200"})"),
            "2");
  EXPECT_EQ(row(metrics, R"(http_requests_total{handler="none",method="other",status="404"})"),
            "1");
  EXPECT_EQ(row(metrics, "locket_time_to_first_token_seconds_count"), "0");
}

TEST(MetricsTest, CountsWhereTokensCameFrom) {
  Metrics metrics("m");
  metrics.record_request(generation());
  EXPECT_EQ(row(metrics, R"(locket_cache_hit_tokens_total{tier="ram"})"), "300");
  EXPECT_EQ(row(metrics, R"(locket_cache_hit_tokens_total{tier="disk"})"), "600");
  EXPECT_EQ(row(metrics, "locket_cache_miss_tokens_total"), "100");
  EXPECT_EQ(row(metrics, "locket_cache_replayed_tokens_total"), "128");
  EXPECT_EQ(row(metrics, "locket_cache_disk_hits_total"), "1");
  EXPECT_EQ(row(metrics, "locket_cache_disk_misses_total"), "0");
  EXPECT_EQ(row(metrics, "locket_cache_disk_restore_seconds_sum"), "0.03");
}

TEST(MetricsTest, AMissIsARequestOfWhichNothingWasFound) {
  Metrics metrics("m");
  RequestRecord record = generation();
  record.usage.disk_tokens = 0;
  metrics.record_request(record);
  EXPECT_EQ(row(metrics, "locket_cache_disk_misses_total"), "0");
  record.usage.hit_tokens = 0;
  metrics.record_request(record);
  EXPECT_EQ(row(metrics, "locket_cache_disk_misses_total"), "1");
  EXPECT_EQ(row(metrics, "locket_cache_disk_hits_total"), "0");
  EXPECT_EQ(row(metrics, "locket_cache_disk_restore_seconds_count"), "0");
}

TEST(MetricsTest, HistogramsHaveTheBucketsThatDashboardsKnow) {
  Metrics metrics("m");
  metrics.record_request(generation());
  const std::string own = "locket_time_to_first_token_seconds";
  EXPECT_EQ(row(metrics, own + R"(_bucket{le="0.5"})"), "0");
  EXPECT_EQ(row(metrics, own + R"(_bucket{le="0.75"})"), "1");
  for (const std::string bucket :
       {"0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1", "0.25", "1", "2.5", "5",
        "7.5", "10", "15", "20", "25", "30", "+Inf"}) {
    EXPECT_NE(row(metrics, own + "_bucket{le=\"" + bucket + "\"}"), "") << bucket;
  }
  metrics.record_token_gap(0.03);
  EXPECT_EQ(row(metrics, R"(locket_inter_token_seconds_bucket{le="0.02"})"), "0");
  EXPECT_EQ(row(metrics, R"(locket_inter_token_seconds_bucket{le="0.04"})"), "1");
}

TEST(MetricsTest, ARequestWithoutATokenHasNoFirstOne) {
  Metrics metrics("m");
  RequestRecord record = generation();
  record.times.first_token_seconds = 0;
  metrics.record_request(record);
  EXPECT_EQ(row(metrics, "locket_time_to_first_token_seconds_count"), "0");
  EXPECT_EQ(row(metrics, "locket_queue_seconds_count"), "1");
}

TEST(MetricsTest, HasTheNamesOfVllm) {
  Metrics metrics("deepseek-flash");
  metrics.record_request(generation());
  metrics.record_token_gap(0.01);
  const std::string model = R"({model_name="deepseek-flash"})";
  for (const std::string name :
       {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
        "vllm:prefix_cache_queries", "vllm:prefix_cache_hits", "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total"}) {
    EXPECT_EQ(row(metrics, name + model), "0") << name;
  }
  const std::vector<std::pair<std::string, std::string>> sums = {
      {"vllm:time_to_first_token_seconds", "0.75"},
      {"vllm:inter_token_latency_seconds", "0.01"},
      {"vllm:e2e_request_latency_seconds", "2"},
      {"vllm:request_queue_time_seconds", "0.2"},
      {"vllm:request_prefill_time_seconds", "0.5"},
      {"vllm:request_decode_time_seconds", "1.3"},
      {"vllm:request_prompt_tokens", "1000"},
      {"vllm:request_generation_tokens", "40"},
      {"vllm:request_max_num_generation_tokens", "100"}};
  for (const auto& [name, sum] : sums) {
    EXPECT_EQ(row(metrics, name + "_sum" + model), sum) << name;
    EXPECT_EQ(row(metrics, name + "_count" + model), "1") << name;
  }
}

TEST(MetricsTest, NamesTheReasonOfTheEndInVllmsWords) {
  Metrics metrics("m");
  RequestRecord record = generation();
  for (const std::string finish : {"stop", "tool_calls", "length"}) {
    record.finish = finish;
    metrics.record_request(record);
  }
  record.finish = "";
  for (const std::string error : {"cancelled", "internal", "over_budget"}) {
    record.error = error;
    metrics.record_request(record);
  }
  const auto count = [&](const std::string& reason) {
    return row(metrics,
               "vllm:request_success_total{finished_reason=\"" + reason + "\",model_name=\"m\"}");
  };
  EXPECT_EQ(count("stop"), "2");
  EXPECT_EQ(count("length"), "1");
  EXPECT_EQ(count("abort"), "1");
  EXPECT_EQ(count("error"), "2");
}

TEST(MetricsTest, CountersFollowTheDispatcherAndNeverGoBack) {
  Metrics metrics("m");
  metrics.set_load({.queued = 3,
                    .running = 2,
                    .paused = 1,
                    .steps = 10,
                    .seconds_since_step = 0.5,
                    .prompt_tokens = 100,
                    .hit_tokens = 900,
                    .generated_tokens = 50,
                    .preemptions = 4});
  EXPECT_EQ(row(metrics, "locket_requests_waiting"), "3");
  EXPECT_EQ(row(metrics, R"(vllm:num_requests_running{model_name="m"})"), "2");
  EXPECT_EQ(row(metrics, "locket_requests_paused"), "1");
  EXPECT_EQ(row(metrics, "locket_seconds_since_step"), "0.5");
  EXPECT_EQ(row(metrics, R"(vllm:prefix_cache_queries{model_name="m"})"), "1000");
  EXPECT_EQ(row(metrics, R"(vllm:prefix_cache_hits_total{model_name="m"})"), "900");
  EXPECT_EQ(row(metrics, R"(vllm:prompt_tokens_total{model_name="m"})"), "1000");
  EXPECT_EQ(row(metrics, R"(vllm:generation_tokens_total{model_name="m"})"), "50");
  EXPECT_EQ(row(metrics, R"(vllm:num_preemptions_total{model_name="m"})"), "4");
  metrics.set_load({.steps = 9, .prompt_tokens = 120, .hit_tokens = 900, .generated_tokens = 51});
  EXPECT_EQ(row(metrics, "locket_steps_total"), "10");
  EXPECT_EQ(row(metrics, "locket_prompt_tokens_computed_total"), "120");
  EXPECT_EQ(row(metrics, "locket_prompt_tokens_remembered_total"), "900");
  EXPECT_EQ(row(metrics, "locket_generated_tokens_total"), "51");
  EXPECT_EQ(row(metrics, "locket_requests_waiting"), "0");
}

TEST(MetricsTest, ShowsTheMemory) {
  Metrics metrics("m");
  metrics.set_memory({.bytes_per_token = 1234.5,
                      .measured_bytes_per_token = 1300.5,
                      .ram_used_bytes = 250,
                      .ram_budget_bytes = 1000,
                      .disk_used_bytes = 5,
                      .disk_quota_bytes = 6,
                      .ram_evictions = 7,
                      .disk_evictions = 8,
                      .disk_corrupt = 9,
                      .disk_written_bytes = 10,
                      .disk_write_seconds = 0.25});
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"locket_cache_bytes_per_token", "1234.5"},
      {"locket_cache_measured_bytes_per_token", "1300.5"},
      {"locket_cache_ram_bytes", "250"},
      {"locket_cache_ram_budget_bytes", "1000"},
      {R"(vllm:kv_cache_usage_perc{model_name="m"})", "0.25"},
      {"locket_cache_disk_bytes", "5"},
      {"locket_cache_disk_quota_bytes", "6"},
      {"locket_cache_ram_evictions_total", "7"},
      {"locket_cache_disk_evictions_total", "8"},
      {"locket_cache_disk_corrupt_total", "9"},
      {"locket_cache_disk_written_bytes_total", "10"},
      {"locket_cache_disk_write_seconds_total", "0.25"}};
  for (const auto& [name, value] : rows) EXPECT_EQ(row(metrics, name), value) << name;
}

TEST(MetricsTest, BillsThatAreGoneLeaveThePage) {
  Metrics metrics("m");
  metrics.set_bills({{.day = "2026-11-29", .tenant = "ann", .requests = 1, .hit = 1},
                     {.day = "2026-11-30", .tenant = "ann", .requests = 1, .hit = 2, .output = 4}});
  const auto bill = [&](const std::string& day, const std::string& kind) {
    return row(metrics,
               "locket_bill_dollars{day=\"" + day + "\",kind=\"" + kind + "\",tenant=\"ann\"}");
  };
  EXPECT_EQ(bill("2026-11-29", "hit"), "1");
  EXPECT_EQ(bill("2026-11-30", "output"), "4");
  metrics.set_bills({{.day = "2026-11-30", .tenant = "ann", .requests = 2, .hit = 3}});
  EXPECT_EQ(bill("2026-11-29", "hit"), "");
  EXPECT_EQ(bill("2026-11-30", "hit"), "3");
}

TEST(MetricsTest, EveryMetricSaysWhatItIs) {
  Metrics metrics("m");
  metrics.record_request(generation());
  metrics.set_bills({{.day = "2026-11-30", .tenant = "ann", .requests = 2, .hit = 3}});
  std::istringstream lines(metrics.text());
  std::string help;
  std::string type;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      help = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_GT(line.size(), help.size() + 10) << line;
    } else if (line.starts_with("# TYPE ")) {
      type = line.substr(7, line.find(' ', 7) - 7);
    } else {
      EXPECT_TRUE(line.starts_with(help)) << line;
      EXPECT_EQ(help, type) << line;
    }
  }
}

TEST(MetricsTest, ManyThreadsCountTogether) {
  Metrics metrics("m");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        metrics.record_request(generation());
        metrics.record_token_gap(0.001);
        metrics.set_load({.generated_tokens = 7});
        metrics.set_bills({{.day = "2026-11-30", .tenant = "ann", .requests = 1, .hit = 3}});
        EXPECT_NE(metrics.text(), "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(row(metrics, "locket_cache_disk_hits_total"), "800");
  EXPECT_EQ(row(metrics, "locket_inter_token_seconds_count"), "800");
  EXPECT_EQ(row(metrics, "locket_generated_tokens_total"), "7");
}

}  // namespace
}  // namespace locket::server
