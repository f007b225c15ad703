#include "tests/support/http_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace locket::test_support {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point after(int timeout_ms) {
  return Clock::now() + std::chrono::milliseconds(timeout_ms);
}

// Waits until the socket is ready; false if the time is over.
bool wait_for(int socket, short events, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd place = {socket, events, 0};
    const int ready = ::poll(&place, 1, std::max(0, static_cast<int>(left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool is_same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

int connect_to(std::uint16_t port, const HttpClient::Options& options) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (::getaddrinfo(options.host.c_str(), service.c_str(), &hints, &found) != 0) return -1;
  int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (options.receive_buffer_bytes > 0) {
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &options.receive_buffer_bytes,
                 sizeof(options.receive_buffer_bytes));
  }
  if (socket >= 0 && ::connect(socket, found->ai_addr, found->ai_addrlen) != 0) {
    ::close(socket);
    socket = -1;
  }
  ::freeaddrinfo(found);
  return socket;
}

}  // namespace

std::string HttpReply::header(std::string_view name) const {
  for (const auto& [header_name, value] : headers) {
    if (is_same_name(header_name, name)) return value;
  }
  return {};
}

bool HttpReply::has_header(std::string_view name) const {
  return std::ranges::any_of(headers,
                             [&](const auto& entry) { return is_same_name(entry.first, name); });
}

HttpClient::HttpClient(std::uint16_t port) : HttpClient(port, Options{}) {}

HttpClient::HttpClient(std::uint16_t port, const Options& options)
    : socket_(connect_to(port, options)) {}

HttpClient::HttpClient(HttpClient&& other) noexcept { *this = std::move(other); }

HttpClient& HttpClient::operator=(HttpClient&& other) noexcept {
  if (this == &other) return *this;
  close();
  socket_ = std::exchange(other.socket_, -1);
  input_ = std::exchange(other.input_, {});
  is_at_end_ = other.is_at_end_;
  is_reset_ = other.is_reset_;
  body_ = other.body_;
  left_ = other.left_;
  is_after_chunk_ = other.is_after_chunk_;
  held_ = std::exchange(other.held_, {});
  return *this;
}

HttpClient::~HttpClient() { close(); }

bool HttpClient::send(std::string_view bytes) const {
  const auto end = after(kHttpTimeoutMs);
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    if (!wait_for(socket_, POLLOUT, end)) return false;
  }
  return true;
}

std::string HttpClient::request_bytes(const HttpCall& call) {
  std::string bytes = call.method + " " + call.path + " HTTP/1." + (call.version == 10 ? "0" : "1");
  bytes += "\r\nHost: localhost\r\n";
  for (const auto& [name, value] : call.headers) bytes += name + ": " + value + "\r\n";
  if (!call.body.empty()) {
    bytes += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  }
  return bytes + "\r\n" + call.body;
}

HttpReply HttpClient::request(const HttpCall& call) {
  send(request_bytes(call));  // a server that refuses may answer without reading all
  return read_reply(call.method);
}

HttpReply HttpClient::read_reply(std::string_view method) {
  HttpReply reply = read_head(method);
  if (reply.status == 0) return reply;
  reply.body = read_body();
  reply.is_complete = is_body_complete();
  return reply;
}

HttpReply HttpClient::read_head(std::string_view method) {
  const auto end = after(kHttpTimeoutMs);
  HttpReply reply;
  held_.clear();
  body_ = Body::kNone;
  const auto first = take_line(end);
  if (!first || !first->starts_with("HTTP/1.") || first->size() < 12) return reply;
  while (true) {
    const auto line = take_line(end);
    if (!line) return reply;
    if (line->empty()) break;
    const std::size_t colon = line->find(": ");
    if (colon == std::string::npos) return reply;
    reply.headers.emplace_back(line->substr(0, colon), line->substr(colon + 2));
  }
  reply.status = std::atoi(first->c_str() + 9);
  if (first->size() > 13) reply.reason = first->substr(13);
  const bool has_body =
      method != "HEAD" && reply.status >= 200 && reply.status != 204 && reply.status != 304;
  if (has_body && reply.header("Transfer-Encoding") == "chunked") {
    body_ = Body::kChunked;
    left_ = 0;
    is_after_chunk_ = false;
  } else if (has_body && reply.has_header("Content-Length")) {
    left_ = static_cast<std::size_t>(std::atoll(reply.header("Content-Length").c_str()));
    body_ = left_ > 0 ? Body::kLength : Body::kNone;
  } else if (has_body) {
    body_ = Body::kUntilClose;
  }
  reply.is_complete = body_ == Body::kNone;
  return reply;
}

std::optional<std::string> HttpClient::read_piece(int timeout_ms) {
  if (!held_.empty()) return std::exchange(held_, {});
  return take_piece(after(timeout_ms));
}

std::string HttpClient::read_body_until(std::string_view text, int timeout_ms) {
  const auto end = after(timeout_ms);
  std::string read = std::exchange(held_, {});
  while (read.find(text) == std::string::npos) {
    const auto piece = take_piece(end);
    if (!piece) return read;
    read += *piece;
  }
  const std::size_t size = read.find(text) + text.size();
  held_ = read.substr(size);
  read.resize(size);
  return read;
}

std::string HttpClient::read_body(int timeout_ms) {
  const auto end = after(timeout_ms);
  std::string read = std::exchange(held_, {});
  while (const auto piece = take_piece(end)) read += *piece;
  return read;
}

HttpClient::Rest HttpClient::read_until_closed(int timeout_ms) {
  const auto end = after(timeout_ms);
  while (receive(end)) {
  }
  return {.bytes = std::exchange(input_, {}), .is_closed = is_at_end_, .is_reset = is_reset_};
}

std::string HttpClient::read_some(int timeout_ms) {
  if (input_.empty()) receive(after(timeout_ms));
  return std::exchange(input_, {});
}

void HttpClient::close_sending() const { ::shutdown(socket_, SHUT_WR); }

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpClient::reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close();
}

bool HttpClient::receive(Clock::time_point end) {
  std::array<char, 65536> buffer{};
  while (!is_at_end_ && wait_for(socket_, POLLIN, end)) {
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      input_.append(buffer.data(), static_cast<std::size_t>(count));
      return true;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    is_at_end_ = true;
    is_reset_ = count < 0;
  }
  return false;
}

// A line without its CR LF.
std::optional<std::string> HttpClient::take_line(Clock::time_point end) {
  std::size_t size = input_.find("\r\n");
  while (size == std::string::npos) {
    if (!receive(end)) return std::nullopt;
    size = input_.find("\r\n");
  }
  std::string line = input_.substr(0, size);
  input_.erase(0, size + 2);
  return line;
}

// Reads the size of the next chunk; false at the end of the body or if it does not come.
bool HttpClient::begin_chunk(Clock::time_point end) {
  if (is_after_chunk_) {
    while (input_.size() < 2) {
      if (!receive(end)) return false;
    }
    input_.erase(0, 2);
    is_after_chunk_ = false;
  }
  const auto line = take_line(end);
  if (!line) return false;
  left_ = static_cast<std::size_t>(std::strtoull(line->c_str(), nullptr, 16));
  if (left_ > 0) return true;
  const auto last = take_line(end);
  if (last && last->empty()) body_ = Body::kNone;
  return false;
}

std::optional<std::string> HttpClient::take_piece(Clock::time_point end) {
  if (body_ == Body::kNone) return std::nullopt;
  if (body_ == Body::kChunked && left_ == 0 && !begin_chunk(end)) return std::nullopt;
  if (input_.empty() && !receive(end)) {
    if (body_ == Body::kUntilClose && is_at_end_) body_ = Body::kNone;
    return std::nullopt;
  }
  if (body_ == Body::kUntilClose) return std::exchange(input_, {});
  std::string piece = input_.substr(0, left_);
  input_.erase(0, piece.size());
  left_ -= piece.size();
  is_after_chunk_ = left_ == 0;
  if (left_ == 0 && body_ == Body::kLength) body_ = Body::kNone;
  return piece;
}

}  // namespace locket::test_support
