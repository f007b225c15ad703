#include "tokenizer/gguf_tokenizer.h"

#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

#include "tokenizer/utf8.h"

namespace locket::tokenizer {
namespace {

// Of a token, as the format numbers them.
constexpr std::int64_t kNormal = 1;
constexpr std::int64_t kControl = 3;
constexpr std::int64_t kUserDefined = 4;
constexpr std::int64_t kUnused = 5;

constexpr std::string_view kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";
// DeepSeek LLM: letters of alphabets that have capitals; punctuation, where `:-~` takes the plain
// letters along; Chinese characters and Hangul.
constexpr std::string_view kCasedLetters =
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-"
    "\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-"
    "\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556"
    "\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B"
    "\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D"
    "\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE"
    "\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128"
    "\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184"
    "\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B"
    "\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17"
    "\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8"
    "-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943]+";
constexpr std::string_view kPunctuation =
    "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
constexpr std::string_view kCharacters = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";

struct PreTokenizer {
  std::string_view name;
  std::vector<std::string_view> patterns;
};

std::vector<PreTokenizer> pre_tokenizers() {
  return {
      {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2, "\\p{N}+", "[0-9][0-9][0-9]"}},
      {"gpt-2", {kGpt2}},
      {"smollm", {"\\p{N}", kGpt2}},
      {"deepseek-llm", {"[\r\n]", kCasedLetters, kPunctuation, "\\s+$", kCharacters, "\\p{N}+"}},
  };
}

Result<std::vector<SplitPattern>> splits_of(std::string_view pre) {
  if (pre.empty()) pre = "default";
  std::vector<std::string_view> known;
  for (const PreTokenizer& one : pre_tokenizers()) {
    known.push_back(one.name);
    if (one.name != pre) continue;
    std::vector<SplitPattern> splits;
    for (const std::string_view pattern : one.patterns) {
      splits.push_back({.kind = PatternKind::kRegex, .pattern = std::string(pattern)});
    }
    return splits;
  }
  return fail(ErrorCode::kUnsupported, fmt::format("tokenizer.ggml.pre is {} (one of {} is needed)",
                                                   repair_utf8(pre), fmt::join(known, ", ")));
}

Status add_token(const GgufVocabulary& vocabulary, std::size_t id, TokenizerFile& file) {
  const std::string& spelling = vocabulary.tokens[id];
  const std::int64_t type = vocabulary.token_types[id];
  if (!is_valid_utf8(spelling) || spelling.empty()) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("token {} has the spelling \"{}\", which is empty or no UTF-8", id,
                            repair_utf8(spelling)));
  }
  const auto number = static_cast<TokenId>(id);
  if (type == kNormal || type == kUnused) {
    file.vocabulary.push_back({.spelling = spelling, .id = number});
  } else if (type == kControl || type == kUserDefined) {
    file.added_tokens.push_back(
        {.spelling = spelling, .id = number, .special = type == kControl, .normalized = false});
  } else {
    return fail(ErrorCode::kUnsupported,
                fmt::format("token {} has the type {} (1, 3, 4 or 5 is needed)", id, type));
  }
  return {};
}

// The space between the pieces is the only one: pieces spell a space differently.
std::optional<Merge> parse_merge(const std::string& text) {
  const std::size_t space = text.find(' ', 1);
  if (space == text.npos || space + 1 == text.size() || !is_valid_utf8(text)) return std::nullopt;
  return Merge{.left = text.substr(0, space), .right = text.substr(space + 1)};
}

}  // namespace

Result<TokenizerFile> gguf_tokenizer_file(const GgufVocabulary& vocabulary) {
  if (vocabulary.model != "gpt2") {
    return fail(ErrorCode::kUnsupported,
                fmt::format("tokenizer.ggml.model is {} (gpt2, a byte-level BPE, is needed)",
                            repair_utf8(vocabulary.model)));
  }
  if (vocabulary.token_types.size() != vocabulary.tokens.size()) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens",
                            vocabulary.token_types.size(), vocabulary.tokens.size()));
  }
  TokenizerFile file;
  // Vocabularies are made from a corpus here, and no corpus has every control character.
  file.missing_bytes = MissingBytes::kLeftOut;
  LOCKET_TRY(file.splits, splits_of(vocabulary.pre));
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    LOCKET_TRY_STATUS(add_token(vocabulary, id, file));
  }
  for (const std::string& text : vocabulary.merges) {
    std::optional<Merge> merge = parse_merge(text);
    if (!merge) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("tokenizer.ggml.merges[{}] is \"{}\" (two pieces with a space "
                              "between are needed)",
                              file.merges.size(), repair_utf8(text)));
    }
    file.merges.push_back(std::move(*merge));
  }
  return file;
}

Result<Tokenizer> make_gguf_tokenizer(const GgufVocabulary& vocabulary, std::string_view name) {
  Result<TokenizerFile> file = gguf_tokenizer_file(vocabulary);
  if (!file) {
    return fail(file.error().code, fmt::format("{}: {}", name, file.error().message));
  }
  return Tokenizer::build(std::move(*file), name);
}

}  // namespace locket::tokenizer
