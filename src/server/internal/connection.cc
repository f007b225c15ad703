#include "server/internal/connection.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "server/internal/answer_channel.h"
#include "server/internal/answer_framer.h"
#include "server/internal/chunk_decoder.h"
#include "server/internal/head_scanner.h"
#include "server/internal/http_text.h"
#include "server/internal/request_head.h"

namespace locket::server {
namespace {

namespace asio = boost::asio;

// A connection that ends after an answer reads on for a while: closing it with unread bytes would
// reset it, and the client might never see the answer.
constexpr double kLingerIdleSeconds = 2;
constexpr double kLingerSeconds = 10;
constexpr double kMinKeepAliveSeconds = 0.001;

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

class Exchange final : public HttpExchange {
 public:
  Exchange(HttpRequest request, std::shared_ptr<AnswerChannel> channel)
      : request_(std::move(request)), channel_(std::move(channel)) {}
  ~Exchange() override { channel_->drop(); }

  const HttpRequest& request() const override { return request_; }
  void respond(HttpResponse response) override { channel_->respond(std::move(response)); }
  void start_stream(HttpResponse head) override { channel_->start_stream(std::move(head)); }
  void write(std::string bytes) override { channel_->write(std::move(bytes)); }
  void finish() override { channel_->finish(); }
  void set_keep_alive(std::string bytes, std::chrono::milliseconds interval) override {
    channel_->set_keep_alive(std::move(bytes), interval);
  }
  void on_disconnect(std::function<void()> call) override {
    channel_->on_disconnect(std::move(call));
  }
  void on_backlog(std::size_t high, std::function<void(Backlog)> call) override {
    channel_->on_backlog(high, std::move(call));
  }

 private:
  HttpRequest request_;
  std::shared_ptr<AnswerChannel> channel_;
};

// Closes the channel however the answer ends.
class OpenChannel {
 public:
  explicit OpenChannel(Wire& wire)
      : channel_(
            std::make_shared<AnswerChannel>([wire = wire.shared_from_this()] { wire->notify(); })) {
  }
  OpenChannel(const OpenChannel&) = delete;
  OpenChannel& operator=(const OpenChannel&) = delete;
  ~OpenChannel() { channel_->close(); }

  const std::shared_ptr<AnswerChannel>& shared() const { return channel_; }
  AnswerChannel* operator->() const { return channel_.get(); }

 private:
  std::shared_ptr<AnswerChannel> channel_;
};

// The keep-alive of one stream.
class KeepAliveTimer {
 public:
  void set(AnswerChannel::KeepAlive wish) {
    bytes_ = std::move(wish.bytes);
    interval_ = std::max(kMinKeepAliveSeconds, seconds_of(wish.interval));
    since_ = monotonic_seconds();
  }
  double next(double last_sent) const {
    return bytes_.empty() ? kForever : std::max(since_, last_sent) + interval_;
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
  double interval_ = 0;
  double since_ = 0;
};

class Connection {
 public:
  Connection(Wire& wire, ServerState& state)
      : wire_(wire), state_(state), options_(state.options), peer_(wire.peer()) {}

  asio::awaitable<void> serve();
  asio::awaitable<void> refuse();

 private:
  // How far reading a request has come.
  enum class Step {
    kDone,
    kRefused,  // refusal_ is to be sent
    kGone,     // the connection is over
    kCount
  };
  // What follows an answer.
  enum class Next { kRequest, kLinger, kClose, kReset, kCount };

  asio::awaitable<Next> serve_request();
  asio::awaitable<Step> read_head(RequestHead& head);
  std::optional<Step> take_head(HeadScanner& scanner, RequestHead& head);
  Step judge_head(const RequestHead& head);
  asio::awaitable<Step> read_body(RequestHead& head);
  ChunkDecoder::State take_body(RequestHead& head, ChunkDecoder& decoder);
  asio::awaitable<Next> answer(RequestHead head);
  void pack_answer(AnswerChannel& channel, AnswerFramer& framer, KeepAliveTimer& keep_alive);
  asio::awaitable<Next> send_refusal(const RequestHead& head);
  asio::awaitable<void> linger();

  Step refused(HttpResponse response) {
    refusal_ = std::move(response);
    return Step::kRefused;
  }
  bool is_over() const { return wire_.has_left() || state_.is_ending; }

  Wire& wire_;
  ServerState& state_;
  const HttpServerOptions& options_;
  std::string peer_;
  HttpResponse refusal_;
  bool refusal_keeps_alive_ = false;
  bool is_first_ = true;
};

asio::awaitable<void> Connection::serve() {
  Next next = Next::kRequest;
  while (next == Next::kRequest) {
    next = co_await serve_request();
    is_first_ = false;
  }
  if (next == Next::kLinger) co_await linger();
  wire_.close(next == Next::kReset ? Wire::Close::kAtOnce : Wire::Close::kGracefully);
}

asio::awaitable<void> Connection::refuse() {
  refusal_ = plain_error(503, "the server has as many connections as it takes; try again");
  const RequestHead unread;
  if (co_await send_refusal(unread) == Next::kLinger) co_await linger();
  wire_.close(Wire::Close::kGracefully);
}

asio::awaitable<Connection::Next> Connection::serve_request() {
  RequestHead head;
  refusal_keeps_alive_ = false;
  Step step = co_await read_head(head);
  if (step == Step::kDone) step = judge_head(head);
  if (step == Step::kDone && head.has_body()) step = co_await read_body(head);
  if (step == Step::kGone) co_return Next::kClose;
  if (step == Step::kRefused) co_return co_await send_refusal(head);
  co_return co_await answer(std::move(head));
}

asio::awaitable<Connection::Step> Connection::read_head(RequestHead& head) {
  HeadScanner scanner;
  bool has_begun = false;
  double deadline =
      monotonic_seconds() + seconds_of(is_first_ ? options_.head_timeout : options_.idle_timeout);
  while (true) {
    while (!has_begun && wire_.input().starts_with("\r\n")) wire_.use(2);
    if (!has_begun && !wire_.input().empty() && wire_.input() != "\r") {
      has_begun = true;
      deadline = monotonic_seconds() + seconds_of(options_.head_timeout);
    }
    if (has_begun && !state_.is_draining) {
      if (const auto step = take_head(scanner, head)) co_return *step;
    }
    if (is_over()) co_return Step::kGone;
    if (state_.is_draining) {
      co_return has_begun ? refused(plain_error(503, "the server is about to end")) : Step::kGone;
    }
    if (monotonic_seconds() >= deadline) {
      if (!has_begun) co_return Step::kGone;
      co_return refused(plain_error(408, "the head of the request took too long"));
    }
    co_await wire_.wait_until(deadline);
  }
}

// None: more must come.
std::optional<Connection::Step> Connection::take_head(HeadScanner& scanner, RequestHead& head) {
  const HeadScanner::State state = scanner.scan(wire_.input());
  if (state == HeadScanner::State::kNotHttp) {
    return refused(plain_error(400, "this is not HTTP/1.1"));
  }
  const bool is_complete = state == HeadScanner::State::kComplete;
  const std::size_t bytes = is_complete ? scanner.head_bytes() : wire_.input().size();
  if (bytes > options_.max_header_bytes) {
    return refused(plain_error(431, fmt::format("request line and headers have more than {} bytes",
                                                options_.max_header_bytes)));
  }
  if (!is_complete) return std::nullopt;
  auto refusal = parse_request_head(wire_.input().substr(0, bytes), head);
  wire_.use(bytes);
  if (refusal) return refused(std::move(*refusal));
  head.request.peer = peer_;
  return Step::kDone;
}

Connection::Step Connection::judge_head(const RequestHead& head) {
  HttpHandler::Refusal refusal = state_.handler.check_head(head.request);
  if (refusal.is_refused) {
    refusal_keeps_alive_ = head.keeps_alive && !head.has_body();
    return refused(std::move(refusal.response));
  }
  if (head.body_bytes > options_.max_body_bytes) {
    return refused(plain_error(413, fmt::format("the body has {} bytes; at most {} are taken",
                                                head.body_bytes, options_.max_body_bytes)));
  }
  return Step::kDone;
}

asio::awaitable<Connection::Step> Connection::read_body(RequestHead& head) {
  if (head.expects_continue && wire_.input().empty()) wire_.send(std::string(kContinue));
  ChunkDecoder decoder(options_.max_body_bytes);
  const double end = monotonic_seconds() + seconds_of(options_.request_timeout);
  double last_byte = monotonic_seconds();
  while (true) {
    const ChunkDecoder::State state = take_body(head, decoder);
    if (state == ChunkDecoder::State::kComplete) co_return Step::kDone;
    if (state == ChunkDecoder::State::kBad) {
      co_return refused(plain_error(400, "the chunks of the body are not valid HTTP/1.1"));
    }
    if (state == ChunkDecoder::State::kTooLarge) {
      co_return refused(plain_error(
          413, fmt::format("the body has more than {} bytes", options_.max_body_bytes)));
    }
    if (is_over()) co_return Step::kGone;
    if (state_.is_draining) co_return refused(plain_error(503, "the server is about to end"));
    const double deadline = std::min(end, last_byte + seconds_of(options_.body_timeout));
    if (monotonic_seconds() >= deadline) {
      co_return refused(plain_error(408, "the body of the request took too long"));
    }
    const std::size_t received = wire_.received_bytes();
    co_await wire_.wait_until(deadline);
    if (wire_.received_bytes() != received) last_byte = monotonic_seconds();
  }
}

ChunkDecoder::State Connection::take_body(RequestHead& head, ChunkDecoder& decoder) {
  std::string& body = head.request.body;
  std::string_view bytes = wire_.input();
  if (head.is_chunked) {
    const ChunkDecoder::State state = decoder.decode(bytes, body);
    wire_.use(wire_.input().size() - bytes.size());
    return state;
  }
  bytes = bytes.substr(0, static_cast<std::size_t>(head.body_bytes) - body.size());
  body += bytes;
  wire_.use(bytes.size());
  return body.size() == head.body_bytes ? ChunkDecoder::State::kComplete
                                        : ChunkDecoder::State::kMore;
}

asio::awaitable<Connection::Next> Connection::answer(RequestHead head) {
  const Counted open(state_.open_exchanges);
  AnswerFramer framer({.version = head.version,
                       .is_head = head.request.method == "HEAD",
                       .keeps_alive = head.keeps_alive});
  KeepAliveTimer keep_alive;
  const OpenChannel channel(wire_);
  state_.handler.handle(std::make_shared<Exchange>(std::move(head.request), channel.shared()));
  while (!is_over()) {
    if (wire_.unsent_bytes() == 0) {
      if (framer.is_over()) co_return framer.keeps_alive() ? Next::kRequest : Next::kLinger;
      pack_answer(*channel.shared(), framer, keep_alive);
    }
    const bool is_sending = wire_.unsent_bytes() > 0;
    wire_.flush();
    channel->report_unsent(wire_.unsent_bytes());
    // More may have been given while it was sent; that was not taken, so no new wake-up comes.
    if (wire_.unsent_bytes() == 0 && (is_sending || framer.is_over())) continue;
    if (monotonic_seconds() >= wire_.write_deadline()) co_return Next::kReset;
    const double next_piece = framer.is_streaming() ? keep_alive.next(wire_.last_sent()) : kForever;
    co_await wire_.wait_until(wire_.unsent_bytes() > 0 ? wire_.write_deadline() : next_piece);
  }
  co_return Next::kClose;
}

// Queues what the handler has given since the last time or, if that is nothing for long enough, the
// bytes that keep the stream alive.
void Connection::pack_answer(AnswerChannel& channel, AnswerFramer& framer,
                             KeepAliveTimer& keep_alive) {
  AnswerChannel::Parcel parcel = channel.take();
  if (parcel.keep_alive) keep_alive.set(std::move(*parcel.keep_alive));
  if (state_.is_draining) framer.end_connection();
  std::string bytes;
  framer.pack(std::move(parcel), bytes);
  const bool is_quiet = bytes.empty() && framer.is_streaming() &&
                        monotonic_seconds() >= keep_alive.next(wire_.last_sent());
  if (is_quiet) framer.pack_piece(keep_alive.bytes(), bytes);
  wire_.send(std::move(bytes));
}

asio::awaitable<Connection::Next> Connection::send_refusal(const RequestHead& head) {
  AnswerFramer framer({.version = head.version,
                       .is_head = head.request.method == "HEAD",
                       .keeps_alive = refusal_keeps_alive_ && !state_.is_draining});
  AnswerChannel::Parcel parcel;
  parcel.bytes = std::exchange(refusal_.body, {});
  parcel.head = std::exchange(refusal_, {});
  parcel.is_whole = true;
  std::string bytes;
  framer.pack(std::move(parcel), bytes);
  wire_.send(std::move(bytes));
  while (!is_over()) {
    wire_.flush();
    if (wire_.unsent_bytes() == 0) {
      co_return framer.keeps_alive() ? Next::kRequest : Next::kLinger;
    }
    if (monotonic_seconds() >= wire_.write_deadline()) co_return Next::kReset;
    if (!framer.keeps_alive()) wire_.use_all();
    co_await wire_.wait_until(wire_.write_deadline());
  }
  co_return Next::kClose;
}

asio::awaitable<void> Connection::linger() {
  wire_.end_output();
  double now = monotonic_seconds();
  const double end = now + kLingerSeconds;
  double idle_end = now + kLingerIdleSeconds;
  while (!is_over() && now < std::min(end, idle_end)) {
    if (!wire_.input().empty()) {
      wire_.use_all();
      idle_end = now + kLingerIdleSeconds;
    }
    co_await wire_.wait_until(std::min(end, idle_end));
    now = monotonic_seconds();
  }
}

asio::awaitable<void> run_connection(std::shared_ptr<Wire> wire, ServerState& state, Role role) {
  const Counted counted(role == Role::kServe ? state.connections : state.refusals);
  Connection connection(*wire, state);
  if (role == Role::kServe) {
    co_await connection.serve();
  } else {
    co_await connection.refuse();
  }
}

}  // namespace

void start_connection(Wire::Socket socket, ServerState& state, Role role) {
  const Wire::Limits limits = {.input_bytes = state.options.max_header_bytes + 1,
                               .write_timeout = state.options.write_timeout};
  const auto wire = std::make_shared<Wire>(std::move(socket), limits);
  state.wires.add(wire);
  asio::co_spawn(wire->executor(), run_connection(wire, state, role),
                 [wire, &state](const std::exception_ptr& exception) {
                   if (exception) log_error("http: a connection has failed by an exception");
                   wire->close(Wire::Close::kGracefully);
                   state.wires.remove(wire);
                 });
}

}  // namespace locket::server
