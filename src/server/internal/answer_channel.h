// One answer on its way from a handler, on any thread, to the connection that sends it. The handler
// puts in a whole answer or pieces of a stream; the connection takes out all there is at once, so
// that pieces written while it was busy go out as one write. Thread-safe.
//
// Callbacks of the handler run without a lock held, at most one at a time except on_disconnect()
// after the fact, and are let go (with what they hold) when they can no longer be called.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "server/http_exchange.h"

namespace locket::server {

class AnswerChannel {
 public:
  // `wake` tells the connection that there is something to take. It is called with the lock held,
  // from any thread, never after close(): it may only post.
  explicit AnswerChannel(std::function<void()> wake) : wake_(std::move(wake)) {}

  // The handler's side; see HttpExchange. REQUIRES: respond() or start_stream() once, and write()
  // and finish() only after start_stream().
  void respond(HttpResponse response);
  void start_stream(HttpResponse head);
  void write(std::string bytes);
  void finish();
  void set_keep_alive(std::string bytes, std::chrono::milliseconds interval);
  void on_disconnect(std::function<void()> call);
  void on_backlog(std::size_t high, std::function<void(HttpExchange::Backlog)> call);
  // The handler has let go of the exchange: an answer that is not finished never will be.
  void drop();

  // The connection's side.
  struct KeepAlive {
    std::string bytes;
    std::chrono::milliseconds interval{0};
  };
  enum class Ending {
    kOpen,     // more may come
    kDone,     // the answer is complete
    kBroken,   // the handler gave up in the middle of a stream
    kMissing,  // the handler gave up without a word
    kCount
  };
  struct Parcel {
    std::optional<HttpResponse> head;  // of a stream, or the whole answer; its body is in `bytes`
    bool is_whole = false;             // `bytes` is all of the body
    std::string bytes;
    Ending ending = Ending::kOpen;
    std::optional<KeepAlive> keep_alive;  // was set anew
  };
  // Everything since the last call.
  Parcel take();
  // How much of what was taken still waits for the reader. Also says that the connection has
  // looked: what is put in afterwards wakes it again, even if it takes nothing yet.
  void report_unsent(std::size_t bytes);
  // The connection is over; nothing is taken any more.
  void close();

 private:
  enum class State { kWaiting, kStreaming, kFinished, kClosed, kCount };
  using BacklogCall = std::function<void(HttpExchange::Backlog)>;

  void wake();  // REQUIRES: mutex_ is held
  // Ends the handler's part. Returns what must be let go without the lock.
  struct Calls {
    std::function<void()> disconnect;
    BacklogCall backlog;
    std::function<void()> wake;
  };
  Calls release_calls();  // REQUIRES: mutex_ is held

  std::mutex mutex_;
  std::function<void()> wake_;
  std::function<void()> disconnect_;
  BacklogCall backlog_;
  std::size_t high_ = 0;
  bool is_full_ = false;
  bool is_woken_ = false;  // and has not looked since
  bool is_lost_ = false;   // closed before the answer was finished
  State state_ = State::kWaiting;
  Parcel parcel_;
};

}  // namespace locket::server
