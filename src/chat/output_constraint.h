// What a model may say next, byte by byte, where a request asks for JSON, for a schema or for a
// call: an automaton over bytes, and the set of tokens that it lets pass. Everything that a client
// can size is bounded: depth, states, schema bytes, the time to build and to step.
//
// The automaton knows where the model's output starts (ParserStart): reasoning is free, the answer
// is bound. Blanks between JSON tokens are bounded (case D24); the end token is allowed exactly
// where the answer may end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/reply.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

// The tokens of a vocabulary as bytes, arranged for masks. Immutable and thread-safe; made once per
// tokenizer.
class TokenBytes {
 public:
  TokenBytes(const tokenizer::Tokenizer& tokenizer, tokenizer::TokenId end_token);
  ~TokenBytes();

  std::size_t vocabulary_size() const;
  std::size_t mask_words() const { return (vocabulary_size() + 63) / 64; }

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<const State> state_;
};

// What a request's constraint was compiled to. Immutable, may be shared by its choices and by
// requests with the same schema.
class ConstraintGrammar {
 public:
  // None: the request binds nothing. kBadRequest names the place in the schema, the keyword and the
  // rule, or the limit that was passed.
  [[nodiscard]] static Result<std::shared_ptr<const ConstraintGrammar>> compile(
      const ChatRequest& request, const ParserStart& start);

  struct State;
  // For compile().
  explicit ConstraintGrammar(std::unique_ptr<const State> state);
  ~ConstraintGrammar();
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<const State> state_;
};

// One choice's way through a grammar. Not thread-safe.
class OutputConstraint {
 public:
  OutputConstraint(std::shared_ptr<const ConstraintGrammar> grammar,
                   std::shared_ptr<const TokenBytes> tokens);
  OutputConstraint(OutputConstraint&&) noexcept;
  ~OutputConstraint();

  // A bit per token id that may come next [mask_words]; empty: every token may. Valid until the
  // next call. Never all zero: where nothing else fits, the end token is allowed.
  std::span<const std::uint64_t> allowed();
  // The token that was chosen. Tokens that allowed() excludes end the constraint: all is free then.
  void advance(tokenizer::TokenId token);
  // The answer is complete: nothing but the end token may follow.
  bool is_complete() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket::chat
