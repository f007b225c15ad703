// One client's socket: bytes that have come, bytes that are to go, and one place to wait. All
// reading and writing is done without blocking when the socket is ready, so that an idle connection
// holds no buffer; the connection's coroutine waits in wait_until() for whatever happens first: a
// byte, room to send, a wake-up, or a point in time.
//
// Everything runs on the executor of the socket (a strand) except notify(), which may be called
// from any thread while the connection is open. Times are monotonic_seconds().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace locket::server {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

class Wire : public std::enable_shared_from_this<Wire> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  struct Limits {
    std::size_t input_bytes = 64 * 1024;  // that wait unused; beyond them nothing is read
    std::chrono::milliseconds write_timeout{60'000};
  };

  Wire(Socket socket, const Limits& limits);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  Socket::executor_type executor() { return socket_.get_executor(); }
  std::string peer() const;

  // What has come and was not used yet.
  std::string_view input() const { return std::string_view(input_).substr(used_); }
  void use(std::size_t bytes);
  void use_all() { use(input().size()); }
  // All bytes that have ever come.
  std::size_t received_bytes() const { return received_bytes_; }

  // Queues bytes; flush() and wait_until() send them.
  void send(std::string bytes);
  // Sends what the socket takes now.
  void flush();
  std::size_t unsent_bytes() const { return output_.size() - sent_; }
  // When the client last took a byte, or was first asked to.
  double last_sent() const { return last_sent_; }
  // When the client must have taken a byte of what is queued.
  double write_deadline() const;

  // The client has closed its side, or the connection is broken: nothing more will come, and
  // nothing that is sent will be read.
  bool has_left() const { return has_left_; }

  // Sends and reads until something has happened or the time has come. One caller at a time.
  boost::asio::awaitable<void> wait_until(double deadline);
  // Ends wait_until(), now or as soon as the executor gets to it.
  void notify();

  // No more will be sent: the client sees the end.
  void end_output();
  enum class Close { kGracefully, kAtOnce, kCount };
  void close(Close close);

 private:
  void keep_reading();
  void read_available();
  void wake() { timer_.cancel(); }

  Socket socket_;
  boost::asio::steady_timer timer_;
  Limits limits_;
  std::string input_;
  std::size_t used_ = 0;  // of input_
  std::string output_;
  std::size_t sent_ = 0;  // of output_
  std::size_t received_bytes_ = 0;
  double last_sent_ = 0;
  bool is_reading_ = false;  // a wait for bytes is pending
  bool is_writing_ = false;  // a wait for room is pending
  bool has_left_ = false;
};

}  // namespace locket::server
