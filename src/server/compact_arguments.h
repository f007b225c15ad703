// Arguments of a call, as the model wrote them, to the text that JavaScript's JSON.stringify makes
// of them: no blanks, the shortest escapes, numbers in JavaScript's form. Many clients parse and
// re-write arguments before they send them back; in this form the same call comes back as the same
// bytes from all.
//
// Text comes in any pieces and leaves as soon as it is decided, so a stream and a whole body say
// the same. From the first byte that is not JSON on everything passes unchanged: the result is JSON
// exactly if the input was, and means the same.
//
// Two things are kept where JavaScript would lose them: the order of keys (and keys that occur
// twice), and the digits of integers, which other clients read exactly. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace locket::server {

class CompactArguments {
 public:
  // What of the text so far can be written now.
  std::string push(std::string_view text);
  // The rest. The text is over.
  std::string finish();

 private:
  enum class Mode {
    kBetween,  // where blanks are dropped
    kString,
    kEscape,   // behind a backslash
    kUnicode,  // in the digits of \u
    kNumber,
    kLiteral,
    kBroken,  // not JSON
    kCount
  };
  enum class Expected {
    kValue,
    kFirstItem,  // a value or ]
    kFirstKey,   // a key or }
    kKey,
    kColon,
    kNext,  // a comma or the closer
    kEnd,
    kCount
  };

  void step(char byte, std::string& out);
  void step_between(char byte, std::string& out);
  void step_string(char byte, std::string& out);
  void step_escape(char byte, std::string& out);
  void step_unicode(char byte, std::string& out);
  void step_literal(char byte, std::string& out);
  bool step_value(char byte, std::string& out);
  bool step_next(char byte, std::string& out);

  void open(char bracket, Expected expected, std::string& out);
  void open_string(Expected behind, std::string& out);
  bool close(char bracket, std::string& out);
  void end_value();
  bool end_number(std::string& out);
  void add_code_unit(std::uint32_t unit, std::string& out);
  void release_surrogate(std::string& out);
  void break_off(char byte, std::string& out);

  Mode mode_ = Mode::kBetween;
  Expected expected_ = Expected::kValue;
  Expected behind_string_ = Expected::kNext;
  std::string open_;     // the brackets that are open
  std::string pending_;  // read and not decided: blanks, a number, a literal, an escape
  std::uint32_t high_surrogate_ = 0;  // read, and waiting for its other half; 0: none
};

std::string compact_arguments(std::string_view text);

// A finite number as JavaScript writes it: 1, 0.5, 1e+21, 1e-7.
std::string javascript_number(double value);

}  // namespace locket::server
