// What the connections of one server share: its options and handler, what is counted, and whether
// the server is ending. Outlives all connections. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "server/http_server.h"
#include "server/internal/wire.h"

namespace locket::server {

// The wires of all open connections, to be woken when something changes for all.
class WireSet {
 public:
  void add(std::shared_ptr<Wire> wire) {
    const std::lock_guard lock(mutex_);
    wires_.insert(std::move(wire));
  }
  void remove(const std::shared_ptr<Wire>& wire) {
    const std::lock_guard lock(mutex_);
    wires_.erase(wire);
  }
  void notify_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& wire : wires_) wire->notify();
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::shared_ptr<Wire>> wires_;
};

struct ServerState {
  ServerState(const HttpServerOptions& server_options, HttpHandler& server_handler)
      : options(server_options), handler(server_handler) {}

  const HttpServerOptions options;
  HttpHandler& handler;
  WireSet wires;
  std::atomic<std::size_t> connections = 0;  // that are served
  std::atomic<std::size_t> refusals = 0;     // connections that only learn that there are too many
  std::atomic<std::size_t> open_exchanges = 0;
  std::atomic<bool> is_draining = false;  // no new requests
  std::atomic<bool> is_ending = false;    // everything closes
};

// Counts while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<std::size_t>& count) : count_(count) { count_ += 1; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { count_ -= 1; }

 private:
  std::atomic<std::size_t>& count_;
};

}  // namespace locket::server
