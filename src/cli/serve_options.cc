#include "cli/serve_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "cli/byte_size.h"
#include "cli/common_options.h"
#include "cli/setting_options.h"

namespace locket::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMostRequests = 1'000'000;
constexpr double kLongestSeconds = 86'400;
constexpr const char* kServeFooter =
    "Every flag can also be set by a variable (--max-queue by LOCKET_MAX_QUEUE), and in the\n"
    "file of --config (max-queue = 100). Flags win over variables, variables over the file.\n"
    "Example:\n  locket serve --port 8000 --api-key-file keys.txt";

struct Word {
  std::string_view found;
  std::string_view known;
};
// The parser would read them as -n p, -t o and an unknown -t.
constexpr std::array<Word, 3> kShortNames = {
    {{"-np", "--parallel"}, {"-to", "--timeout"}, {"-t", "--threads"}}};

// Flags of other servers for what is always so here, and their help.
constexpr std::array<Word, 4> kAcceptedFlags = {
    {{"--metrics", "/metrics, in the format of Prometheus"},
     {"--enable-prefix-caching,--cache-prompt", "prompts are remembered"},
     {"--enable-auto-tool-choice", "the model may call tools"},
     {"--offline", "nothing is fetched from anywhere"}}};

// Flags of other servers that mean nothing here, and what to do instead.
constexpr std::array<Word, 12> kForeignFlags = {
    {{"--gpu-memory-utilization", "the memory in RAM is --memory-budget SIZE"},
     {"--no-enable-prefix-caching", "the memory on disk is switched off by --memory off"},
     {"--kv-disk-dir", "the memory on disk is --memory DIR"},
     {"--kv-disk-space-mb", "the memory on disk is limited by --memory-quota SIZE"},
     {"--slot-save-path", "the memory on disk is --memory DIR; locket cache shows and ships it"},
     {"--chat-template", "the chat format of the model is built in"},
     {"--chat-template-file", "the chat format of the model is built in"},
     {"--tool-call-parser", "the chat format of the model is built in"},
     {"--reasoning-parser", "the chat format of the model is built in"},
     {"--reasoning-format", "the chat format of the model is built in"},
     {"--ssl-key-file", "TLS belongs to a proxy in front of the server"},
     {"--ssl-cert-file", "TLS belongs to a proxy in front of the server"}}};

CLI::Option& add_seconds(CLI::App& command, const std::string& names, milliseconds& target,
                         const std::string& help) {
  return *command
              .add_option_function<double>(
                  names,
                  [&target](const double& seconds) {
                    target = milliseconds(std::llround(seconds * 1000));
                  },
                  help)
              ->check(in_range(0.0, kLongestSeconds))
              ->type_name("SECONDS");
}

CLI::Option& add_count(CLI::App& command, const std::string& names, std::size_t& target,
                       const std::string& help) {
  return *command.add_option(names, target, help)->type_name("N");
}

CLI::Option& add_list(CLI::App& command, const std::string& names, std::vector<std::string>& target,
                      const std::string& help) {
  return *command.add_option(names, target, help)->allow_extra_args(false);
}

std::string origin_fault(const std::string& text) {
  const Status status = server::check_origin(text);
  return status ? "" : status.error().message;
}

void add_network(CLI::App& command, server::ServerOptions& options) {
  server::HttpServerOptions& http = options.http;
  command.option_defaults()->group("Network");
  command.add_option("--host", http.host, "address to listen at (default 127.0.0.1)")
      ->type_name("HOST");
  command.add_option("--port", http.port, "0: any that is free (default 8000)")
      ->check(in_range(0, 65535))
      ->type_name("N");
  add_count(command, "--threads-http", http.io_threads, "threads for connections (default 1)")
      .check(in_range<std::int64_t>(1, 64));
  add_count(command, "--max-connections", http.max_connections,
            "open at a time; one more is answered 503 (default 4096)")
      .check(in_range(std::int64_t{1}, kMostRequests));
  command
      .add_option("--max-body", http.max_body_bytes,
                  "longest request, as in 512K or 48M (default 48M)")
      ->transform(CLI::Validator(read_size, ""))
      ->type_name("SIZE");
  command
      .add_option_function<double>(
          "--timeout",
          [&http](const double& seconds) {
            http.body_timeout = milliseconds(std::llround(seconds * 1000));
            http.write_timeout = http.body_timeout;
          },
          "-to: how long a client may send nothing of a request (default 30), or\n"
          "take nothing of an answer (default 60)")
      ->check(in_range(0.1, kLongestSeconds))
      ->type_name("SECONDS");
  add_seconds(command, "--idle-timeout", http.idle_timeout,
              "how long a connection stays open without a request (default 75)");
  add_seconds(command, "--sse-ping-interval", options.keep_alive_interval,
              "a sign of life in a stream that has nothing to say (default 10)")
      .check(in_range(1.0, 300.0));
  add_seconds(command, "--shutdown-timeout", options.shutdown_timeout,
              "how long answers may take to end after SIGTERM or Ctrl-C; a second\n"
              "one ends them at once (default 0: at once)");
}

void add_access(CLI::App& command, server::ServerOptions& options) {
  command.option_defaults()->group("Access");
  add_list(command, "--api-key", options.api_keys,
           "KEY or NAME:KEY, several with commas. Others can read the command line:\n"
           "better a file, or LOCKET_API_KEY")
      .type_name("KEY");
  command
      .add_option("--api-key-file", options.api_key_file,
                  "KEY, NAME:KEY or NAME:sha256:HEX on each line, # before comments")
      ->type_name("FILE");
  command
      .add_option("--admin-key-file", options.admin_key_file,
                  "the one key of actions that change the server (default: they are off);\n"
                  "or LOCKET_ADMIN_KEY")
      ->type_name("FILE");
  command.add_option("--admin-key", options.admin_key, "the same on the command line")
      ->type_name("KEY")
      ->group("");
  add_list(command, "--allowed-host", options.allowed_hosts,
           "a name, besides localhost, under which the server is asked for")
      .delimiter(',')
      ->type_name("NAME");
  add_list(command, "--cors", options.cors_origins,
           "a page that may ask, as https://app.example, or * for all (default: none)")
      .delimiter(',')
      ->check(CLI::Validator(origin_fault, ""))
      ->type_name("ORIGIN");
  add_count(command, "--max-requests-per-key", options.max_requests_per_key,
            "of one API key at a time (default 0: no limit)")
      .check(in_range(std::int64_t{0}, kMostRequests));
}

void add_serving(CLI::App& command, server::ServerOptions& options) {
  service::DispatcherOptions& dispatcher = options.dispatcher;
  command.option_defaults()->group("Serving");
  add_list(command, "--served-model-name,--alias", options.served_names,
           "what the model is called, several with commas; the first one answers")
      .delimiter(',')
      ->type_name("NAME");
  add_count(command, "-c,--max-model-len,--ctx-size,--ctx", options.max_context_tokens,
            "longest prompt and answer together, in tokens (default 0: what fits)")
      .check(in_range(std::int64_t{0}, kMostTokens));
  add_count(command, "--max-num-seqs,--parallel", dispatcher.max_running,
            "-np: answers that are worked on at a time (default 256)")
      .check(in_range<std::int64_t>(1, 65536));
  add_count(command, "--max-queue", dispatcher.max_queued,
            "requests that wait; one more is refused (default 1024)")
      .check(in_range(std::int64_t{0}, kMostRequests));
  add_count(command, "-b,--max-num-batched-tokens,--batch-size", dispatcher.prompt_tokens_per_step,
            "prompt tokens of a step of the model (default 512)")
      .check(in_range<std::int64_t>(1, 1 << 20));
  command
      .add_option_function<std::string>(
          "--sampling",
          [&options](const std::string& name) {
            options.sampling =
                name == "compat" ? server::SamplingMode::kCompat : server::SamplingMode::kLocal;
          },
          "local: requests are obeyed (default); compat: as the hosted service,\n"
          "where thinking ignores temperature")
      ->check(one_of({"local", "compat"}))
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--prices",
          [&options](const std::string& text) {
            const auto prices = server::read_prices(text);
            if (!prices) throw CLI::ValidationError("--prices", prices.error().message);
            options.prices = *prices;
          },
          "dollars per million tokens for the bills that are shown: published\n"
          "(default), off, hit=0.003,miss=0.15,output=0.60,peak=2 or FILE.json")
      ->type_name("LIST");
  command.add_flag("--pad-json", options.pads_waiting_json,
                   "blank lines keep connections alive while answers without a stream are\n"
                   "worked on; errors then come with status 200");
  command.add_flag("--openai-usage-chunk", options.openai_usage_chunk,
                   "chat streams: usage in a last chunk of its own");
}

void add_log(CLI::App& command, server::ServerOptions& options) {
  command.option_defaults()->group("Log");
  command.add_option("--log-file", options.log_file, "lines go there instead of stderr")
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--log-style",
          [&options](const std::string& name) {
            options.log_style = name == "json" ? LogStyle::kJson : LogStyle::kText;
          },
          "text or json (default: text on a terminal, else json)")
      ->check(one_of({"text", "json"}))
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--log-level",
          [&options](const std::string& name) {
            options.log_level = name == "debug"     ? LogLevel::kDebug
                                : name == "info"    ? LogLevel::kInfo
                                : name == "warning" ? LogLevel::kWarning
                                                    : LogLevel::kError;
          },
          "debug, info (default), warning or error")
      ->check(one_of({"debug", "info", "warning", "error"}))
      ->type_name("NAME");
  command.add_flag_callback(
      "--disable-log-requests", [&options] { options.logs_requests = false; },
      "no record of each request");
}

// What other servers ask for and this one always does, and what it never does.
void add_foreign(CLI::App& command) {
  command.option_defaults()->group("Accepted, always on");
  for (const Word& flag : kAcceptedFlags) {
    const std::string help(flag.known);
    command.add_flag(std::string(flag.found), help);
  }
  command.option_defaults()->group("");
  for (const Word& flag : kForeignFlags) {
    const std::string name(flag.found);
    command
        .add_option_function<std::string>(name,
                                          [flag](const std::string&) {
                                            throw CLI::ValidationError(
                                                std::string(flag.found),
                                                fmt::format("not an option here: {}", flag.known));
                                          })
        ->expected(0, 1);
  }
}

}  // namespace

void add_serve(CLI::App& app, ServeOptions& options) {
  CLI::App& command = add_command(
      app, "serve", "a server that speaks the OpenAI and Anthropic APIs", "locket serve");
  command.footer(kServeFooter);
  add_model_options(command, options.model);
  add_memory_options(command, options.model);
  CLI::Option* const model = command.get_option("MODEL");
  // Else the help would say here what it excludes.
  model->option_text(" ");
  command.add_option("-m,--model", options.model.model, "another way to write MODEL")
      ->option_text("FOLDER")
      ->group("Model")
      ->excludes(model);
  add_network(command, options.server);
  add_access(command, options.server);
  add_serving(command, options.server);
  add_log(command, options.server);
  command.option_defaults()->group("Settings");
  command.add_option("--config", options.config, "a file of settings")->type_name("FILE");
  add_foreign(command);
  command.callback([&command] { apply_settings(command); });
}

std::vector<std::string> known_words(std::vector<std::string> words) {
  if (words.empty() || words.front() != "serve") return words;
  for (std::string& word : words) {
    if (word == "--") break;
    const auto* const name = std::ranges::find(kShortNames, word, &Word::found);
    if (name != kShortNames.end()) word = name->known;
    if (!word.starts_with("--")) continue;
    const std::size_t end = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  }
  return words;
}

}  // namespace locket::cli
