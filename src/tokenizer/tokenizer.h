// Byte-level BPE as a tokenizer.json states it: pre-tokenizer splits, base vocabulary and merges,
// added tokens. Immutable after load, so every member is thread-safe.
//
// Text from outside is encoded with encode_text() and can never yield the id of an added token;
// control tokens come from find_added_token() only (prompt encoding, section "what may become a
// control token"). No BOS or EOS is ever added.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace locket::tokenizer {

using TokenId = std::int32_t;

struct TokenizerFile;

class Tokenizer {
 public:
  // Reads a tokenizer.json. kBadCheckpoint names the file, the part and what is wrong with it
  // (a Git LFS pointer, another model type, an unknown pre-tokenizer, a merge of unknown pieces,
  // ...).
  [[nodiscard]] static Result<Tokenizer> load(const std::filesystem::path& path);
  // The same from the file's text; `name` is used in messages.
  [[nodiscard]] static Result<Tokenizer> parse(std::string_view json_text, std::string_view name);

  // The same from its parts, wherever they come from.
  [[nodiscard]] static Result<Tokenizer> build(TokenizerFile file, std::string_view name);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Ids of plain text: added tokens are not matched. Invalid UTF-8 is repaired first: one U+FFFD
  // per maximal broken part.
  std::vector<TokenId> encode_text(std::string_view text) const;

  // As encode_text(), but added tokens are matched in the text (longest first at a place). For
  // comparison with outside libraries; never for text from outside.
  std::vector<TokenId> encode_with_added_tokens(std::string_view text) const;

  // The exact bytes of the ids; unknown ids give nothing.
  std::string decode_bytes(std::span<const TokenId> ids) const;

  // Ids 0 .. vocabulary_size() - 1 exist (base and added).
  std::size_t vocabulary_size() const;

  // Id of an added token by its spelling, for example "<｜User｜>".
  std::optional<TokenId> find_added_token(std::string_view spelling) const;

  bool is_added_token(TokenId id) const;
  // The `special` flag of an added token.
  bool is_special_token(TokenId id) const;

  // The entry as the file spells it (byte-level alphabet for base tokens). Empty for unknown ids.
  std::string_view vocabulary_entry(TokenId id) const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

// Replaces every maximal broken part by U+FFFD; valid text comes back unchanged.
std::string repair_utf8(std::string_view bytes);

// Turns ids into text piece by piece: never emits half a character. A broken byte becomes U+FFFD as
// soon as it cannot be completed, at the latest after 4 bytes. Not thread-safe. Keeps a reference
// to the tokenizer, which must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer);

  // The text that has become certain with this id; may be empty.
  std::string push(TokenId id);
  // What is still held back, broken parts as U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::string pending_;
};

}  // namespace locket::tokenizer
