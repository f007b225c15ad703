// Everything about a server that can be chosen, with its defaults. Plain data; the command line
// fills it from flags, environment and a file.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "server/api_keys.h"
#include "server/http_server.h"
#include "server/prices.h"
#include "server/request_guard.h"
#include "service/dispatcher.h"

namespace locket::server {

enum class SamplingMode {
  kLocal,   // requests are obeyed
  kCompat,  // as the hosted service: thinking ignores temperature and penalties, and so on
  kCount
};

struct ServerOptions {
  HttpServerOptions http;
  service::DispatcherOptions dispatcher;

  // Who may ask. Entries are those of api_keys.h.
  std::vector<std::string> api_keys;
  std::filesystem::path api_key_file;  // empty: none
  std::string admin_key;               // empty: none
  std::filesystem::path admin_key_file;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> cors_origins;
  std::size_t max_requests_per_key = 0;  // at a time; 0: no limit

  // What is served.
  std::vector<std::string> served_names;  // the first is the one that answers name; empty: built in
  std::size_t max_context_tokens = 0;     // 0: what model and memory hold
  SamplingMode sampling = SamplingMode::kLocal;
  std::optional<Prices> prices = Prices{};  // none: no bills

  std::chrono::milliseconds keep_alive_interval{10'000};
  // Blank lines before the JSON of an answer that takes long; its status is sent before it is
  // known.
  bool pads_waiting_json = false;
  bool openai_usage_chunk = false;  // chat streams: usage in a chunk of its own, as OpenAI does
  // How long answers in flight may take after SIGTERM; a second signal, or 0, ends them at once.
  std::chrono::milliseconds shutdown_timeout{0};

  std::filesystem::path log_file;     // empty: stderr
  std::optional<LogStyle> log_style;  // none: text on a terminal, else JSON
  LogLevel log_level = LogLevel::kInfo;
  bool logs_requests = true;
  std::chrono::milliseconds rates_interval{5'000};  // of the line with rates, in text
};

// The keys that the options name, in files too; files that others can read are warned of. Errors
// as in api_keys.h, and check_bind()'s.
[[nodiscard]] Result<ApiKeys> make_api_keys(const ServerOptions& options);

GuardOptions guard_options(const ServerOptions& options);

}  // namespace locket::server
