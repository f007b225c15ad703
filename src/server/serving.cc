#include "server/serving.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/memory_status.h"
#include "server/request_log.h"

namespace locket::server {
namespace {

constexpr std::size_t kPreparers = 2;
// A model that has work and takes no step for so long stands still.
constexpr double kStandstillSeconds = 120;
constexpr const char* kBuiltInName = "deepseek-flash";

std::vector<std::string> names_of(const ServerOptions& options) {
  return options.served_names.empty() ? std::vector<std::string>{kBuiltInName}
                                      : options.served_names;
}

// Who is counted is whose key it is.
ServerOptions with_limits(ServerOptions options) {
  options.dispatcher.max_per_owner = options.max_requests_per_key;
  return options;
}

}  // namespace

std::string random_uuid() {
  std::array<std::byte, 16> bytes = {};
  random_bytes(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  const std::string hex = to_hex(bytes);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

Serving::Serving(const ServerOptions& options, ApiKeys keys)
    : options_(with_limits(options)),
      keys_(std::move(keys)),
      guard_(guard_options(options)),
      metrics_(std::make_unique<Metrics>(names_of(options).front())),
      names_(names_of(options)),
      created_(static_cast<std::int64_t>(wall_seconds())) {
  for (std::size_t i = 0; i < kPreparers; ++i) {
    preparers_.push_back(std::make_unique<TaskThread>());
  }
}

Serving::~Serving() {
  preparers_.clear();
  archivist_.drain();
}

void Serving::set_model(service::LoadedModel model, service::SampledTurns turns,
                        service::IssuedItemsStore items, const std::string& label,
                        const service::CompletionDefaults& defaults) {
  defaults_ = defaults;
  // Also known by the built-in name and by its folder's.
  for (const std::string& name : {std::string(kBuiltInName), label}) {
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  const std::string identity = label + model.engine().model().numerics().memory_name();
  const Sha256Digest digest = sha256(std::as_bytes(std::span(identity)));
  fingerprint_ = "fp_" + to_hex(std::span(digest).first(5)) + "_locket_kvcache";
  model_ = std::make_unique<ServedModel>(std::move(model), std::move(turns), std::move(items),
                                         options_.dispatcher);
  has_model_ = true;
  stage_ = Stage::kReady;
}

void Serving::drain() {
  stage_ = Stage::kDraining;
  if (ServedModel* served = model()) served->dispatcher.stop_admitting();
}

bool Serving::is_alive() const {
  const ServedModel* served = model();
  return served == nullptr || served->dispatcher.load().seconds_since_step < kStandstillSeconds;
}

std::size_t Serving::context_tokens() const {
  const ServedModel* served = model();
  if (served == nullptr) return options_.max_context_tokens;
  const std::size_t most = served->loaded.engine().max_positions();
  return options_.max_context_tokens == 0 ? most : std::min(most, options_.max_context_tokens);
}

MemoryNumbers Serving::memory_numbers() const {
  const ServedModel* served = model();
  if (served == nullptr) return {};
  const engine::MemoryStatus status = engine::memory_status(served->loaded.engine());
  return {.bytes_per_token = status.bytes_per_token,
          .measured_bytes_per_token = status.measured_bytes_per_token,
          .ram_used_bytes = status.ram_used_bytes,
          .ram_budget_bytes = status.ram_budget_bytes,
          .disk_used_bytes = status.disk_used_bytes,
          .disk_quota_bytes = status.disk_quota_bytes,
          .ram_evictions = status.ram_evicted_pages,
          .disk_evictions = status.disk_evicted_pages,
          .disk_corrupt = status.disk_dropped_values,
          .disk_written_bytes = status.disk_written_bytes,
          .disk_write_seconds = status.disk_write_seconds};
}

void Serving::prepare(std::function<void()> task) {
  const auto least = std::ranges::min_element(preparers_, {},
                                              [](const auto& thread) { return thread->pending(); });
  (*least)->post(std::move(task));
}

void Serving::record(const RequestRecord& record) {
  metrics_->record_request(record);
  if (record.bill) bills_.add(record.tenant, *record.bill, wall_seconds());
  if (options_.logs_requests) log_request(record);
}

}  // namespace locket::server
