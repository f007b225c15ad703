// A prompt as a list of segments: control tokens, plain text, and tokens that the model sampled
// earlier. Only text that the format itself inserts can become a control segment; text from outside
// stays plain whatever it spells. Neighbouring plain text is one segment, since it is one run for
// the tokenizer; sampled tokens are a segment of their own and never join with what is beside them.
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
  enum class Kind { kControl, kPlain, kSampled, kCount };
  Kind kind = Kind::kPlain;
  std::string text;                          // kSampled: for people; empty until show_sampled()
  std::vector<tokenizer::TokenId> ids = {};  // kSampled

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

  // Tokens that the model sampled, as they are.
  void add_sampled(std::span<const tokenizer::TokenId> ids);

  // Segments so far.
  std::size_t size() const { return segments_.size(); }

  // REQUIRES: not used afterwards.
  std::vector<Segment> take() { return std::move(segments_); }

 private:
  void add_with_tokens(std::string_view text, std::span<const std::string_view> tokens);

  std::vector<Segment> segments_;
};

// Ids of the segments: plain ones encoded without added tokens, control ones by name, sampled ones
// as they are. kUnsupported names the control token, or the sampled id, that the tokenizer does not
// have.
[[nodiscard]] Result<std::vector<tokenizer::TokenId>> encode_segments(
    std::span<const Segment> segments, const tokenizer::Tokenizer& tokenizer);

// Gives sampled segments the text that their tokens stand for.
void show_sampled(std::span<Segment> segments, const tokenizer::Tokenizer& tokenizer);

// The texts of the segments joined.
std::string join_segments(std::span<const Segment> segments);

}  // namespace locket::chat
