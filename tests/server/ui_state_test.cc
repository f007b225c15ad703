#include "server/ui_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace locket::server {
namespace {

using nlohmann::json;
using service::RequestProgress;
using ::testing::ElementsAre;

json parsed(const UiState& state) { return json::parse(ui_state_json(state)); }

RequestProgress request(std::uint64_t id, RequestProgress::Stage stage) {
  RequestProgress progress;
  progress.id = id;
  progress.stage = stage;
  return progress;
}

std::vector<std::uint64_t> ids_of(const json& state) {
  std::vector<std::uint64_t> ids;
  for (const json& entry : state["requests"]) ids.push_back(entry["id"]);
  return ids;
}

TEST(UiStateTest, TellsOfTheModel) {
  UiState state;
  state.now_seconds = 1764460800.1239;
  state.model = {.stage = UiModel::Stage::kLoading,
                 .loading_progress = 0.25,
                 .name = "deepseek-flash",
                 .numerics = "reference",
                 .context_tokens = 1048576,
                 .version = "0.1.0"};
  const json told = parsed(state);
  EXPECT_DOUBLE_EQ(told["time"], 1764460800.124);
  EXPECT_EQ(told["model"], json::parse(R"({"stage": "loading", "progress": 0.25,
      "name": "deepseek-flash", "numerics": "reference", "context_tokens": 1048576,
      "version": "0.1.0"})"));
}

TEST(UiStateTest, EveryStageHasAName) {
  std::vector<std::string> names;
  for (int stage = 0; stage < static_cast<int>(UiModel::Stage::kCount); ++stage) {
    UiState state;
    state.model.stage = static_cast<UiModel::Stage>(stage);
    names.push_back(parsed(state)["model"]["stage"]);
  }
  EXPECT_THAT(names, ElementsAre("loading", "ready", "draining", "failed"));
  names.clear();
  for (int stage = 0; stage < static_cast<int>(RequestProgress::Stage::kCount); ++stage) {
    UiState state;
    state.requests = {request(1, static_cast<RequestProgress::Stage>(stage))};
    names.push_back(parsed(state)["requests"][0]["stage"]);
  }
  EXPECT_THAT(names, ElementsAre("queued", "reading", "generating", "paused"));
}

TEST(UiStateTest, TellsSumsSinceTheStart) {
  UiState state;
  state.load = {.queued = 1,
                .running = 2,
                .paused = 3,
                .steps = 4,
                .prompt_tokens = 5,
                .hit_tokens = 6,
                .generated_tokens = 7,
                .preemptions = 8};
  state.memory = {.bytes_per_token = 5412.5,
                  .measured_bytes_per_token = 5500,
                  .ram_used_bytes = 1,
                  .ram_budget_bytes = 2,
                  .disk_used_bytes = 3,
                  .disk_quota_bytes = 4,
                  .ram_evictions = 5,
                  .disk_evictions = 6,
                  .disk_corrupt = 7,
                  .disk_written_bytes = std::uint64_t{1} << 40};
  const json told = parsed(state);
  EXPECT_EQ(told["load"], json::parse(R"({"queued": 1, "running": 2, "paused": 3, "steps": 4,
      "prompt_tokens": 5, "hit_tokens": 6, "generated_tokens": 7, "preemptions": 8})"));
  EXPECT_EQ(told["memory"], json::parse(R"({"bytes_per_token": 5412.5,
                                            "measured_bytes_per_token": 5500.0, "ram_used_bytes": 1,
      "ram_budget_bytes": 2, "disk_used_bytes": 3, "disk_quota_bytes": 4, "ram_evictions": 5,
      "disk_evictions": 6, "disk_corrupt": 7, "disk_written_bytes": 1099511627776})"));
}

TEST(UiStateTest, TellsHowFarARequestIs) {
  UiState state;
  state.requests = {{.id = 9,
                     .label = "team \"a\"\n\xff",
                     .stage = RequestProgress::Stage::kReading,
                     .prompt_tokens = 100,
                     .read_tokens = 60,
                     .hit_tokens = 40,
                     .completion_tokens = 0,
                     .age_seconds = 1.23456}};
  EXPECT_EQ(parsed(state)["requests"], json::parse(R"([{"id": 9, "label": "team \"a\"\n\ufffd",
      "stage": "reading", "prompt_tokens": 100, "read_tokens": 60, "hit_tokens": 40,
      "completion_tokens": 0, "age_seconds": 1.235}])"));
}

TEST(UiStateTest, RequestsThatRunStandBeforeThoseThatWait) {
  UiState state;
  state.requests = {
      request(4, RequestProgress::Stage::kQueued), request(3, RequestProgress::Stage::kReading),
      request(2, RequestProgress::Stage::kQueued), request(1, RequestProgress::Stage::kPaused)};
  EXPECT_THAT(ids_of(parsed(state)), ElementsAre(1, 3, 2, 4));
}

TEST(UiStateTest, OfManyRequestsOnlyTheFirstAreTold) {
  UiState state;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    state.requests.push_back(request(id, RequestProgress::Stage::kQueued));
  }
  const json told = parsed(state);
  EXPECT_EQ(told["requests"].size(), kMostUiRequests);
  EXPECT_EQ(told["request_count"], 1000);
}

TEST(UiStateTest, AddsTheBillsOfADay) {
  UiState state;
  state.bills = {{.day = "2026-11-29", .tenant = "b", .requests = 1, .hit = 1},
                 {.day = "2026-11-30", .tenant = "b", .requests = 2, .miss = 0.25},
                 {.day = "2026-11-30", .tenant = "c", .requests = 3, .hit = 0.5, .output = 4}};
  EXPECT_EQ(parsed(state)["days"], json::parse(R"([
      {"day": "2026-11-29", "requests": 1, "hit": 1.0, "miss": 0.0, "output": 0.0},
      {"day": "2026-11-30", "requests": 5, "hit": 0.5, "miss": 0.25, "output": 4.0}])"));
}

TEST(UiStateTest, TheDearestCallersOfTheNewestDayAreTold) {
  UiState state;
  for (std::size_t caller = 0; caller < 30; ++caller) {
    state.bills.push_back({.day = "2026-11-30",
                           .tenant = std::to_string(caller),
                           .output = static_cast<double>(caller)});
  }
  state.bills.push_back({.day = "2026-11-29", .tenant = "yesterday", .output = 1000});
  const json callers = parsed(state)["callers"];
  ASSERT_EQ(callers.size(), kMostUiCallers);
  EXPECT_EQ(callers[0]["name"], "29");
  EXPECT_EQ(callers[1]["name"], "28");
}

TEST(UiStateTest, WithoutBillsThereAreNone) {
  const json told = parsed({});
  EXPECT_TRUE(told["days"].empty());
  EXPECT_TRUE(told["callers"].empty());
}

std::shared_ptr<const engine::MemoryOverview> two_nodes() {
  engine::MemoryOverview overview;
  overview.version = 7;
  overview.nodes_left_out = 3;
  overview.is_complete = false;
  overview.nodes = {{.name = "aa",
                     .tokens = 256,
                     .ram_bytes = 10,
                     .disk_bytes = 20,
                     .is_pinned = true,
                     .last_use_seconds = 900.5},
                    {.name = "bb", .parent = 0, .tokens = 10, .disk_bytes = 5, .is_in_use = true}};
  return std::make_shared<engine::MemoryOverview>(overview);
}

TEST(UiStateTest, TellsThePrefixTree) {
  UiState state;
  state.now_seconds = 1000;
  state.prefixes = two_nodes();
  EXPECT_EQ(parsed(state)["prefixes"], json::parse(R"({"version": 7, "left_out": 3,
      "complete": false, "nodes": [
        {"name": "aa", "parent": -1, "tokens": 256, "ram_bytes": 10, "disk_bytes": 20,
         "pinned": true, "in_use": false, "age_seconds": 99},
        {"name": "bb", "parent": 0, "tokens": 10, "ram_bytes": 0, "disk_bytes": 5,
         "pinned": false, "in_use": true, "age_seconds": null}]})"));
}

TEST(UiStateTest, ATreeThatThePageHasIsNotToldAgain) {
  UiState state;
  state.prefixes = two_nodes();
  state.known_prefixes = 6;
  EXPECT_TRUE(parsed(state)["prefixes"].contains("nodes"));
  state.known_prefixes = 7;
  EXPECT_FALSE(parsed(state)["prefixes"].contains("nodes"));
  EXPECT_EQ(parsed(state)["prefixes"]["version"], 7);
}

TEST(UiStateTest, WithoutAMemoryTheTreeIsEmpty) {
  const json prefixes = parsed({})["prefixes"];
  EXPECT_EQ(prefixes["version"], 0);
  EXPECT_TRUE(prefixes["nodes"].empty());
}

TEST(UiStateTest, AFullStateIsSmall) {
  UiState state;
  state.requests.assign(1000, {.id = 123456, .label = std::string(64, 'x')});
  engine::MemoryOverview overview;
  overview.version = 1;
  overview.nodes.assign(engine::kMostOverviewNodes,
                        {.name = "0123456789ab", .tokens = 1'000'000, .ram_bytes = 1ULL << 40});
  state.prefixes = std::make_shared<engine::MemoryOverview>(overview);
  EXPECT_LT(ui_state_json(state).size(), std::size_t{128} * 1024);
  state.known_prefixes = 1;
  EXPECT_LT(ui_state_json(state).size(), std::size_t{32} * 1024);
}

TEST(UiStateTest, TheQuerySaysWhichTreeThePageHas) {
  EXPECT_EQ(known_prefixes_of("prefixes=7"), 7U);
  EXPECT_EQ(known_prefixes_of("prefixes=18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(known_prefixes_of(""), 0U);
  EXPECT_EQ(known_prefixes_of("prefixes="), 0U);
  EXPECT_EQ(known_prefixes_of("prefixes=-1"), 0U);
  EXPECT_EQ(known_prefixes_of("prefixes=99999999999999999999"), 0U);
  EXPECT_EQ(known_prefixes_of("other=7"), 0U);
}

}  // namespace
}  // namespace locket::server
