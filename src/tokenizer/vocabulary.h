// All ids of a tokenizer: how the file spells each, and the bytes it stands for. Immutable,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace locket::tokenizer {

class Vocabulary {
 public:
  // Base and added ids together must be 0 .. n - 1. An added token may repeat a base entry with the
  // same id. kBadCheckpoint otherwise.
  [[nodiscard]] static Result<Vocabulary> build(const std::vector<BaseEntry>& base,
                                                const std::vector<AddedToken>& added);

  std::size_t size() const { return bytes_.size(); }
  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < size(); }

  // Both empty for ids that do not exist. A spelling outside the byte-level alphabet stands for
  // itself.
  std::string_view spelling(TokenId id) const { return spellings_.at(id); }
  std::string_view bytes(TokenId id) const { return bytes_.at(id); }

 private:
  // Many short strings, one allocation.
  class StringList {
   public:
    void append(std::string_view text);
    std::size_t size() const { return ends_.size(); }
    std::string_view at(TokenId id) const;

   private:
    std::string text_;
    std::vector<std::size_t> ends_;
  };

  StringList spellings_;
  StringList bytes_;
};

// Finds base ids by spelling while a tokenizer is built. Refers to the entries it was made from.
class BaseIndex {
 public:
  explicit BaseIndex(const std::vector<BaseEntry>& base);
  std::optional<TokenId> find(std::string_view spelling) const;

 private:
  std::unordered_map<std::string_view, TokenId> ids_;
};

}  // namespace locket::tokenizer
