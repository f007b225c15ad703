#include "chat/internal/token_trie.h"

#include <algorithm>
#include <limits>

#include "chat/internal/utf8_step.h"
#include "chat/markup.h"

namespace locket::chat {
namespace {

Symbol symbol_of(const tokenizer::Tokenizer& tokenizer, tokenizer::TokenId id) {
  if (tokenizer.find_added_token(kThinkClose) == id) return kThinkCloseSymbol;
  if (tokenizer.find_added_token(kDsml) == id) return kDsmlSymbol;
  return kOtherControlSymbol;
}

std::size_t common_prefix(std::string_view one, std::string_view other) {
  const auto [end, unused] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return static_cast<std::size_t>(end - one.begin());
}

bool is_plain_text(std::string_view bytes) {
  Utf8Place place = Utf8Place::kBetween;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    const std::optional<Utf8Place> next = utf8_step(place, value);
    if (!next || !is_plain_byte(value)) return false;
    place = *next;
  }
  return place == Utf8Place::kBetween;
}

}  // namespace

TokenTrie::TokenTrie(const tokenizer::Tokenizer& tokenizer, TokenId end_token)
    : vocabulary_size_(tokenizer.vocabulary_size()),
      end_token_(end_token),
      bytes_(vocabulary_size_),
      plain_mask_((vocabulary_size_ + 63) / 64) {
  std::vector<TokenId> all;
  std::vector<TokenId> odd;
  for (std::size_t index = 0; index < vocabulary_size_; ++index) {
    const auto id = static_cast<TokenId>(index);
    if (id == end_token) continue;
    if (tokenizer.is_added_token(id)) {
      control_tokens_.push_back({id, symbol_of(tokenizer, id)});
      continue;
    }
    std::string bytes = tokenizer.decode_bytes({&id, 1});
    // A longer token has no place in a node; none is near that.
    if (bytes.empty() || bytes.size() > std::numeric_limits<std::uint16_t>::max()) continue;
    all.push_back(id);
    if (is_plain_text(bytes)) {
      plain_mask_[index / 64] |= std::uint64_t{1} << (index % 64);
    } else {
      odd.push_back(id);
    }
    bytes_[index] = std::move(bytes);
  }
  nodes_ = build(std::move(all));
  odd_nodes_ = build(std::move(odd));
}

std::vector<TokenTrie::Node> TokenTrie::build(std::vector<TokenId> ids) {
  const auto bytes_of = [this](TokenId id) -> const std::string& {
    return bytes_[static_cast<std::size_t>(id)];
  };
  std::sort(ids.begin(), ids.end(), [&](TokenId one, TokenId other) {
    return bytes_of(one) != bytes_of(other) ? bytes_of(one) < bytes_of(other) : one < other;
  });
  std::vector<Node> nodes;
  std::vector<std::uint32_t> open;  // the nodes from the root to the last one
  const auto close_to = [&](std::size_t depth) {
    while (open.size() > depth) {
      nodes[open.back()].end = static_cast<std::uint32_t>(nodes.size());
      open.pop_back();
    }
  };
  std::string_view last;
  for (const TokenId id : ids) {
    const std::string& bytes = bytes_of(id);
    close_to(common_prefix(last, bytes));
    while (open.size() < bytes.size()) {
      Node node;
      node.byte = static_cast<std::uint8_t>(bytes[open.size()]);
      node.depth = static_cast<std::uint16_t>(open.size() + 1);
      open.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back(node);
    }
    Node& node = nodes[open.back()];
    if (node.token_count == 0) node.first_token = static_cast<std::uint32_t>(tokens_.size());
    ++node.token_count;
    tokens_.push_back(id);
    max_depth_ = std::max(max_depth_, bytes.size());
    last = bytes;
  }
  close_to(0);
  return nodes;
}

std::vector<Symbol> TokenTrie::symbols(TokenId token) const {
  std::vector<Symbol> out;
  if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_size_) return out;
  for (const char byte : bytes_[static_cast<std::size_t>(token)]) {
    out.push_back(static_cast<unsigned char>(byte));
  }
  if (!out.empty()) return out;
  for (const ControlToken& control : control_tokens_) {
    if (control.id == token) out.push_back(control.symbol);
  }
  return out;
}

}  // namespace locket::chat
