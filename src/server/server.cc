#include "server/server.h"

#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/system_memory.h"
#include "base/task_thread.h"
#include "engine/memory_status.h"
#include "engine/model_memory.h"
#include "server/api_handler.h"
#include "server/http_server.h"
#include "server/request_log.h"
#include "server/serving.h"
#include "service/generation_config.h"

namespace locket::server {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);

// Answers that requests may refer to; without a usable file they are kept in memory only.
template <class Store>
Result<Store> open_kept(const service::KeptOptions& options, std::string_view what) {
  Result<Store> store = Store::open(options);
  if (store || options.memory.empty()) return store;
  log_warning(
      fmt::format("{} are forgotten when the server ends: {}", what, store.error().message));
  service::KeptOptions without_file = options;
  without_file.memory.clear();
  return Store::open(without_file);
}

// What has been done so far, to see whether more is.
struct Activity {
  std::uint64_t steps = 0;
  std::size_t connections = 0;
  friend bool operator==(const Activity&, const Activity&) = default;
};

}  // namespace

struct Server::State {
  State(const ServerOptions& options, ApiKeys keys, OpenModel open)
      : serving(options, std::move(keys)), handler(serving), open_model(std::move(open)) {}

  // On the loader's thread.
  void load();
  [[nodiscard]] Status take(service::LoadedModel model);
  // On the keeper's thread: looks after what runs until it is over.
  void keep_watch();
  bool is_drained(double now) const;
  void log_rates(double now);
  void give_memory_back();

  Serving serving;
  ApiHandler handler;
  OpenModel open_model;

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> loaded;  // none: not yet
  std::size_t finish_calls = 0;
  double finish_time = 0;
  bool is_over = false;

  Activity last_seen;   // by give_memory_back()
  Activity given_back;  // what had been done when freed memory last went back to the system
  double rates_time = 0;
  service::DispatcherLoad rates_load;

  std::unique_ptr<HttpServer> http;  // must go before what it answers from
  TaskThread keeper;
  TaskThread loader;
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, OpenModel open_model) {
  LOCKET_TRY(ApiKeys keys, make_api_keys(options));
  auto state = std::make_unique<State>(options, std::move(keys), std::move(open_model));
  LOCKET_TRY(state->http, HttpServer::start(options.http, state->handler));
  state->loader.post([state = state.get()] { state->load(); });
  state->keeper.post([state = state.get()] { state->keep_watch(); });
  return std::make_unique<Server>(std::move(state));
}

Server::~Server() {
  finish();
  finish();
  state_->loader.drain();
  wait_until_finished();
  state_->http.reset();
}

std::uint16_t Server::port() const { return state_->http->port(); }

std::string Server::url() const {
  const std::string& host = state_->serving.options().http.host;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("http://[{}]:{}", host, port())
                 : fmt::format("http://{}:{}", host, port());
}

void Server::State::load() {
  Result<service::LoadedModel> model =
      open_model([this](double share) { serving.set_loading_progress(share); });
  Status status = model ? take(std::move(*model)) : tl::make_unexpected(model.error());
  if (!status) serving.set_failed();
  {
    const std::lock_guard lock(mutex);
    loaded = std::move(status);
  }
  changed.notify_all();
}

Status Server::State::take(service::LoadedModel model) {
  const std::filesystem::path folder = model.engine().checkpoint().folder();
  const service::KeptOptions kept = {.memory = engine::memory_folder(model.engine()),
                                     .model = service::answers_identity(model)};
  LOCKET_TRY(service::SampledTurns turns,
             open_kept<service::SampledTurns>(kept, "the tokens of answers with calls"));
  LOCKET_TRY(service::IssuedItemsStore items,
             open_kept<service::IssuedItemsStore>(kept, "items of answers"));
  LOCKET_TRY(const service::CompletionDefaults defaults, service::read_generation_config(folder));
  serving.set_model(std::move(model), std::move(turns), std::move(items),
                    engine::model_label(folder), defaults);
  return {};
}

Status Server::wait_until_ready() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->loaded || state_->finish_calls > 0; });
  if (state_->loaded) return *state_->loaded;
  return fail(ErrorCode::kCancelled, "stopped while the model was loading");
}

void Server::finish() {
  {
    const std::lock_guard lock(state_->mutex);
    if (++state_->finish_calls == 1) state_->finish_time = monotonic_seconds();
  }
  state_->changed.notify_all();
}

bool Server::State::is_drained(double now) const {
  const ServedModel* served = serving.model();
  const double timeout = std::chrono::duration<double>(serving.options().shutdown_timeout).count();
  if (finish_calls > 1 || now - finish_time >= timeout) return true;
  return (served == nullptr || served->dispatcher.is_idle()) && http->load().open_exchanges == 0;
}

void Server::State::log_rates(double now) {
  const ServedModel* served = serving.model();
  const double interval = std::chrono::duration<double>(serving.options().rates_interval).count();
  const bool wants_rates = served != nullptr && interval > 0 && log_style() == LogStyle::kText;
  if (!wants_rates || now - rates_time < interval) return;
  const service::DispatcherLoad load = served->dispatcher.load();
  const std::string line = rates_text(rates_load, load, now - rates_time, serving.memory_numbers());
  rates_time = now;
  rates_load = load;
  if (!line.empty()) log_info(line);
}

// After a crowd has gone the allocator and the pages of the memory would keep what it needed. The
// last connections end some time after the last answer: so not before nothing has changed from one
// look to the next.
void Server::State::give_memory_back() {
  ServedModel* served = serving.model();
  if (served == nullptr || !served->dispatcher.is_idle()) return;
  const Activity seen = {.steps = served->dispatcher.load().steps,
                         .connections = http->load().connections};
  const bool is_quiet = seen == last_seen;
  last_seen = seen;
  if (!is_quiet || seen == given_back) return;
  given_back = seen;
  served->loaded.engine().pool().give_back_free_memory();
  return_freed_memory();
}

void Server::State::keep_watch() {
  rates_time = monotonic_seconds();
  std::unique_lock lock(mutex);
  while (finish_calls == 0) {
    changed.wait_for(lock, std::chrono::seconds(1));
    lock.unlock();
    log_rates(monotonic_seconds());
    give_memory_back();
    lock.lock();
  }
  lock.unlock();
  serving.drain();  // new requests are told so, and probes see it
  lock.lock();
  while (!is_drained(monotonic_seconds())) changed.wait_for(lock, kLook);
  lock.unlock();
  http->stop_listening();
  if (ServedModel* served = serving.model()) {
    served->dispatcher.cancel_all();
    while (!served->dispatcher.is_idle()) {
      lock.lock();
      changed.wait_for(lock, kLook);
      lock.unlock();
    }
    if (served->loaded.engine().memory() != nullptr) served->loaded.engine().memory()->flush();
  }
  lock.lock();
  is_over = true;
  lock.unlock();
  changed.notify_all();
}

void Server::wait_until_finished() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_over; });
}

std::string Server::ready_json() const {
  const Serving& serving = state_->serving;
  return nlohmann::ordered_json(
             {{"event", "ready"},
              {"url", url()},
              {"model", serving.names().front()},
              {"models", serving.names()},
              {"max_model_len", serving.context_tokens()},
              {"memory", engine::memory_folder(serving.model()->loaded.engine()).string()}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace locket::server
