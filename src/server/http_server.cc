#include "server/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/thread_group.h"
#include "server/internal/connection.h"
#include "server/internal/server_state.h"

namespace locket::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// When the system has no descriptor left, trying again at once would only burn a processor.
constexpr std::chrono::milliseconds kAcceptPause{20};
// Connections above the limit that may wait for their 503 at one time; more are closed at once.
constexpr std::size_t kMaxRefusals = 64;

Result<asio::ip::address> parse_host(std::string_view host) {
  if (host == "localhost") return asio::ip::address(asio::ip::address_v4::loopback());
  std::string_view literal = host;
  if (literal.starts_with('[') && literal.ends_with(']')) {
    literal = literal.substr(1, literal.size() - 2);
  }
  error_code error;
  const asio::ip::address address = asio::ip::make_address(std::string(literal), error);
  if (error) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("host \"{}\": expected an IPv4 or IPv6 address or \"localhost\"", host));
  }
  return address;
}

class Server final : public HttpServer {
 public:
  Server(const HttpServerOptions& options, HttpHandler& handler)
      : state_(options, handler),
        io_(static_cast<int>(options.io_threads)),
        acceptor_(asio::make_strand(io_)),
        pause_(acceptor_.get_executor()) {}
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status listen();
  void stop_listening() override;
  std::uint16_t port() const override { return port_; }
  HttpServerLoad load() const override {
    return {.connections = state_.connections, .open_exchanges = state_.open_exchanges};
  }

 private:
  Status bind(const tcp::endpoint& endpoint);
  asio::awaitable<void> accept_all();
  void admit(tcp::socket socket);

  ServerState state_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ThreadGroup> threads_;
};

Status Server::listen() {
  const HttpServerOptions& options = state_.options;
  LOCKET_TRY(const asio::ip::address address, parse_host(options.host));
  LOCKET_TRY_STATUS(bind(tcp::endpoint(address, options.port)));
  asio::co_spawn(acceptor_.get_executor(), accept_all(), asio::detached);
  threads_ = std::make_unique<ThreadGroup>(options.io_threads, [this] { io_.run(); });
  return {};
}

Status Server::bind(const tcp::endpoint& endpoint) {
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    // "::" takes IPv4 too where the system lets it.
    error_code ignored;
    acceptor_.set_option(asio::ip::v6_only(false), ignored);
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (!error) return {};
  const std::string address = endpoint.address().to_string();
  return fail(ErrorCode::kIo, fmt::format("cannot listen on {} port {}: {}", address,
                                          endpoint.port(), error.message()));
}

asio::awaitable<void> Server::accept_all() {
  bool is_failing = false;  // one line in the log for each time that it begins
  while (!state_.is_draining) {
    auto [error, socket] = co_await acceptor_.async_accept(asio::make_strand(io_),
                                                           asio::as_tuple(asio::use_awaitable));
    if (!error) {
      is_failing = false;
      admit(std::move(socket));
    } else if (!state_.is_draining) {
      if (!is_failing) {
        log_warning(fmt::format("http: cannot accept a connection: {}", error.message()));
      }
      is_failing = true;
      pause_.expires_after(kAcceptPause);
      co_await pause_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }
}

void Server::admit(tcp::socket socket) {
  if (state_.connections < state_.options.max_connections) {
    start_connection(std::move(socket), state_, Role::kServe);
  } else if (state_.refusals < kMaxRefusals) {
    start_connection(std::move(socket), state_, Role::kRefuse);
  }
}

void Server::stop_listening() {
  state_.is_draining = true;
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  });
  state_.wires.notify_all();
}

Server::~Server() {
  state_.is_ending = true;
  stop_listening();
  threads_.reset();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler& handler) {
  auto server = std::make_unique<Server>(options, handler);
  LOCKET_TRY_STATUS(server->listen());
  return server;
}

}  // namespace locket::server
