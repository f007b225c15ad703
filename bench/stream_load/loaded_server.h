// The server that the load goes to: one of our own, started for it in a process of its own, or one
// that runs already. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/child_process.h"
#include "base/result.h"
#include "stream_load/chat_stream.h"

namespace locket::stream_load {

// What the server says about itself.
struct ServerState {
  std::size_t queued = 0;
  std::size_t running = 0;
  std::uint64_t steps = 0;
  std::uint64_t generated_tokens = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t hit_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t memory_used_bytes = 0;
  std::uint64_t memory_budget_bytes = 0;

  bool is_idle() const { return queued + running == 0; }
};

class LoadedServer {
 public:
  struct Options {
    std::size_t running = 64;  // answers that are worked on at a time
    std::size_t streams = 64;
    std::size_t threads = 2;
    std::size_t memory_mib = 2048;
  };

  // This very program with "serve" as its first argument; killed with the object.
  [[nodiscard]] static Result<LoadedServer> start(const Options& options);
  // "http://127.0.0.1:8000".
  [[nodiscard]] static Result<LoadedServer> at(const std::string& url);

  const Address& address() const { return address_; }
  [[nodiscard]] Result<ServerState> state() const;
  // Waits until nothing runs and nothing waits.
  [[nodiscard]] Result<ServerState> wait_until_idle() const;
  // Memory of the process and its open files; 0 if it is not ours.
  std::uint64_t resident_bytes() const;
  std::size_t open_files() const;

 private:
  LoadedServer(std::optional<ChildProcess> process, Address address)
      : process_(std::move(process)), address_(std::move(address)) {}

  std::optional<ChildProcess> process_;
  Address address_;
};

}  // namespace locket::stream_load
