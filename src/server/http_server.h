// HTTP/1.1 over TCP: listens, reads requests within limits and deadlines, hands them to a handler
// and sends the answers. Every read and write has a deadline; a client that sends or reads slowly
// holds back nobody else. Runs its own I/O threads; thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/http_exchange.h"

namespace locket::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any that is free
  std::size_t io_threads = 1;
  std::size_t max_connections = 4096;        // one more is answered 503 and closed
  std::size_t max_header_bytes = 64 * 1024;  // request line and headers
  std::size_t max_body_bytes = std::size_t{48} << 20;
  std::chrono::milliseconds head_timeout{10'000};      // from the first byte to the end of the head
  std::chrono::milliseconds body_timeout{30'000};      // without a byte of the body
  std::chrono::milliseconds request_timeout{300'000};  // the whole body
  std::chrono::milliseconds idle_timeout{75'000};      // between two requests of a connection
  std::chrono::milliseconds write_timeout{60'000};     // without a byte taken by the client
};

struct HttpServerLoad {
  std::size_t connections = 0;
  std::size_t open_exchanges = 0;  // requests that are being answered
};

class HttpServer {
 public:
  // Listens from now on. kIo names the address and what the system says. `handler` must outlive the
  // server.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                                 HttpHandler& handler);
  // Takes no new connections, and no new request on an old one; answers in flight go on. Returns at
  // once.
  virtual void stop_listening() = 0;
  // Closes everything.
  virtual ~HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  virtual std::uint16_t port() const = 0;
  virtual HttpServerLoad load() const = 0;

 protected:
  HttpServer() = default;
};

}  // namespace locket::server
