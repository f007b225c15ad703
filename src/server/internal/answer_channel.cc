#include "server/internal/answer_channel.h"

#include <memory>
#include <utility>

#include "base/check.h"

namespace locket::server {

void AnswerChannel::wake() {
  if (is_woken_ || !wake_) return;
  is_woken_ = true;
  wake_();
}

AnswerChannel::Calls AnswerChannel::release_calls() {
  return {std::exchange(disconnect_, nullptr), std::exchange(backlog_, nullptr), nullptr};
}

void AnswerChannel::respond(HttpResponse response) {
  Calls released;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (state_ == State::kFinished || state_ == State::kClosed) return;
  LOCKET_CHECK(state_ == State::kWaiting);
  state_ = State::kFinished;
  parcel_.bytes = std::exchange(response.body, {});
  parcel_.head = std::move(response);
  parcel_.is_whole = true;
  parcel_.ending = Ending::kDone;
  released = release_calls();
  wake();
}

void AnswerChannel::start_stream(HttpResponse head) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kFinished || state_ == State::kClosed) return;
  LOCKET_CHECK(state_ == State::kWaiting);
  state_ = State::kStreaming;
  parcel_.bytes = std::exchange(head.body, {});
  parcel_.head = std::move(head);
  wake();
}

void AnswerChannel::write(std::string bytes) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(state_ != State::kWaiting);
  if (state_ != State::kStreaming || bytes.empty()) return;
  if (parcel_.bytes.empty()) {
    parcel_.bytes = std::move(bytes);
  } else {
    parcel_.bytes += bytes;
  }
  wake();
}

void AnswerChannel::finish() {
  Calls released;
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(state_ != State::kWaiting);
  if (state_ != State::kStreaming) return;
  state_ = State::kFinished;
  parcel_.ending = Ending::kDone;
  released = release_calls();
  wake();
}

void AnswerChannel::drop() {
  Calls released;
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kStreaming) return;
  parcel_.ending = state_ == State::kWaiting ? Ending::kMissing : Ending::kBroken;
  state_ = State::kFinished;
  released = release_calls();
  wake();
}

void AnswerChannel::set_keep_alive(std::string bytes, std::chrono::milliseconds interval) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kStreaming) return;
  parcel_.keep_alive = KeepAlive{std::move(bytes), interval};
  wake();
}

void AnswerChannel::on_disconnect(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kWaiting || state_ == State::kStreaming) {
      std::swap(disconnect_, call);  // the old one goes after the lock
      return;
    }
    if (!is_lost_) return;
  }
  call();
}

void AnswerChannel::on_backlog(std::size_t high, BacklogCall call) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kStreaming) return;
  high_ = high;
  std::swap(backlog_, call);
  is_full_ = false;
  wake();
}

AnswerChannel::Parcel AnswerChannel::take() {
  const std::lock_guard lock(mutex_);
  is_woken_ = false;
  Parcel parcel = std::exchange(parcel_, {});
  parcel_.ending = parcel.ending;
  return parcel;
}

void AnswerChannel::report_unsent(std::size_t bytes) {
  BacklogCall call;
  auto news = HttpExchange::Backlog::kFull;
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = false;
    if (!backlog_) return;
    const std::size_t waiting = bytes + parcel_.bytes.size();
    const bool turns = is_full_ ? waiting < high_ / 2 || waiting == 0 : waiting > high_;
    if (!turns) return;
    is_full_ = !is_full_;
    call = backlog_;
    if (!is_full_) news = HttpExchange::Backlog::kDrained;
  }
  call(news);
}

void AnswerChannel::close() {
  Calls calls;
  bool is_lost = false;
  {
    const std::lock_guard lock(mutex_);
    is_lost_ = is_lost_ || state_ == State::kWaiting || state_ == State::kStreaming;
    is_lost = is_lost_;
    state_ = State::kClosed;
    calls = release_calls();
    calls.wake = std::exchange(wake_, nullptr);
    parcel_ = {};
  }
  if (is_lost && calls.disconnect) calls.disconnect();
}

}  // namespace locket::server
