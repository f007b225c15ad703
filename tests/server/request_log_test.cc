#include "server/request_log.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/log.h"

namespace locket::server {
namespace {

using Json = nlohmann::json;

RequestRecord generation() {
  RequestRecord record;
  record.id = "0b1c";
  record.method = "POST";
  record.path = "/v1/chat/completions";
  record.route = record.path;
  record.peer = "127.0.0.1";
  record.tenant = "ann";
  record.model = "deepseek-flash";
  record.total_seconds = 2.00004;
  record.is_generation = true;
  record.is_stream = true;
  record.finish = "tool_calls";
  record.usage = {.prompt_tokens = 1000,
                  .hit_tokens = 900,
                  .disk_tokens = 600,
                  .replayed_tokens = 128,
                  .completion_tokens = 40,
                  .reasoning_tokens = 10};
  record.times = {.queue_seconds = 0.2,
                  .restore_seconds = 0.03,
                  .prompt_seconds = 0.5,
                  .decode_seconds = 1.3,
                  .first_token_seconds = 0.75};
  record.bill = Bill{.hit = 0.25, .miss = 0.5, .output = 1, .is_peak = true};
  return record;
}

TEST(RequestLogTest, ARequestIsOneObject) {
  const Json json = Json::parse(request_json(generation()));
  const Json expected = {
      {"event", "request"},
      {"id", "0b1c"},
      {"peer", "127.0.0.1"},
      {"tenant", "ann"},
      {"method", "POST"},
      {"path", "/v1/chat/completions"},
      {"model", "deepseek-flash"},
      {"status", 200},
      {"total_ms", 2000.0},
      {"stream", true},
      {"prompt_tokens", 1000},
      {"cached_tokens", 900},
      {"disk_tokens", 600},
      {"replayed_tokens", 128},
      {"completion_tokens", 40},
      {"reasoning_tokens", 10},
      {"cache_source", "ram+disk"},
      {"queue_ms", 200.0},
      {"restore_ms", 30.0},
      {"prefill_ms", 500.0},
      {"decode_ms", 1300.0},
      {"first_token_ms", 750.0},
      {"finish", "tool_calls"},
      {"bill",
       {{"hit", 0.25}, {"miss", 0.5}, {"output", 1.0}, {"total", 1.75}, {"is_peak", true}}}};
  EXPECT_EQ(json, expected) << json.dump();
}

TEST(RequestLogTest, WithoutAModelThereAreNoTokens) {
  RequestRecord record;
  record.method = "GET";
  record.path = "/v1/models";
  record.status = 401;
  record.error = "bad_request";
  const Json json = Json::parse(request_json(record));
  EXPECT_EQ(json["status"], 401);
  EXPECT_EQ(json["error"], "bad_request");
  for (const char* name : {"prompt_tokens", "finish", "bill", "queue_ms"}) {
    EXPECT_FALSE(json.contains(name)) << name;
  }
  EXPECT_EQ(request_text(record).find("prompt"), std::string::npos);
}

TEST(RequestLogTest, SaysWhereTheMemoryCameFrom) {
  const auto source = [](std::size_t hit, std::size_t disk) {
    RequestRecord record = generation();
    record.usage.hit_tokens = hit;
    record.usage.disk_tokens = disk;
    return Json::parse(request_json(record))["cache_source"].get<std::string>();
  };
  EXPECT_EQ(source(0, 0), "none");
  EXPECT_EQ(source(9, 0), "ram");
  EXPECT_EQ(source(9, 9), "disk");
  EXPECT_EQ(source(9, 4), "ram+disk");
}

TEST(RequestLogTest, WhatClientsChooseStaysInItsField) {
  RequestRecord record = generation();
  record.id = "a\"}\n{\"status\":1";
  record.path = "/\x1B[2J\xC2\x9B\xFF" + std::string(10000, 'x');
  const std::string text = request_json(record);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json json = Json::parse(text);
  EXPECT_EQ(json["id"], record.id);
  EXPECT_EQ(json["status"], 200);
  EXPECT_LT(json["path"].get<std::string>().size(), 300U);
  const std::string line = request_text(record);
  EXPECT_LT(line.size(), 800U);
  for (const char letter : line) EXPECT_TRUE(letter >= ' ' && letter <= '~') << line;
}

TEST(RequestLogTest, ALineTellsPeopleTheSame) {
  EXPECT_EQ(request_text(generation()),
            "POST /v1/chat/completions 200 in 2.00 s | ann | deepseek-flash | 1000 prompt, 900 "
            "remembered (ram+disk), 40 generated | queue 0.20 read 0.50 write 1.30 s | tool_calls "
            "| $1.750000 | 0b1c");
}

TEST(RequestLogTest, TheLogChoosesTheForm) {
  testing::internal::CaptureStderr();
  set_log_style(LogStyle::kJson);
  log_request(generation());
  set_log_style(LogStyle::kText);
  log_request(generation());
  const std::string lines = testing::internal::GetCapturedStderr();
  const Json json = Json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(json["event"], "request");
  EXPECT_EQ(json["level"], "info");
  EXPECT_NE(lines.find("info POST /v1/chat/completions 200"), std::string::npos);
}

TEST(RequestLogTest, RatesAreThoseOfTheTimeBetween) {
  const service::DispatcherLoad before = {
      .prompt_tokens = 1000, .hit_tokens = 5000, .generated_tokens = 100};
  const service::DispatcherLoad now = {.queued = 2,
                                       .running = 3,
                                       .prompt_tokens = 1500,
                                       .hit_tokens = 6500,
                                       .generated_tokens = 300};
  const MemoryNumbers memory = {
      .ram_used_bytes = 12, .ram_budget_bytes = 100, .disk_used_bytes = 1, .disk_quota_bytes = 2};
  EXPECT_EQ(rates_text(before, now, 5, memory),
            "3 running, 2 waiting | prompts 100.0 tokens/s computed, 75 % remembered | 40.0 "
            "tokens/s generated | memory 12 % full, disk 50 %");
}

TEST(RequestLogTest, AnIdleServerSaysNothing) {
  const service::DispatcherLoad load = {.prompt_tokens = 5, .generated_tokens = 7};
  EXPECT_EQ(rates_text(load, load, 5, {}), "");
  service::DispatcherLoad running = load;
  running.running = 1;
  EXPECT_NE(rates_text(load, running, 5, {}), "");
}

}  // namespace
}  // namespace locket::server
