#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace locket::tokenizer {

Result<SpecialTokens> SpecialTokens::build(std::vector<AddedToken> tokens) {
  SpecialTokens built;
  std::array<std::set<std::size_t, std::greater<>>, 2> lengths;
  for (AddedToken& token : tokens) {
    if (built.find(token.spelling) || built.is_added(token.id)) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("added_tokens has \"{}\" with the id {} although one of the two is "
                              "there already",
                              token.spelling, token.id));
    }
    const std::size_t pass_index = token.normalized ? 1 : 0;
    Pass& pass = built.passes_[pass_index];
    pass.is_first_byte[static_cast<std::uint8_t>(token.spelling.front())] = true;
    lengths[pass_index].insert(token.spelling.size());
    built.special_by_id_.emplace(token.id, token.special);
    pass.ids.emplace(std::move(token.spelling), token.id);
  }
  for (std::size_t pass = 0; pass < lengths.size(); ++pass) {
    built.passes_[pass].lengths.assign(lengths[pass].begin(), lengths[pass].end());
  }
  return built;
}

std::optional<TokenId> SpecialTokens::find(std::string_view spelling) const {
  for (const Pass& pass : passes_) {
    if (const auto found = pass.ids.find(spelling); found != pass.ids.end()) return found->second;
  }
  return std::nullopt;
}

bool SpecialTokens::is_special(TokenId id) const {
  const auto found = special_by_id_.find(id);
  return found != special_by_id_.end() && found->second;
}

std::vector<TextPart> SpecialTokens::split(std::string_view text) const {
  std::vector<TextPart> first;
  append_parts(passes_[0], text, first);
  std::vector<TextPart> parts;
  for (const TextPart& part : first) {
    if (part.added_token) {
      parts.push_back(part);
    } else {
      append_parts(passes_[1], part.text, parts);
    }
  }
  return parts;
}

void SpecialTokens::append_parts(const Pass& pass, std::string_view text,
                                 std::vector<TextPart>& parts) {
  std::size_t plain_begin = 0;
  std::size_t place = 0;
  while (place < text.size()) {
    const std::optional<TextPart> token = token_at(pass, text.substr(place));
    if (!token) {
      ++place;
      continue;
    }
    if (place > plain_begin) parts.push_back({text.substr(plain_begin, place - plain_begin), {}});
    parts.push_back(*token);
    place += token->text.size();
    plain_begin = place;
  }
  if (plain_begin < text.size()) parts.push_back({text.substr(plain_begin), {}});
}

std::optional<TextPart> SpecialTokens::token_at(const Pass& pass, std::string_view text) {
  if (!pass.is_first_byte[static_cast<std::uint8_t>(text.front())]) return std::nullopt;
  for (const std::size_t length : pass.lengths) {
    if (length > text.size()) continue;
    const auto found = pass.ids.find(text.substr(0, length));
    if (found != pass.ids.end()) return TextPart{text.substr(0, length), found->second};
  }
  return std::nullopt;
}

}  // namespace locket::tokenizer
