#include "server/internal/wire.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/clock.h"

namespace locket::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 32 * 1024;
constexpr std::size_t kIdleBufferBytes = 512;  // what a connection with nothing to do may hold
// Bounds what the system keeps for a client that does not read.
constexpr int kSystemSendBytes = 256 * 1024;
constexpr int kIdleSecondsBeforeProbe = 30;
constexpr int kSecondsBetweenProbes = 10;

// A socket option of TCP with an int as its value.
template <int kName>
class TcpOption {
 public:
  explicit TcpOption(int value) : value_(value) {}
  template <class Protocol>
  int level(const Protocol& /*protocol*/) const {
    return IPPROTO_TCP;
  }
  template <class Protocol>
  int name(const Protocol& /*protocol*/) const {
    return kName;
  }
  template <class Protocol>
  const int* data(const Protocol& /*protocol*/) const {
    return &value_;
  }
  template <class Protocol>
  std::size_t size(const Protocol& /*protocol*/) const {
    return sizeof(value_);
  }

 private:
  int value_;
};

// Options are wishes: a system that refuses one still serves. The probes and the time that unread
// bytes may take find a client that vanished without a word.
void set_options(Wire::Socket& socket, std::chrono::milliseconds write_timeout) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(kSystemSendBytes), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(TcpOption<TCP_KEEPIDLE>(kIdleSecondsBeforeProbe), ignored);
  socket.set_option(TcpOption<TCP_KEEPINTVL>(kSecondsBetweenProbes), ignored);
  socket.set_option(TcpOption<TCP_USER_TIMEOUT>(static_cast<int>(write_timeout.count())), ignored);
}

void release_if_large(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kIdleBufferBytes) std::string().swap(buffer);
}

}  // namespace

Wire::Wire(Socket socket, const Limits& limits)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), limits_(limits) {
  set_options(socket_, limits_.write_timeout);
}

std::string Wire::peer() const {
  error_code error;
  const auto end = socket_.remote_endpoint(error);
  if (error) return "unknown";
  asio::ip::address address = end.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address.to_string();
}

void Wire::use(std::size_t bytes) {
  used_ += bytes;
  if (used_ < input_.size()) return;
  release_if_large(input_);
  used_ = 0;
}

void Wire::send(std::string bytes) {
  if (bytes.empty()) return;
  if (unsent_bytes() > 0) {
    output_ += bytes;
    return;
  }
  output_ = std::move(bytes);
  sent_ = 0;
  last_sent_ = monotonic_seconds();
}

double Wire::write_deadline() const {
  if (unsent_bytes() == 0) return kForever;
  return last_sent_ + std::chrono::duration<double>(limits_.write_timeout).count();
}

void Wire::flush() {
  while (!is_writing_ && !has_left_ && unsent_bytes() > 0) {
    error_code error;
    const std::size_t count =
        socket_.write_some(asio::buffer(output_.data() + sent_, output_.size() - sent_), error);
    if (count > 0) last_sent_ = monotonic_seconds();
    sent_ += count;
    if (error == asio::error::would_block) {
      is_writing_ = true;
      socket_.async_wait(Socket::wait_write, [self = shared_from_this()](error_code /*error*/) {
        self->is_writing_ = false;
        self->wake();
      });
    } else if (error) {
      has_left_ = true;
    }
  }
  if (unsent_bytes() > 0) return;
  release_if_large(output_);
  sent_ = 0;
}

void Wire::keep_reading() {
  if (is_reading_ || has_left_ || input().size() >= limits_.input_bytes) return;
  is_reading_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code error) {
    self->is_reading_ = false;
    if (error) {
      self->has_left_ = true;
    } else {
      self->read_available();
    }
    self->wake();
  });
}

// One read per wake-up, however much has come: the other connections have their turn between.
void Wire::read_available() {
  std::array<char, kReadBytes> buffer;  // not cleared: it is filled by the read
  error_code error;
  const std::size_t count = socket_.read_some(asio::buffer(buffer), error);
  if (error == asio::error::would_block) return;
  if (error) {
    has_left_ = true;
    return;
  }
  input_.erase(0, std::exchange(used_, 0));
  input_.append(buffer.data(), count);
  received_bytes_ += count;
}

asio::awaitable<void> Wire::wait_until(double deadline) {
  flush();
  if (has_left_) co_return;
  keep_reading();
  const double seconds = std::max(0.0, deadline - monotonic_seconds());
  if (deadline == kForever) {
    timer_.expires_at(asio::steady_timer::time_point::max());
  } else {
    timer_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(
        std::chrono::duration<double>(seconds)));
  }
  co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Wire::notify() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->wake(); });
}

void Wire::end_output() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Wire::close(Close close) {
  error_code ignored;
  if (close == Close::kAtOnce) {
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  }
  socket_.close(ignored);
  has_left_ = true;
  wake();
}

}  // namespace locket::server
