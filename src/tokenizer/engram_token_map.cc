#include "tokenizer/engram_token_map.h"

#include <fmt/format.h>
#include <string>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace locket::tokenizer {
namespace {

using icu::UnicodeString;

struct Normalizers {
  const icu::Normalizer2* nfkc = nullptr;
  const icu::Normalizer2* nfd = nullptr;
};

tl::unexpected<Error> icu_error(std::string_view what, UErrorCode code) {
  return fail(ErrorCode::kInternal, fmt::format("ICU: {} failed: {}", what, u_errorName(code)));
}

Result<Normalizers> find_normalizers() {
  UErrorCode code = U_ZERO_ERROR;
  Normalizers normalizers;
  normalizers.nfkc = icu::Normalizer2::getNFKCInstance(code);
  normalizers.nfd = icu::Normalizer2::getNFDInstance(code);
  if (U_FAILURE(code)) return icu_error("loading the normalization data", code);
  return normalizers;
}

bool is_combining_mark(UChar32 character) { return (U_GET_GC_MASK(character) & U_GC_M_MASK) != 0; }

bool is_plain_space(UChar32 character) {
  return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

// Marks dropped, each character lowered on its own (no rule for final sigma), runs of plain spaces
// made one.
UnicodeString fold_characters(const UnicodeString& text) {
  UnicodeString folded;
  bool after_space = false;
  for (std::int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1)) {
    const UChar32 character = text.char32At(at);
    if (is_combining_mark(character)) continue;
    const bool is_space = is_plain_space(character);
    if (!is_space) folded.append(u_tolower(character));
    if (is_space && !after_space) folded.append(static_cast<UChar32>(' '));
    after_space = is_space;
  }
  return folded;
}

void trim(UnicodeString& text) {
  std::int32_t begin = 0;
  std::int32_t end = text.length();
  while (begin < end && u_isUWhiteSpace(text.char32At(begin)) != 0) {
    begin = text.moveIndex32(begin, 1);
  }
  while (end > begin) {
    const std::int32_t last = text.moveIndex32(end, -1);
    if (u_isUWhiteSpace(text.char32At(last)) == 0) break;
    end = last;
  }
  text.setTo(UnicodeString(text, begin, end - begin));
}

Result<std::string> normalized_key(const Normalizers& normalizers, const std::string& text) {
  UErrorCode code = U_ZERO_ERROR;
  const UnicodeString compatible = normalizers.nfkc->normalize(UnicodeString::fromUTF8(text), code);
  const UnicodeString decomposed = normalizers.nfd->normalize(compatible, code);
  if (U_FAILURE(code)) return icu_error("normalizing a vocabulary entry", code);
  UnicodeString folded = fold_characters(decomposed);
  if (folded != UnicodeString(' ')) trim(folded);
  if (folded.isEmpty()) return text;
  std::string key;
  folded.toUTF8String(key);
  return key;
}

Result<std::string> key_of(const Tokenizer& tokenizer, TokenId id, const Normalizers& normalizers) {
  const std::string text = repair_utf8(tokenizer.decode_bytes({&id, 1}));
  if (text.find(kReplacementCharacter) != std::string::npos) {
    return std::string(tokenizer.vocabulary_entry(id));
  }
  return normalized_key(normalizers, text);
}

}  // namespace

Result<std::vector<std::int32_t>> make_engram_token_map(const Tokenizer& tokenizer) {
  LOCKET_TRY(const Normalizers normalizers, find_normalizers());
  std::unordered_map<std::string, std::int32_t> classes;
  std::vector<std::int32_t> map;
  map.reserve(tokenizer.vocabulary_size());
  for (std::size_t index = 0; index < tokenizer.vocabulary_size(); ++index) {
    LOCKET_TRY(std::string key, key_of(tokenizer, static_cast<TokenId>(index), normalizers));
    const auto next_class = static_cast<std::int32_t>(classes.size());
    map.push_back(classes.try_emplace(std::move(key), next_class).first->second);
  }
  return map;
}

}  // namespace locket::tokenizer
