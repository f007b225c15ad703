#include "stream_load/loaded_server.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "tests/support/http_client.h"

namespace locket::stream_load {
namespace {

constexpr double kMostIdleSeconds = 120;
constexpr std::string_view kScheme = "http://";

Result<Address> address_of(std::string_view url) {
  Address address;
  std::string_view rest = url.substr(std::min(url.size(), kScheme.size()));
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t colon = rest.find(':');
  if (url.starts_with(kScheme) && colon != std::string_view::npos) {
    address.host = rest.substr(0, colon);
    const std::string_view port = rest.substr(colon + 1);
    const auto read = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (read.ec == std::errc() && read.ptr == port.data() + port.size()) return address;
  }
  return fail(ErrorCode::kBadRequest,
              fmt::format("\"{}\": expected a URL like http://127.0.0.1:8000", url));
}

}  // namespace

Result<LoadedServer> LoadedServer::start(const Options& options) {
  const std::string streams = std::to_string(options.streams + 64);
  LOCKET_TRY(
      ChildProcess process,
      ChildProcess::start(
          {"serve", LOCKET_MODELS "/mini", "--port", "0", "--memory", "off", "--memory-budget",
           std::to_string(options.memory_mib) + "M", "--threads", std::to_string(options.threads),
           "--max-num-seqs", std::to_string(options.running), "--max-queue", streams,
           "--max-connections", streams, "--disable-log-requests", "--log-level", "warning"}));
  LOCKET_TRY(const std::string line, process.read_line());
  const auto ready = nlohmann::json::parse(line, nullptr, false);
  if (!ready.is_object() || !ready.contains("url")) {
    return fail(ErrorCode::kIo, fmt::format("the server is not ready but says: {}", line));
  }
  LOCKET_TRY(Address address, address_of(ready["url"].get<std::string>()));
  return LoadedServer(std::move(process), std::move(address));
}

Result<LoadedServer> LoadedServer::at(const std::string& url) {
  LOCKET_TRY(Address address, address_of(url));
  return LoadedServer(std::nullopt, std::move(address));
}

Result<ServerState> LoadedServer::state() const {
  test_support::HttpClient client(address_.port, {.host = address_.host});
  const test_support::HttpReply reply = client.request({.path = "/ui/state"});
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  if (reply.status != 200 || !json.is_object()) {
    return fail(ErrorCode::kIo, fmt::format("/ui/state: status {}, \"{}\"", reply.status,
                                            reply.body.substr(0, 200)));
  }
  const auto& load = json.at("load");
  return ServerState{
      .queued = load.value("queued", std::size_t{0}),
      .running = load.value("running", std::size_t{0}),
      .steps = load.value("steps", std::uint64_t{0}),
      .generated_tokens = load.value("generated_tokens", std::uint64_t{0}),
      .prompt_tokens = load.value("prompt_tokens", std::uint64_t{0}),
      .hit_tokens = load.value("hit_tokens", std::uint64_t{0}),
      .preemptions = load.value("preemptions", std::uint64_t{0}),
      .memory_used_bytes = json["memory"].value("ram_used_bytes", std::uint64_t{0}),
      .memory_budget_bytes = json["memory"].value("ram_budget_bytes", std::uint64_t{0})};
}

Result<ServerState> LoadedServer::wait_until_idle() const {
  const double end = monotonic_seconds() + kMostIdleSeconds;
  while (true) {
    LOCKET_TRY(const ServerState now, state());
    if (now.is_idle()) return now;
    if (monotonic_seconds() > end) {
      return fail(ErrorCode::kIo, fmt::format("{} requests run and {} wait with nobody there",
                                              now.running, now.queued));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::uint64_t LoadedServer::resident_bytes() const {
  if (!process_) return 0;
  std::ifstream file(fmt::format("/proc/{}/status", process_->process_id()));
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kName = "VmRSS:";
    if (line.starts_with(kName)) return std::stoull(line.substr(kName.size())) * 1024;
  }
  return 0;
}

std::size_t LoadedServer::open_files() const {
  if (!process_) return 0;
  const auto folder = fmt::format("/proc/{}/fd", process_->process_id());
  std::error_code ignored;
  const std::filesystem::directory_iterator files(folder, ignored);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

}  // namespace locket::stream_load
