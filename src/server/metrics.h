// Counts what the server does, for a page that Prometheus reads. Own metrics are named locket_*;
// those of vLLM (vllm:*, http_requests_total) are there as well, with the meaning that dashboards
// and autoscalers expect. Nothing in them is text of a user; labels
// have a limited number of values. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/bill_book.h"
#include "server/request_record.h"
#include "service/dispatcher.h"

namespace locket::server {

// The state of the memory, and what it has done since the start.
struct MemoryNumbers {
  double bytes_per_token = 0;           // of the model's layout
  double measured_bytes_per_token = 0;  // of what is in RAM now, with everything; 0: nothing
  std::uint64_t ram_used_bytes = 0;
  std::uint64_t ram_budget_bytes = 0;
  std::uint64_t disk_used_bytes = 0;
  std::uint64_t disk_quota_bytes = 0;
  std::uint64_t ram_evictions = 0;
  std::uint64_t disk_evictions = 0;
  std::uint64_t disk_corrupt = 0;  // values that could not be trusted, and were dropped
  std::uint64_t disk_written_bytes = 0;
  double disk_write_seconds = 0;
};

class Metrics {
 public:
  // `model_name`: the label of vLLM's metrics.
  explicit Metrics(const std::string& model_name);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  void record_request(const RequestRecord& record);
  // Between two tokens of one answer.
  void record_token_gap(double seconds);

  // The state now: to be called before text().
  void set_load(const service::DispatcherLoad& load);
  void set_memory(const MemoryNumbers& memory);
  void set_bills(const std::vector<DayBill>& bills);

  // The page, in Prometheus' text format (version 0.0.4).
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket::server
