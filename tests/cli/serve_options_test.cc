// What `locket serve` takes, from the command line, the environment and a file of settings.
#include "cli/serve_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "cli/setting_options.h"

namespace locket::cli {
namespace {

using Words = std::vector<std::string>;
using Values = std::map<std::string, std::string>;
using std::chrono::milliseconds;

struct Answer {
  ServeOptions options;
  std::string fault;  // empty: none
};

Answer parse(Words words) {
  words.insert(words.begin(), "serve");
  words = known_words(std::move(words));
  std::ranges::reverse(words);
  Answer answer;
  CLI::App app{"", "locket"};
  add_serve(app, answer.options);
  try {
    app.parse(std::move(words));
  } catch (const CLI::Error& error) {
    answer.fault = error.what();
  }
  return answer;
}

ServeOptions parsed(const Words& words) {
  Answer answer = parse(words);
  EXPECT_EQ(answer.fault, "") << testing::PrintToString(words);
  return std::move(answer.options);
}

void expect_refused(const Words& words, const Words& parts) {
  const Answer answer = parse(words);
  EXPECT_NE(answer.fault, "") << testing::PrintToString(words);
  for (const std::string& part : parts) {
    EXPECT_NE(answer.fault.find(part), std::string::npos) << answer.fault;
  }
}

// Variables of this process, as long as the object lives.
class Variables {
 public:
  explicit Variables(const Values& values) {
    for (const auto& [name, value] : values) {
      ::setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

class SettingFile {
 public:
  explicit SettingFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("locket_settings_" + std::to_string(::getpid()))) {
    EXPECT_TRUE(write_whole_file(path_, std::as_bytes(std::span(text))));
  }
  SettingFile(const SettingFile&) = delete;
  SettingFile& operator=(const SettingFile&) = delete;
  ~SettingFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(ServeOptionsTest, ListensToThisMachineOnlyUnlessTold) {
  const server::ServerOptions options = parsed({}).server;
  EXPECT_EQ(options.http.host, "127.0.0.1");
  EXPECT_EQ(options.http.port, 8000);
  EXPECT_TRUE(options.api_keys.empty());
  EXPECT_TRUE(options.cors_origins.empty());
  EXPECT_EQ(options.keep_alive_interval, milliseconds(10'000));
  EXPECT_EQ(options.shutdown_timeout, milliseconds(0));
  EXPECT_EQ(options.sampling, server::SamplingMode::kLocal);
  EXPECT_EQ(options.prices, server::Prices{});
  EXPECT_FALSE(options.log_style.has_value());
  EXPECT_TRUE(options.logs_requests);
}

TEST(ServeOptionsTest, TakesTheFlagsOfVllm) {
  const ServeOptions options = parsed(
      {"model", "--host", "0.0.0.0", "--port", "9000", "--api-key", "sk-1", "--served-model-name",
       "a,b", "--max-model-len", "4096", "--max-num-seqs", "16", "--max-num-batched-tokens", "2048",
       "--enable-prefix-caching", "--enable-auto-tool-choice", "--shutdown-timeout", "15"});
  EXPECT_EQ(options.model.model, "model");
  EXPECT_EQ(options.server.http.host, "0.0.0.0");
  EXPECT_EQ(options.server.http.port, 9000);
  EXPECT_EQ(options.server.api_keys, Words{"sk-1"});
  EXPECT_EQ(options.server.served_names, (Words{"a", "b"}));
  EXPECT_EQ(options.server.max_context_tokens, 4096U);
  EXPECT_EQ(options.server.dispatcher.max_running, 16U);
  EXPECT_EQ(options.server.dispatcher.prompt_tokens_per_step, 2048U);
  EXPECT_EQ(options.server.shutdown_timeout, milliseconds(15'000));
}

TEST(ServeOptionsTest, TakesTheFlagsOfLlamaCpp) {
  const ServeOptions options = parsed({"-m",
                                       "model",
                                       "-c",
                                       "8192",
                                       "-np",
                                       "4",
                                       "-to",
                                       "0.5",
                                       "-t",
                                       "3",
                                       "-b",
                                       "64",
                                       "--alias",
                                       "a",
                                       "--api-key-file",
                                       "keys",
                                       "--threads-http",
                                       "2",
                                       "--metrics",
                                       "--sse-ping-interval",
                                       "5",
                                       "--log-file",
                                       "log",
                                       "--cache-prompt",
                                       "--offline"});
  EXPECT_EQ(options.model.model, "model");
  EXPECT_EQ(options.model.threads, 3U);
  EXPECT_EQ(options.server.max_context_tokens, 8192U);
  EXPECT_EQ(options.server.dispatcher.max_running, 4U);
  EXPECT_EQ(options.server.dispatcher.prompt_tokens_per_step, 64U);
  EXPECT_EQ(options.server.http.body_timeout, milliseconds(500));
  EXPECT_EQ(options.server.http.write_timeout, milliseconds(500));
  EXPECT_EQ(options.server.served_names, Words{"a"});
  EXPECT_EQ(options.server.api_key_file, "keys");
  EXPECT_EQ(options.server.http.io_threads, 2U);
  EXPECT_EQ(options.server.keep_alive_interval, milliseconds(5'000));
  EXPECT_EQ(options.server.log_file, "log");
}

TEST(ServeOptionsTest, TakesItsOwnFlags) {
  const server::ServerOptions options = parsed({"--cors",
                                                "https://a.example,http://localhost:3000",
                                                "--cors",
                                                "https://b.example",
                                                "--allowed-host",
                                                "locket.example",
                                                "--admin-key-file",
                                                "admin",
                                                "--max-queue",
                                                "0",
                                                "--max-requests-per-key",
                                                "8",
                                                "--max-body",
                                                "1M",
                                                "--max-connections",
                                                "10",
                                                "--idle-timeout",
                                                "1",
                                                "--sampling",
                                                "compat",
                                                "--prices",
                                                "hit=1",
                                                "--pad-json",
                                                "--openai-usage-chunk",
                                                "--log-style",
                                                "json",
                                                "--log-level",
                                                "warning",
                                                "--disable-log-requests"})
                                            .server;
  EXPECT_EQ(options.cors_origins,
            (Words{"https://a.example", "http://localhost:3000", "https://b.example"}));
  EXPECT_EQ(options.allowed_hosts, Words{"locket.example"});
  EXPECT_EQ(options.admin_key_file, "admin");
  EXPECT_EQ(options.dispatcher.max_queued, 0U);
  EXPECT_EQ(options.max_requests_per_key, 8U);
  EXPECT_EQ(options.http.max_body_bytes, 1U << 20);
  EXPECT_EQ(options.http.max_connections, 10U);
  EXPECT_EQ(options.http.idle_timeout, milliseconds(1000));
  EXPECT_EQ(options.sampling, server::SamplingMode::kCompat);
  EXPECT_EQ(options.prices->hit, 1);
  EXPECT_TRUE(options.pads_waiting_json);
  EXPECT_TRUE(options.openai_usage_chunk);
  EXPECT_EQ(options.log_style, LogStyle::kJson);
  EXPECT_EQ(options.log_level, LogLevel::kWarning);
  EXPECT_FALSE(options.logs_requests);
  EXPECT_FALSE(parsed({"--prices", "off"}).server.prices.has_value());
}

TEST(ServeOptionsTest, UnderscoresAreDashesInNamesAndStayInValues) {
  const ServeOptions options =
      parsed({"--max_num_seqs=5", "--served_model_name", "a_b", "--api_key=k_1"});
  EXPECT_EQ(options.server.dispatcher.max_running, 5U);
  EXPECT_EQ(options.server.served_names, Words{"a_b"});
  EXPECT_EQ(options.server.api_keys, Words{"k_1"});
  EXPECT_EQ(known_words({"run", "--max_tokens", "-np"}), (Words{"run", "--max_tokens", "-np"}));
}

TEST(ServeOptionsTest, RefusesWhatIsWrongByName) {
  expect_refused({"--port", "65536"}, {"--port", "65535"});
  expect_refused({"--port", "-1"}, {"--port"});
  expect_refused({"--max-num-seqs", "0"}, {"--max-num-seqs"});
  expect_refused({"--sse-ping-interval", "0"}, {"--sse-ping-interval", "300"});
  expect_refused({"--timeout", "soon"}, {"--timeout"});
  expect_refused({"--cors", "app.example"}, {"--cors", "https://app.example"});
  expect_refused({"--prices", "cheap"}, {"--prices", "published"});
  expect_refused({"--sampling", "wild"}, {"--sampling"});
  expect_refused({"--max-body", "4X"}, {"--max-body"});
  expect_refused({"--log-style", "xml"}, {"--log-style"});
  expect_refused({"--loud"}, {"--loud"});
  expect_refused({"one", "-m", "two"}, {"MODEL", "--model"});
}

TEST(ServeOptionsTest, FlagsOfOthersThatMeanNothingHereGetAHint) {
  expect_refused({"--gpu-memory-utilization", "0.9"}, {"--gpu-memory-utilization", "--memory-bud"});
  expect_refused({"--tool_call_parser", "deepseek"}, {"--tool-call-parser", "built in"});
  expect_refused({"--no-enable-prefix-caching"}, {"--memory off"});
  expect_refused({"--ssl-key-file", "key"}, {"proxy"});
}

TEST(ServeOptionsTest, FlagsWinOverVariablesAndTheseOverTheFile) {
  const SettingFile file(
      "port = 1\nmax-queue = 2\nmax_num_seqs = 3\nthreads = 4\n"
      "cors = [\"https://a.example\", \"https://b.example\"]\nmetrics = true\n"
      "pad-json = false\nmemory = \"off\"\nmodel = \"from_file\"\n");
  const Variables variables(
      {{"LOCKET_PORT", "10"}, {"LOCKET_MAX_QUEUE", "20"}, {"LOCKET_THREADS", ""}});
  const ServeOptions options = parsed({"--port", "100", "--config", file.path()});
  EXPECT_EQ(options.server.http.port, 100);
  EXPECT_EQ(options.server.dispatcher.max_queued, 20U);
  EXPECT_EQ(options.server.dispatcher.max_running, 3U);
  EXPECT_EQ(options.model.threads, 4U);
  EXPECT_EQ(options.server.cors_origins, (Words{"https://a.example", "https://b.example"}));
  EXPECT_FALSE(options.server.pads_waiting_json);
  EXPECT_EQ(options.model.memory, "off");
  EXPECT_EQ(options.model.model, "from_file");
  EXPECT_EQ(parsed({"typed", "--config", file.path()}).model.model, "typed");
  EXPECT_EQ(parsed({"-m", "typed", "--config", file.path()}).model.model, "typed");
}

TEST(ServeOptionsTest, VariablesNameKeysAndTheFile) {
  const SettingFile file("port = 7\n");
  const Variables variables({{"LOCKET_CONFIG", file.path()},
                             {"LOCKET_API_KEY", "ann:sk-1,sk-2"},
                             {"LOCKET_ADMIN_KEY", "sk-3"},
                             {"LOCKET_CORS", "https://a.example,https://b.example"},
                             {"LOCKET_SERVED_MODEL_NAME", "a"},
                             {"LOCKET_PAD_JSON", "true"}});
  const server::ServerOptions options = parsed({}).server;
  EXPECT_EQ(options.http.port, 7);
  EXPECT_EQ(options.api_keys, Words{"ann:sk-1,sk-2"});
  EXPECT_EQ(options.admin_key, "sk-3");
  EXPECT_EQ(options.cors_origins, (Words{"https://a.example", "https://b.example"}));
  EXPECT_EQ(options.served_names, Words{"a"});
  EXPECT_TRUE(options.pads_waiting_json);
}

TEST(ServeOptionsTest, ModelAndMemoryKeepTheirOwnVariables) {
  const Variables variables({{"LOCKET_MODEL", "small"}, {"LOCKET_MEMORY", "folder"}});
  const ServeOptions options = parsed({});
  EXPECT_EQ(options.model.model, "");
  EXPECT_EQ(options.model.memory, "");
}

TEST(ServeOptionsTest, WrongSettingsNameWhereTheyStand) {
  {
    const Variables variables(Values{{"LOCKET_PORT", "many"}});
    expect_refused({}, {"LOCKET_PORT", "\"many\"", "65535"});
  }
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"max-queue = -1", "--max-queue"},     {"colour = 1", "\"colour\""},
      {"help = true", "\"help\""},           {"config = \"x\"", "\"config\""},
      {"port = [1, 2]", "2 values"},         {"port = []", "0 values"},
      {"chat-template = \"x\"", "built in"}, {"[serve]", "no tables"}};
  for (const auto& [line, part] : rows) {
    const SettingFile file("\n" + line + "\n");
    expect_refused({"--config", file.path()}, {file.path() + ", line 2", part});
  }
  expect_refused({"--config", "/nowhere/locket.toml"}, {"--config", "/nowhere/locket.toml"});
}

TEST(ServeOptionsTest, EveryFlagHasAVariable) {
  EXPECT_EQ(variable_name("max-num-seqs"), "LOCKET_MAX_NUM_SEQS");
  EXPECT_EQ(variable_name("--api-key"), "LOCKET_API_KEY");
}

}  // namespace
}  // namespace locket::cli
