// What all requests of a running server share: the model, the queue, the memory of answers, keys,
// counts. Made while the model loads; thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task_thread.h"
#include "engine/memory_overview.h"
#include "server/api_keys.h"
#include "server/bill_book.h"
#include "server/metrics.h"
#include "server/request_guard.h"
#include "server/request_record.h"
#include "server/server_options.h"
#include "server/serving_stage.h"
#include "service/dispatcher.h"
#include "service/issued_items_store.h"
#include "service/loaded_model.h"
#include "service/sampled_turns.h"

namespace locket::server {

// A model that is ready, with everything that lives as long as it.
struct ServedModel {
  ServedModel(service::LoadedModel model, service::SampledTurns turns,
              service::IssuedItemsStore items, const service::DispatcherOptions& options)
      : loaded(std::move(model)),
        sampled_turns(std::move(turns)),
        issued_items(std::move(items)),
        watch(loaded.engine().memory()),
        dispatcher(loaded, options) {}

  service::LoadedModel loaded;
  service::SampledTurns sampled_turns;
  service::IssuedItemsStore issued_items;
  engine::MemoryWatch watch;
  service::Dispatcher dispatcher;  // must go first
};

class Serving {
 public:
  using Stage = ServingStage;

  Serving(const ServerOptions& options, ApiKeys keys);
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  ~Serving();

  const ServerOptions& options() const { return options_; }
  const ApiKeys& keys() const { return keys_; }
  const RequestGuard& guard() const { return guard_; }
  Metrics& metrics() { return *metrics_; }
  BillBook& bills() { return bills_; }

  Stage stage() const { return stage_; }
  // 0 to 1.
  double loading_progress() const { return loading_progress_; }
  void set_loading_progress(double progress) { loading_progress_ = progress; }
  // The model is there: requests are taken from now on. `label`: the name of its folder, under
  // which it is also known. Called once.
  void set_model(service::LoadedModel model, service::SampledTurns turns,
                 service::IssuedItemsStore items, const std::string& label,
                 const service::CompletionDefaults& defaults);
  void set_failed() { stage_ = Stage::kFailed; }
  // No new requests.
  void drain();
  // Whether the model gets on with what there is to do: false if it stands still.
  bool is_alive() const;

  // Null until set_model().
  ServedModel* model() const { return has_model_ ? model_.get() : nullptr; }
  // Sampling of requests that do not say. REQUIRES: model() is there.
  const service::CompletionDefaults& sampling_defaults() const { return defaults_; }
  // Names under which the model is asked for; the first is the one that answers name.
  const std::vector<std::string>& names() const { return names_; }
  std::int64_t created() const { return created_; }
  const std::string& fingerprint() const { return fingerprint_; }
  // Tokens of prompt and answer together.
  std::size_t context_tokens() const;
  MemoryNumbers memory_numbers() const;

  // Parsing and rendering, which take time in proportion to what a client sends: on threads of
  // their own, in turn.
  void prepare(std::function<void()> task);
  // What writes to disk, in order.
  void archive(std::function<void()> task) { archivist_.post(std::move(task)); }

  // Into metrics, bills and log.
  void record(const RequestRecord& record);

 private:
  ServerOptions options_;
  ApiKeys keys_;
  RequestGuard guard_;
  std::unique_ptr<Metrics> metrics_;
  BillBook bills_;
  std::atomic<Stage> stage_ = Stage::kLoading;
  std::atomic<double> loading_progress_ = 0;
  std::atomic<bool> has_model_ = false;
  std::vector<std::string> names_;
  std::int64_t created_;
  std::string fingerprint_;
  service::CompletionDefaults defaults_;
  std::unique_ptr<ServedModel> model_;
  std::vector<std::unique_ptr<TaskThread>> preparers_;
  TaskThread archivist_;  // must go before what it writes to
};

// 32 random hexadecimal digits with dashes, as UUIDs are written (version 4).
std::string random_uuid();

}  // namespace locket::server
