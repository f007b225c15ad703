#include "tokenizer/tokenizer.h"

#include <cstddef>
#include <fmt/format.h>
#include <utility>

#include "base/file.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace locket::tokenizer {
namespace {

// The largest released file has 8 MB.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

// `text` if it is valid UTF-8, else its repaired form, which `storage` holds.
std::string_view repaired_view(std::string_view text, std::string& storage) {
  if (is_valid_utf8(text)) return text;
  storage = repair_utf8(text);
  return storage;
}

}  // namespace

struct Tokenizer::State {
  Vocabulary vocabulary;
  SpecialTokens special_tokens;
  Pretokenizer pretokenizer;
  BytePairEncoder encoder;

  static Result<std::unique_ptr<const State>> build(TokenizerFile file) {
    LOCKET_TRY(Vocabulary vocabulary, Vocabulary::build(file.vocabulary, file.added_tokens));
    LOCKET_TRY(BytePairEncoder encoder,
               BytePairEncoder::build(file.merges, BaseIndex(file.vocabulary), file.missing_bytes));
    LOCKET_TRY(Pretokenizer pretokenizer, Pretokenizer::build(file.splits));
    LOCKET_TRY(SpecialTokens special_tokens, SpecialTokens::build(std::move(file.added_tokens)));
    return std::make_unique<const State>(State{std::move(vocabulary), std::move(special_tokens),
                                               std::move(pretokenizer), std::move(encoder)});
  }

  // REQUIRES: valid UTF-8.
  void append_ids(std::string_view text, std::vector<TokenId>& ids) const {
    BytePairEncoder::Scratch scratch;
    for (const std::string_view piece : pretokenizer.split(text)) {
      encoder.encode(piece, scratch, ids);
    }
  }
};

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  LOCKET_TRY(const std::string text, read_whole_file(path, kMaxFileBytes));
  return parse(text, path.string());
}

Result<Tokenizer> Tokenizer::parse(std::string_view json_text, std::string_view name) {
  Result<TokenizerFile> file = parse_tokenizer_file(json_text);
  if (!file) return fail(file.error().code, fmt::format("{}: {}", name, file.error().message));
  return build(std::move(*file), name);
}

Result<Tokenizer> Tokenizer::build(TokenizerFile file, std::string_view name) {
  auto state = State::build(std::move(file));
  if (!state) {
    return fail(state.error().code, fmt::format("{}: {}", name, state.error().message));
  }
  return Tokenizer(std::move(*state));
}

std::vector<TokenId> Tokenizer::encode_text(std::string_view text) const {
  std::string storage;
  std::vector<TokenId> ids;
  state_->append_ids(repaired_view(text, storage), ids);
  return ids;
}

std::vector<TokenId> Tokenizer::encode_with_added_tokens(std::string_view text) const {
  std::string storage;
  std::vector<TokenId> ids;
  for (const TextPart& part : state_->special_tokens.split(repaired_view(text, storage))) {
    if (part.added_token) {
      ids.push_back(*part.added_token);
    } else {
      state_->append_ids(part.text, ids);
    }
  }
  return ids;
}

std::string Tokenizer::decode_bytes(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes.append(state_->vocabulary.bytes(id));
  return bytes;
}

std::size_t Tokenizer::vocabulary_size() const { return state_->vocabulary.size(); }

std::optional<TokenId> Tokenizer::find_added_token(std::string_view spelling) const {
  return state_->special_tokens.find(spelling);
}

bool Tokenizer::is_added_token(TokenId id) const { return state_->special_tokens.is_added(id); }

bool Tokenizer::is_special_token(TokenId id) const { return state_->special_tokens.is_special(id); }

std::string_view Tokenizer::vocabulary_entry(TokenId id) const {
  return state_->vocabulary.spelling(id);
}

}  // namespace locket::tokenizer
