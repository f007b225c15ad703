#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/open_file_limit.h"
#include "base/result.h"
#include "base/service_notice.h"
#include "cli/commands.h"
#include "cli/model_setup.h"
#include "cli/options.h"
#include "server/server.h"

namespace locket::cli {
namespace {

// Those of the memory on disk, the log and the model.
constexpr std::size_t kOtherFiles = 512;

Status set_up_log(const server::ServerOptions& options) {
  set_log_level(options.log_level);
  set_log_style(options.log_style.value_or(log_style_of_stderr()));
  return options.log_file.empty() ? Status() : log_to_file(options.log_file);
}

// Every connection is an open file, and systems begin with a limit below what is served.
void make_room_for_connections(std::size_t connections) {
  const OpenFileLimit limit = raise_open_file_limit();
  if (limit.now > limit.before) {
    log_info(fmt::format("open files: limit raised from {} to {}", limit.before, limit.now));
  }
  if (limit.now == 0 || limit.now >= connections + kOtherFiles) return;
  log_warning(
      fmt::format("open files: at most {}, too few for {} connections; raise the hard "
                  "limit (ulimit -Hn, LimitNOFILE=) to {} or lower --max-connections",
                  limit.now, connections, connections + kOtherFiles));
}

void notify(std::string_view notice) {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  if (socket == nullptr) return;
  const Status told = notify_service_manager(socket, notice);
  if (!told) log_warning(told.error().message);
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Result<service::LoadedModel> open_model(const ModelOptions& options,
                                        const LoadingProgress& on_progress) {
  LOCKET_TRY(ModelSetup setup, set_up_remembering_model(options, on_progress));
  return std::move(setup.loaded);
}

Status serve(const ServeOptions& options) {
  LOCKET_TRY_STATUS(set_up_log(options.server));
  std::unique_ptr<server::Server> server;
  // Before all other threads, which inherit that the signals are blocked.
  const InterruptWatcher watcher(
      InterruptWatcher::Signals::kInterruptAndFinish, [&server](std::size_t count) {
        log_info(count == 1 ? "shutting down; once more to end at once" : "ending now");
        if (server != nullptr) server->finish();
      });
  make_room_for_connections(options.server.http.max_connections);
  LOCKET_TRY(server, server::Server::start(options.server,
                                           [&options](const std::function<void(double)>& progress) {
                                             return open_model(options.model, progress);
                                           }));
  log_info(fmt::format("listening on {}, loading {}", server->url(), options.model.model.string()));
  Status ready = server->wait_until_ready();
  if (!ready && ready.error().code != ErrorCode::kCancelled) return ready;
  if (ready) {
    print_line(server->ready_json());
    notify("READY=1");
  }
  server->wait_until_finished();
  notify("STOPPING=1");
  log_info("everything is written; good-bye");
  return {};
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const Status status = serve(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
