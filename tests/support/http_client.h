// A small blocking HTTP client over a plain socket, for tests of the server: it sends exactly the
// bytes that it is given, well-formed or not, and reads answers as they come, so that a test can
// stop at any point. One connection per object; not thread-safe. Waits at most kHttpTimeoutMs for
// anything; what did not come in time is an incomplete reply or nothing, never an endless wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace locket::test_support {

// Long enough for a build with sanitizers on a busy machine.
inline constexpr int kHttpTimeoutMs = 60'000;

struct HttpReply {
  int status = 0;  // 0: no head has come
  std::string reason;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;          // of a chunked answer: decoded
  bool is_complete = false;  // the body has come to its end

  // The first header of that name, without regard to case; empty if there is none.
  std::string header(std::string_view name) const;
  bool has_header(std::string_view name) const;
};

struct HttpCall {
  std::string method = "GET";
  std::string path = "/";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  int version = 11;  // or 10
};

class HttpClient {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // an address
    int receive_buffer_bytes = 0;    // of the system, before connecting; 0: as it is
  };

  HttpClient() = default;
  // Connects; is_connected() says whether it could.
  explicit HttpClient(std::uint16_t port);
  HttpClient(std::uint16_t port, const Options& options);
  HttpClient(HttpClient&& other) noexcept;
  HttpClient& operator=(HttpClient&& other) noexcept;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  bool is_connected() const { return socket_ >= 0; }

  // False if the server does not take them all.
  bool send(std::string_view bytes) const;
  // The bytes of a request with Host and, if there is a body, Content-Length.
  static std::string request_bytes(const HttpCall& call);
  // Sends a request and reads the whole reply.
  HttpReply request(const HttpCall& call);

  // The next reply with its body; interim replies (1xx) are replies too. `method` is that of the
  // request: the answer to HEAD has no body.
  HttpReply read_reply(std::string_view method = "GET");

  // A reply piece by piece: its head first; then its body.
  HttpReply read_head(std::string_view method = "GET");
  // What of the body has come and was not read yet, at least a byte; for a chunked body never more
  // than the rest of one chunk. None: the body is at its end (is_body_complete()), or the
  // connection has ended, or the time is over.
  std::optional<std::string> read_piece(int timeout_ms = kHttpTimeoutMs);
  // Of the body, everything up to and including `end`; less if the body ends before, or the time.
  std::string read_body_until(std::string_view end, int timeout_ms = kHttpTimeoutMs);
  // The rest of the body.
  std::string read_body(int timeout_ms = kHttpTimeoutMs);
  bool is_body_complete() const { return body_ == Body::kNone; }

  // Raw bytes until the server closes. `is_closed` says whether it has.
  struct Rest {
    std::string bytes;
    bool is_closed = false;
    bool is_reset = false;  // closed without the end being sent
  };
  Rest read_until_closed(int timeout_ms = kHttpTimeoutMs);
  // Raw bytes, at least one; empty at the end or after the time.
  std::string read_some(int timeout_ms = kHttpTimeoutMs);

  void close_sending() const;  // the server reads the end; answers can still come
  void close();                // the usual end
  void reset();                // the end as of a program that was killed with bytes unread

 private:
  using Clock = std::chrono::steady_clock;
  enum class Body { kNone, kLength, kChunked, kUntilClose, kCount };

  bool receive(Clock::time_point end);  // more into input_; false: the end, or the time is over
  std::optional<std::string> take_line(Clock::time_point end);
  bool begin_chunk(Clock::time_point end);
  std::optional<std::string> take_piece(Clock::time_point end);

  int socket_ = -1;
  std::string input_;  // came and was not read
  bool is_at_end_ = false;
  bool is_reset_ = false;
  Body body_ = Body::kNone;
  std::size_t left_ = 0;  // of the body, or of the chunk
  bool is_after_chunk_ = false;
  std::string held_;  // of the body, read beyond what read_body_until() was asked for
};

}  // namespace locket::test_support
