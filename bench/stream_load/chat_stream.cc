#include "stream_load/chat_stream.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace locket::stream_load {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kShownBytes = 300;  // of an answer that is no stream

int connect_to(const Address& address) {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  sockaddr_in target = {};
  target.sin_family = AF_INET;
  target.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &target.sin_addr);
  const int begun = ::connect(made, reinterpret_cast<const sockaddr*>(&target), sizeof(target));
  if (begun == 0 || errno == EINPROGRESS) return made;
  ::close(made);
  return -1;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

ChatStream::ChatStream(const Address& address, std::string_view body)
    : socket_(connect_to(address)),
      output_(fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                          "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                          body.size(), body)) {
  if (socket_ < 0) fail(fmt::format("cannot connect: {}", std::strerror(errno)));
}

ChatStream::~ChatStream() {
  if (socket_ >= 0) ::close(socket_);
}

void ChatStream::reset_on_leaving() const {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void ChatStream::fail(std::string reason) {
  if (is_over()) return;
  state_ = State::kFailed;
  error_ = std::move(reason);
}

std::size_t ChatStream::move_on() {
  if (state_ == State::kSending) send_request();
  if (is_over() || state_ == State::kSending) return 0;
  receive();
  if (!has_head_) take_head();
  if (!has_head_ || state_ == State::kFailed) return 0;
  take_chunks();
  const std::size_t events = take_events();
  if (is_at_end_ && !is_over()) {
    if (has_finish_) {
      state_ = State::kDone;
    } else {
      fail("the stream has ended without a reason for its end");
    }
  }
  return events;
}

void ChatStream::send_request() {
  while (sent_ < output_.size()) {
    const ssize_t count =
        ::send(socket_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    // A socket that is not connected yet: it is when it can be written to.
    if (count < 0 && (would_block() || errno == ENOTCONN)) return;
    if (count < 0) return fail(fmt::format("cannot send: {}", std::strerror(errno)));
    sent_ += static_cast<std::size_t>(count);
  }
  state_ = State::kWaiting;
  std::string().swap(output_);
}

void ChatStream::receive() {
  std::array<char, kReadBytes> buffer;  // not cleared: it is filled by the read
  while (true) {
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count > 0) {
      input_.append(buffer.data(), static_cast<std::size_t>(count));
      if (static_cast<std::size_t>(count) < buffer.size()) return;
      continue;
    }
    if (count < 0 && would_block()) return;
    const char* reason = count == 0 ? "the server has closed" : std::strerror(errno);
    // What came before may be the rest of the answer.
    if (input_.find("0\r\n\r\n") == std::string::npos) {
      fail(fmt::format("the connection has ended in the middle of the answer: {}", reason));
    }
    return;
  }
}

void ChatStream::take_head() {
  const std::size_t end = input_.find("\r\n\r\n");
  if (end == std::string::npos) return;
  const bool is_stream = input_.starts_with("HTTP/1.1 200 ") &&
                         input_.find("text/event-stream") < end && input_.find("chunked") < end;
  if (!is_stream) return fail(fmt::format("no stream: {}", input_.substr(0, kShownBytes)));
  has_head_ = true;
  input_.erase(0, end + 4);
}

void ChatStream::take_chunks() {
  std::size_t used = 0;
  while (!is_at_end_) {
    const std::size_t line_end = input_.find("\r\n", used);
    if (line_end == std::string::npos) break;
    std::size_t bytes = 0;
    const auto [end, error] =
        std::from_chars(input_.data() + used, input_.data() + line_end, bytes, 16);
    if (error != std::errc() || end != input_.data() + line_end) return fail("a broken chunk");
    const std::size_t begin = line_end + 2;
    if (input_.size() < begin + bytes + 2) break;
    body_.append(input_, begin, bytes);
    used = begin + bytes + 2;
    is_at_end_ = bytes == 0;
  }
  input_.erase(0, used);
}

std::size_t ChatStream::take_events() {
  std::size_t events = 0;
  std::size_t used = 0;
  while (!is_over()) {
    const std::size_t end = body_.find("\n\n", used);
    if (end == std::string::npos) break;
    std::string_view event = std::string_view(body_).substr(used, end - used);
    used = end + 2;
    // Signs of life are comments with a line of their own before an event.
    while (event.starts_with(':')) {
      event.remove_prefix(std::min(event.find('\n'), event.size() - 1) + 1);
    }
    if (event.empty()) continue;
    if (!event.starts_with("data: ")) {
      fail(fmt::format("no event: {}", event.substr(0, kShownBytes)));
      break;
    }
    events += take_event(event.substr(6));
  }
  body_.erase(0, used);
  return events;
}

std::size_t ChatStream::take_event(std::string_view data) {
  if (data == "[DONE]") return 0;
  const auto json = nlohmann::json::parse(data, nullptr, false);
  if (!json.is_object() || !json.contains("choices") || json["choices"].empty()) {
    fail(fmt::format("no chunk of a chat: {}", data.substr(0, kShownBytes)));
    return 0;
  }
  const auto& choice = json["choices"][0];
  const std::size_t before = text_.size();
  for (const char* part : {"reasoning_content", "content"}) {
    const auto& delta = choice["delta"];
    if (delta.contains(part) && delta[part].is_string()) text_ += delta[part].get<std::string>();
  }
  if (choice["finish_reason"].is_string()) has_finish_ = true;
  if (json.contains("usage") && json["usage"].is_object()) {
    completion_tokens_ = json["usage"].value("completion_tokens", std::size_t{0});
  }
  if (text_.size() == before) return 0;
  state_ = State::kSpeaking;
  return 1;
}

}  // namespace locket::stream_load
