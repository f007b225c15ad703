// A prompt as a list of segments: control tokens and plain text. Only text that the format itself
// inserts can become a control segment; text from outside stays plain whatever it spells.
// Neighbouring plain text is one segment, since it is one run for the tokenizer.
//
// SegmentWriter is not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

struct Segment {
  enum class Kind { kControl, kPlain, kCount };
  Kind kind = Kind::kPlain;
  std::string text;

  friend bool operator==(const Segment&, const Segment&) = default;
};

class SegmentWriter {
 public:
  // Text from outside. Never becomes a control token.
  void add_plain(std::string_view text);

  // One control token by its spelling.
  void add_control(std::string_view token);

  // The format's own text: the tokens of tool markup and thinking in it are control tokens.
  void add_template(std::string_view text);

  // Old assistant text: plain, except for the grounding tokens.
  void add_assistant_text(std::string_view text);

  // Segments so far.
  std::size_t size() const { return segments_.size(); }

  // REQUIRES: not used afterwards.
  std::vector<Segment> take() { return std::move(segments_); }

 private:
  void add_with_tokens(std::string_view text, std::span<const std::string_view> tokens);

  std::vector<Segment> segments_;
};

// Ids of the segments: plain ones encoded without added tokens, control ones by name. kUnsupported
// names the control token that the tokenizer does not have.
[[nodiscard]] Result<std::vector<tokenizer::TokenId>> encode_segments(
    std::span<const Segment> segments, const tokenizer::Tokenizer& tokenizer);

// The segments joined.
std::string join_segments(std::span<const Segment> segments);

}  // namespace locket::chat
