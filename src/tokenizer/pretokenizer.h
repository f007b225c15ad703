// Cuts text into the pieces within which byte pairs are merged: each step of tokenizer.json's
// pre-tokenizer cuts the pieces of the step before at its matches. A piece is matched on its own,
// so a pattern sees nothing beyond it. Immutable, thread-safe.
//
// Where a pattern passes the regex library's bound of backtracking, the rest of the piece at hand
// is left uncut by this step. The patterns of the released files need a bounded number of steps per
// byte.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer_json.h"

namespace locket::tokenizer {

class Pretokenizer {
 public:
  // kBadCheckpoint names the step and what is wrong with its pattern. A pattern that can match
  // nothing is refused.
  [[nodiscard]] static Result<Pretokenizer> build(const std::vector<SplitPattern>& steps);

  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // The pieces in order; joined they are `text`, and none is empty. Views into `text`. REQUIRES:
  // valid UTF-8.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Step;
  explicit Pretokenizer(std::vector<std::unique_ptr<const Step>> steps);
  std::vector<std::unique_ptr<const Step>> steps_;
};

}  // namespace locket::tokenizer
