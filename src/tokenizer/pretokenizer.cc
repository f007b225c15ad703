#include "tokenizer/pretokenizer.h"

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "base/check.h"
#include "tokenizer/regex_dialect.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace locket::tokenizer {
namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
using Code = std::unique_ptr<pcre2_code, FreeCode>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatchData>;
using CompileContext = std::unique_ptr<pcre2_compile_context, FreeCompileContext>;

std::string library_message(int error) {
  std::string text(128, '\0');
  auto* buffer = reinterpret_cast<PCRE2_UCHAR*>(text.data());
  const int length = pcre2_get_error_message(error, buffer, text.size());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

Result<Code> compile_pattern(const std::string& pattern, std::uint32_t options) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  LOCKET_CHECK(context != nullptr);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options,
                          &error, &offset, context.get()));
  if (code == nullptr) return fail(ErrorCode::kBadCheckpoint, library_message(error));
  std::uint32_t can_match_nothing = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &can_match_nothing);
  if (can_match_nothing != 0) return fail(ErrorCode::kBadCheckpoint, "it can match nothing");
  // Where the machine allows no generated code, pcre2_match() interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

Result<Code> compile_split(const SplitPattern& split) {
  switch (split.kind) {
    case PatternKind::kRegex: {
      LOCKET_TRY(const std::string pattern, to_pcre2_pattern(split.pattern));
      return compile_pattern(pattern, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE);
    }
    case PatternKind::kLiteral:
      return compile_pattern(split.pattern, PCRE2_UTF | PCRE2_LITERAL);
    case PatternKind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The next match in `piece` from `begin` on; an empty range at the end of the piece if there is
// none.
Range next_match(const pcre2_code* code, std::string_view piece, std::size_t begin,
                 pcre2_match_data* data) {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  int found = pcre2_match(code, subject, piece.size(), begin, PCRE2_NO_UTF_CHECK, data, nullptr);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    constexpr std::uint32_t kInterpreted = PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT;
    found = pcre2_match(code, subject, piece.size(), begin, kInterpreted, data, nullptr);
  }
  if (found < 0) return {piece.size(), piece.size()};
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
  return {range[0], range[1]};
}

}  // namespace

struct Pretokenizer::Step {
  Code code;

  void cut(std::string_view piece, pcre2_match_data* data,
           std::vector<std::string_view>& pieces) const {
    std::size_t done = 0;
    while (done < piece.size()) {
      const Range match = next_match(code.get(), piece, done, data);
      if (match.begin > done) pieces.push_back(piece.substr(done, match.begin - done));
      if (match.end > match.begin)
        pieces.push_back(piece.substr(match.begin, match.end - match.begin));
      done = match.end;
    }
  }
};

Pretokenizer::Pretokenizer(std::vector<std::unique_ptr<const Step>> steps)
    : steps_(std::move(steps)) {}
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

Result<Pretokenizer> Pretokenizer::build(const std::vector<SplitPattern>& steps) {
  std::vector<std::unique_ptr<const Step>> built;
  for (const SplitPattern& split : steps) {
    Result<Code> code = compile_split(split);
    if (!code) {
      return fail(ErrorCode::kBadCheckpoint, fmt::format("pattern of pre_tokenizer step {}: {}",
                                                         built.size(), code.error().message));
    }
    built.push_back(std::make_unique<const Step>(Step{std::move(*code)}));
  }
  return Pretokenizer(std::move(built));
}

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  const MatchData data(pcre2_match_data_create(1, nullptr));
  LOCKET_CHECK(data != nullptr);
  for (const std::unique_ptr<const Step>& step : steps_) {
    std::vector<std::string_view> cut;
    cut.reserve(2 * pieces.size());
    for (const std::string_view piece : pieces) step->cut(piece, data.get(), cut);
    pieces = std::move(cut);
  }
  return pieces;
}

}  // namespace locket::tokenizer
