// Many streams at once, on one thread: keeps a number of them open, a new request for every one
// that ends, breaks some off, and compares every word with what the same request says alone. Not
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "stream_load/chat_stream.h"
#include "stream_load/questions.h"

namespace locket::stream_load {

// When a client leaves: the request is sent; the answer has begun, without a word; its first word
// has come; it is in the middle.
enum class Point { kSent, kWaiting, kFirstWord, kSpeaking, kCount };
inline constexpr std::size_t kPoints = static_cast<std::size_t>(Point::kCount);

struct LoadFigures {
  std::size_t finished = 0;        // the same text as alone
  std::size_t wrong = 0;           // another text, also of a part
  std::size_t failed = 0;          // no answer
  std::size_t broken_off = 0;      // by a client, all points together
  std::size_t parts_compared = 0;  // answers that were broken off after a word
  std::array<std::size_t, kPoints> broken_off_at = {};
  std::size_t events = 0;           // with words
  std::size_t fewest_open = 0;      // streams, seen whenever something happened
  std::vector<float> gaps;          // seconds between two events of a stream
  std::vector<float> first_words;   // seconds from opening a stream
  std::vector<std::string> faults;  // the first few
};

class LoadRun {
 public:
  struct Options {
    Address address;
    std::size_t streams = 64;
    std::uint64_t seed = 1;
  };

  // `questions` have their lone answers and must outlive it.
  LoadRun(const Options& options, const std::vector<Question>& questions);
  LoadRun(const LoadRun&) = delete;
  LoadRun& operator=(const LoadRun&) = delete;
  ~LoadRun();

  // Keeps the streams open for so long, with so many broken off at points of chance.
  [[nodiscard]] Status keep(double seconds, std::size_t breaks);
  // Streams that have said a word.
  std::size_t speaking() const { return speaking_; }
  std::size_t open() const { return streams_.size(); }
  // Breaks off all that is open; what it has said is compared.
  void leave_all();

  const LoadFigures& figures() const { return figures_; }
  void forget_figures() { figures_ = {}; }

 private:
  struct Stream;

  void open_one();
  void serve(int socket);
  // The stream is gone afterwards.
  void end(Stream& stream);
  void break_off(Stream& stream, Point point);
  void remove(Stream& stream);
  void compare(const Stream& stream);
  void take_words(Stream& stream, std::size_t events);
  bool wants_break(Point point);
  void break_a_waiting_one();
  void schedule(double seconds, std::size_t breaks);
  void note(std::string fault);
  std::size_t draw(std::size_t count);

  Options options_;
  const std::vector<Question>& questions_;
  std::mt19937_64 random_;
  int epoll_ = -1;
  std::unordered_map<int, std::unique_ptr<Stream>> streams_;  // by socket
  std::size_t speaking_ = 0;
  std::uint64_t next_ = 0;
  std::vector<double> break_times_;  // latest first
  std::array<std::size_t, kPoints> due_ = {};
  LoadFigures figures_;
};

}  // namespace locket::stream_load
