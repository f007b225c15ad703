// The answer part of a model's output, byte by byte: what becomes content, where a stop string ends
// it and where a call block begins. A stop string that is kept is written as it is. Two forms with
// the same shape: PlainAnswer for text, JsonAnswer for json_object mode. Text is appended to `out`
// as soon as it is certain. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/reply.h"
#include "chat/stop_scanner.h"

namespace locket::chat {

enum class LeadingNewlines { kDrop, kKeep, kCount };

// Holds newlines back until it is known what follows them.
class NewlineGate {
 public:
  explicit NewlineGate(LeadingNewlines leading)
      : drops_leading_(leading == LeadingNewlines::kDrop) {}

  void put(std::string_view text, std::string& out);
  // The held newlines are text after all.
  void release(std::string& out);
  // The held newlines belong to the markup that follows.
  void swallow() { held_ = 0; }

 private:
  bool drops_leading_;
  std::size_t held_ = 0;
};

enum class AnswerStep {
  kGoOn,
  kStopped,     // a stop string has ended; StopText says whether its text is written
  kCallOpened,  // `<｜DSML｜` has ended
  kCount
};

class PlainAnswer {
 public:
  PlainAnswer(std::vector<std::string> stop, StopText stop_text, LeadingNewlines leading);

  AnswerStep push(char byte, std::string& out);
  void finish(std::string& out);
  std::optional<std::size_t> stop_index() const { return stop_index_; }

 private:
  std::size_t stop_count_;
  StopText stop_text_;
  StopScanner scanner_;
  NewlineGate gate_;
  std::optional<std::size_t> stop_index_;
};

// Text before the first `{` or `[` and after the end becomes one space, fences and newlines there
// nothing. The end is a line that starts with a fence. Behind a whole value without fences the text
// stays, as in a plain answer. The value itself is not checked. Stop strings count inside only.
class JsonAnswer {
 public:
  JsonAnswer(std::vector<std::string> stop, StopText stop_text);

  AnswerStep push(char byte, std::string& out);
  void finish(std::string& out);
  std::optional<std::size_t> stop_index() const { return stop_index_; }

 private:
  enum class State { kBefore, kFence, kInside, kAfter, kCount };

  AnswerStep push_before(char byte, std::string& out);
  AnswerStep push_inside(char byte, std::string& out);
  AnswerStep push_after(char byte, std::string& out);
  void put_outside(std::string_view text, std::string& out);
  void follow_value(char byte);

  State state_ = State::kBefore;
  bool has_gap_ = false;  // the space for the text outside is written
  std::size_t stop_count_;
  StopText stop_text_;
  StopScanner before_;
  StopScanner inside_;
  StopScanner after_;
  NewlineGate gate_;
  std::optional<std::size_t> stop_index_;

  // Where in the value the last byte stands.
  std::size_t depth_ = 0;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool is_whole_ = false;
};

}  // namespace locket::chat
