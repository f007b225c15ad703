#include "stream_load/load_run.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <string_view>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"

namespace locket::stream_load {
namespace {

constexpr int kWaitMs = 20;
constexpr std::size_t kEventsAtOnce = 512;
constexpr std::size_t kMostFaults = 10;
// More at once would only fill the queue of connections that are not accepted yet.
constexpr std::size_t kOpenedAtOnce = 256;
// One request in so many is of somebody whose prompts are not remembered.
constexpr std::uint64_t kFreshOneIn = 4;

std::size_t index_of(Point point) { return static_cast<std::size_t>(point); }

}  // namespace

struct LoadRun::Stream {
  Stream(const Address& address, const Question& asked, std::string_view body)
      : chat(address, body), question(asked), opened(monotonic_seconds()) {}

  ChatStream chat;
  const Question& question;
  double opened;
  double last_words = 0;  // 0: none yet
  bool is_writing = true;
};

LoadRun::LoadRun(const Options& options, const std::vector<Question>& questions)
    : options_(options),
      questions_(questions),
      random_(options.seed),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

LoadRun::~LoadRun() {
  streams_.clear();
  ::close(epoll_);
}

std::size_t LoadRun::draw(std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
}

void LoadRun::note(std::string fault) {
  if (figures_.faults.size() < kMostFaults) figures_.faults.push_back(std::move(fault));
}

void LoadRun::schedule(double seconds, std::size_t breaks) {
  const double now = monotonic_seconds();
  // The last ones come before the end, so that there is time to find streams for them.
  std::uniform_real_distribution<double> times(0, seconds * 0.95);
  break_times_.clear();
  due_ = {};
  for (std::size_t i = 0; i < breaks; ++i) break_times_.push_back(now + times(random_));
  std::sort(break_times_.begin(), break_times_.end(), std::greater<>());
}

Status LoadRun::keep(double seconds, std::size_t breaks) {
  schedule(seconds, breaks);
  std::vector<epoll_event> ready(kEventsAtOnce);
  const double end = monotonic_seconds() + seconds;
  figures_.fewest_open = options_.streams;
  bool was_full = open() >= options_.streams;
  for (double now = monotonic_seconds(); now < end; now = monotonic_seconds()) {
    if (was_full) figures_.fewest_open = std::min(figures_.fewest_open, open());
    for (std::size_t i = 0; open() < options_.streams && i < kOpenedAtOnce; ++i) open_one();
    was_full = was_full || open() >= options_.streams;
    while (!break_times_.empty() && break_times_.back() <= now) {
      due_[draw(kPoints)] += 1;
      break_times_.pop_back();
    }
    break_a_waiting_one();
    const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), kWaitMs);
    if (count < 0 && errno != EINTR) {
      return fail(ErrorCode::kIo, fmt::format("cannot wait: {}", std::strerror(errno)));
    }
    for (int i = 0; i < count; ++i) serve(ready[static_cast<std::size_t>(i)].data.fd);
    if (figures_.failed > options_.streams) {
      return fail(ErrorCode::kIo, "more answers fail than there are streams; see the faults");
    }
  }
  return {};
}

void LoadRun::open_one() {
  const Question& question = questions_[draw(questions_.size())];
  const std::uint64_t number = next_++;
  const bool is_fresh = draw(kFreshOneIn) == 0;
  const std::string body = is_fresh ? question.with_salt(number) : question.whole();
  auto stream = std::make_unique<Stream>(options_.address, question, body);
  const int socket = stream->chat.socket();
  if (socket < 0) {
    figures_.failed += 1;
    return note(stream->chat.error());
  }
  epoll_event interest = {};
  interest.events = EPOLLIN | EPOLLOUT;
  interest.data.fd = socket;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &interest);
  streams_.emplace(socket, std::move(stream));
}

void LoadRun::serve(int socket) {
  const auto found = streams_.find(socket);
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  const std::size_t events = stream.chat.move_on();
  if (stream.is_writing && stream.chat.state() != ChatStream::State::kSending) {
    stream.is_writing = false;
    epoll_event interest = {};
    interest.events = EPOLLIN;
    interest.data.fd = socket;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &interest);
    if (wants_break(Point::kSent)) return break_off(stream, Point::kSent);
  }
  const bool is_first = events > 0 && stream.last_words == 0;
  if (events > 0) take_words(stream, events);
  if (stream.chat.is_over()) return end(stream);
  if (is_first && wants_break(Point::kFirstWord)) return break_off(stream, Point::kFirstWord);
  if (events > 0 && !is_first && wants_break(Point::kSpeaking)) {
    break_off(stream, Point::kSpeaking);
  }
}

void LoadRun::take_words(Stream& stream, std::size_t events) {
  const double now = monotonic_seconds();
  figures_.events += events;
  if (stream.last_words == 0) {
    speaking_ += 1;
    figures_.first_words.push_back(static_cast<float>(now - stream.opened));
  } else {
    figures_.gaps.push_back(static_cast<float>(now - stream.last_words));
  }
  stream.last_words = now;
}

// Whether one is due; if so, it is taken.
bool LoadRun::wants_break(Point point) {
  std::size_t& due = due_[index_of(point)];
  if (due == 0) return false;
  due -= 1;
  return true;
}

void LoadRun::break_a_waiting_one() {
  if (due_[index_of(Point::kWaiting)] == 0) return;
  std::vector<Stream*> waiting;
  for (const auto& [socket, stream] : streams_) {
    if (stream->chat.has_head() && stream->last_words == 0) waiting.push_back(stream.get());
  }
  if (waiting.empty() || !wants_break(Point::kWaiting)) return;
  break_off(*waiting[draw(waiting.size())], Point::kWaiting);
}

void LoadRun::break_off(Stream& stream, Point point) {
  figures_.broken_off += 1;
  figures_.broken_off_at[index_of(point)] += 1;
  compare(stream);
  if (draw(2) == 0) stream.chat.reset_on_leaving();
  remove(stream);
}

void LoadRun::remove(Stream& stream) {
  if (stream.last_words > 0) speaking_ -= 1;
  streams_.erase(stream.chat.socket());
}

// Of an answer that is not whole, what there is.
void LoadRun::compare(const Stream& stream) {
  const std::string& text = stream.chat.text();
  const std::string& lone = stream.question.lone_text;
  const bool is_whole = stream.chat.state() == ChatStream::State::kDone;
  const bool is_same = is_whole ? text == lone : lone.starts_with(text);
  if (is_whole && is_same) figures_.finished += 1;
  if (!is_whole && !text.empty()) figures_.parts_compared += 1;
  if (is_same) return;
  figures_.wrong += 1;
  note(fmt::format("{}\n  alone:  {}\n  in the load: {}", stream.question.body, lone, text));
}

void LoadRun::end(Stream& stream) {
  if (stream.chat.state() == ChatStream::State::kFailed) {
    figures_.failed += 1;
    note(stream.chat.error());
  } else {
    compare(stream);
  }
  remove(stream);
}

void LoadRun::leave_all() {
  for (const auto& [socket, stream] : streams_) compare(*stream);
  streams_.clear();
  speaking_ = 0;
}

}  // namespace locket::stream_load
