// What the page /ui asks for every second: the state of the server as one JSON object. Sums since
// the start, not rates: the page computes those from one state to the next. Holds names, sizes and
// counts, never text of a prompt or an answer, and its size is bounded. Pure functions,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/memory_overview.h"
#include "server/bill_book.h"
#include "server/metrics.h"
#include "server/serving_stage.h"
#include "service/dispatcher.h"

namespace locket::server {

inline constexpr std::size_t kMostUiRequests = 100;
inline constexpr std::size_t kMostUiCallers = 10;

struct UiModel {
  using Stage = ServingStage;
  Stage stage = Stage::kLoading;
  double loading_progress = 0;  // 0 to 1
  std::string name = {};
  std::string numerics = {};
  std::size_t context_tokens = 0;
  std::string version = {};  // of the program
};

struct UiState {
  double now_seconds = 0;  // wall clock
  UiModel model = {};
  service::DispatcherLoad load = {};
  std::vector<service::RequestProgress> requests = {};
  MemoryNumbers memory = {};
  std::vector<DayBill> bills = {};
  std::shared_ptr<const engine::MemoryOverview> prefixes = {};  // may be null
  std::uint64_t known_prefixes = 0;  // the version of `prefixes` that the page has
};

// Of the first kMostUiRequests requests (those that run before those that wait, the oldest first),
// the bills of all callers by day, those of the newest day by caller (the dearest kMostUiCallers).
// The nodes of `prefixes` are left out if the page has them.
std::string ui_state_json(const UiState& state);

// The version that a query like "prefixes=7" names; 0 if it names none.
std::uint64_t known_prefixes_of(std::string_view query);

}  // namespace locket::server
