#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include "tokenizer/byte_level.h"

namespace locket::tokenizer {
namespace {

// Spelling by id; nullptr where no entry has claimed the id.
using Slots = std::vector<const std::string*>;

// `slots` is as long as there can be ids at most, so a wild id costs no memory.
Status claim(Slots& slots, const std::string& spelling, TokenId id) {
  if (id < 0 || static_cast<std::size_t>(id) >= slots.size()) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("\"{}\" has the id {}, but with {} entries the ids are 0 to {}",
                            spelling, id, slots.size(), slots.size() - 1));
  }
  const std::string*& slot = slots[static_cast<std::size_t>(id)];
  if (slot != nullptr && *slot != spelling) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("id {} is given to both \"{}\" and \"{}\"", id, *slot, spelling));
  }
  slot = &spelling;
  return {};
}

Result<Slots> assign_ids(const std::vector<BaseEntry>& base, const std::vector<AddedToken>& added) {
  Slots slots(base.size() + added.size(), nullptr);
  const BaseIndex index(base);
  for (const BaseEntry& entry : base) LOCKET_TRY_STATUS(claim(slots, entry.spelling, entry.id));
  for (const AddedToken& token : added) {
    const std::optional<TokenId> base_id = index.find(token.spelling);
    if (base_id && *base_id != token.id) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("the added token \"{}\" has the id {}, in the vocabulary it has {}",
                              token.spelling, token.id, *base_id));
    }
    LOCKET_TRY_STATUS(claim(slots, token.spelling, token.id));
  }
  while (!slots.empty() && slots.back() == nullptr) slots.pop_back();
  return slots;
}

}  // namespace

void Vocabulary::StringList::append(std::string_view text) {
  text_.append(text);
  ends_.push_back(text_.size());
}

std::string_view Vocabulary::StringList::at(TokenId id) const {
  const auto index = static_cast<std::size_t>(id);
  if (id < 0 || index >= ends_.size()) return {};
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

Result<Vocabulary> Vocabulary::build(const std::vector<BaseEntry>& base,
                                     const std::vector<AddedToken>& added) {
  LOCKET_TRY(const Slots slots, assign_ids(base, added));
  Vocabulary vocabulary;
  for (std::size_t id = 0; id < slots.size(); ++id) {
    if (slots[id] == nullptr) {
      return fail(
          ErrorCode::kBadCheckpoint,
          fmt::format("no entry has the id {}, although ids go up to {}", id, slots.size() - 1));
    }
    vocabulary.spellings_.append(*slots[id]);
    vocabulary.bytes_.append(bytes_of_spelling(*slots[id]).value_or(*slots[id]));
  }
  return vocabulary;
}

BaseIndex::BaseIndex(const std::vector<BaseEntry>& base) {
  ids_.reserve(base.size());
  for (const BaseEntry& entry : base) ids_.emplace(entry.spelling, entry.id);
}

std::optional<TokenId> BaseIndex::find(std::string_view spelling) const {
  const auto found = ids_.find(spelling);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace locket::tokenizer
