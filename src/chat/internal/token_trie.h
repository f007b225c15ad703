// The tokens of a vocabulary as one tree of bytes, laid out in the order of a walk: a node's
// descendants follow it, so that a mask is one pass that skips what does not fit. Control tokens
// are apart: each stands for a symbol.
//
// Most tokens are plain: whole characters, none of them a control character or one of " \\ <. Where
// plain characters change nothing, as inside a string, their mask is known, and only the tree of
// the other tokens is walked.
//
// Immutable and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/internal/byte_automaton.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

// Whether a plain token may hold the byte; bytes above 0x7F are judged as characters.
inline bool is_plain_byte(unsigned char byte) {
  return byte >= 0x20 && byte != '"' && byte != '\\' && byte != '<' && byte != 0x7F;
}

class TokenTrie {
 public:
  using TokenId = tokenizer::TokenId;

  struct Node {
    std::uint32_t end = 0;          // behind the last descendant
    std::uint32_t first_token = 0;  // into tokens()
    std::uint16_t token_count = 0;  // of exactly these bytes
    std::uint16_t depth = 0;        // bytes from the root, 1 ..
    std::uint8_t byte = 0;
  };

  struct ControlToken {
    TokenId id = 0;
    Symbol symbol = kOtherControlSymbol;
  };

  TokenTrie(const tokenizer::Tokenizer& tokenizer, TokenId end_token);

  std::size_t vocabulary_size() const { return vocabulary_size_; }
  TokenId end_token() const { return end_token_; }
  std::size_t max_depth() const { return max_depth_; }
  // Of all tokens but the control tokens, and of those that are not plain.
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Node> odd_nodes() const { return odd_nodes_; }
  // [(vocabulary + 63) / 64]
  std::span<const std::uint64_t> plain_mask() const { return plain_mask_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  // All but the end token.
  std::span<const ControlToken> control_tokens() const { return control_tokens_; }

  // The symbols that a token stands for; nothing for unknown ids and for the end token.
  std::vector<Symbol> symbols(TokenId token) const;

 private:
  std::vector<Node> build(std::vector<TokenId> ids);

  std::size_t vocabulary_size_;
  TokenId end_token_;
  std::size_t max_depth_ = 0;
  std::vector<std::string> bytes_;  // [vocabulary], empty for control tokens
  std::vector<std::uint64_t> plain_mask_;
  std::vector<Node> nodes_;
  std::vector<Node> odd_nodes_;
  std::vector<TokenId> tokens_;
  std::vector<ControlToken> control_tokens_;
};

}  // namespace locket::chat
