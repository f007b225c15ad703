// One HTTP request and its answer, without a word about sockets: what the server's HTTP layer hands
// to a handler. A handler answers at once or later, from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace locket::server {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // decoded as far as routes need it: without query; always begins with "/"
  std::string query;   // what stands behind "?", as sent
  HttpHeaders headers;
  std::string body;
  std::string peer;  // address of the client, for the log

  // The first header of that name, without regard to case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  HttpHeaders headers = {};
};

// Thread-safe. Calls after the end of the answer, or after the client has left, do nothing.
class HttpExchange {
 public:
  HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;
  virtual ~HttpExchange() = default;

  virtual const HttpRequest& request() const = 0;

  // The whole answer.
  virtual void respond(HttpResponse response) = 0;

  // An answer in pieces: the head is sent now, `head.body` as its first piece (chunked; HTTP/1.0:
  // until the connection closes).
  virtual void start_stream(HttpResponse head) = 0;
  // Queued without limit: a writer that outruns its reader must heed Backlog.
  virtual void write(std::string bytes) = 0;
  virtual void finish() = 0;
  // Bytes to send whenever nothing else was sent for `interval`, from now on. Empty: none.
  virtual void set_keep_alive(std::string bytes, std::chrono::milliseconds interval) = 0;

  // Called once, from any thread, if the client leaves or a deadline passes before the answer was
  // finished; at once if that has happened already.
  virtual void on_disconnect(std::function<void()> call) = 0;

  // Called with kFull when more than `high` bytes wait for the reader, and with kDrained when fewer
  // than half of them are left.
  enum class Backlog { kFull, kDrained, kCount };
  virtual void on_backlog(std::size_t high, std::function<void(Backlog)> call) = 0;
};

class HttpHandler {
 public:
  HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;
  virtual ~HttpHandler() = default;

  // The head of a request has arrived, `head.body` is empty: nothing lets the body be read, an
  // answer ends the matter (and the connection, if a body would follow). Called on an I/O thread;
  // must not block.
  struct Refusal {
    bool is_refused = false;
    HttpResponse response = {};
  };
  virtual Refusal check_head(const HttpRequest& head) = 0;

  // The whole request. Called on an I/O thread; must not block; answers through `exchange`.
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
};

}  // namespace locket::server
