#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <string>

#include "base/check.h"
#include "tokenizer/byte_level.h"

namespace locket::tokenizer {
namespace {

constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNoPlace = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kNoPair = std::numeric_limits<std::uint64_t>::max();  // ids are below 2^31

std::uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

// Spreads neighbouring ids over the table (Fibonacci hashing).
std::size_t spread(std::uint64_t pair, std::size_t slots) {
  const int bits = std::countr_zero(slots);
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15U) >> (64 - bits));
}

constexpr TokenId kNoId = -1;

// C0, C1 and F5 .. FF stand in no valid text; V1 and V2 have no entries for them.
bool occurs_in_utf8(std::size_t byte) { return byte < 0xF5 && byte != 0xC0 && byte != 0xC1; }

Result<TokenId> id_of_byte(std::size_t byte, const BaseIndex& index, MissingBytes missing_bytes) {
  const char character = static_cast<char>(byte);
  const std::string spelling = spell_bytes({&character, 1});
  if (const std::optional<TokenId> id = index.find(spelling)) return *id;
  if (!occurs_in_utf8(byte) || missing_bytes == MissingBytes::kLeftOut) return kNoId;
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("model.vocab has no entry \"{}\" for the byte 0x{:02x}", spelling, byte));
}

Result<TokenId> id_of_piece(const std::string& piece, std::size_t rank, const BaseIndex& index) {
  if (const std::optional<TokenId> id = index.find(piece)) return *id;
  return fail(
      ErrorCode::kBadCheckpoint,
      fmt::format("model.merges[{}] needs the piece \"{}\", which model.vocab does not have", rank,
                  piece));
}

}  // namespace

Result<BytePairEncoder> BytePairEncoder::build(const std::vector<Merge>& merges,
                                               const BaseIndex& index, MissingBytes missing_bytes) {
  BytePairEncoder encoder;
  for (std::size_t byte = 0; byte < encoder.id_of_byte_.size(); ++byte) {
    LOCKET_TRY(encoder.id_of_byte_[byte], id_of_byte(byte, index, missing_bytes));
  }
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2));
  encoder.rules_.assign(slots, Rule{.pair = kNoPair, .rank = kNoRank, .merged = 0});
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    LOCKET_TRY(const TokenId left_id, id_of_piece(left, rank, index));
    LOCKET_TRY(const TokenId right_id, id_of_piece(right, rank, index));
    LOCKET_TRY(const TokenId merged, id_of_piece(left + right, rank, index));
    Rule& rule = encoder.slot_of(pair_key(left_id, right_id));
    if (rule.pair != kNoPair) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("model.merges[{}] repeats model.merges[{}]: \"{} {}\"", rank,
                              rule.rank, left, right));
    }
    rule = {.pair = pair_key(left_id, right_id),
            .rank = static_cast<std::uint32_t>(rank),
            .merged = merged};
  }
  return encoder;
}

BytePairEncoder::Rule& BytePairEncoder::slot_of(std::uint64_t pair) {
  std::size_t slot = spread(pair, rules_.size());
  while (rules_[slot].pair != kNoPair && rules_[slot].pair != pair) {
    slot = (slot + 1) & (rules_.size() - 1);
  }
  return rules_[slot];
}

const BytePairEncoder::Rule* BytePairEncoder::find(TokenId left, TokenId right) const {
  const std::uint64_t pair = pair_key(left, right);
  std::size_t slot = spread(pair, rules_.size());
  while (rules_[slot].pair != pair) {
    if (rules_[slot].pair == kNoPair) return nullptr;
    slot = (slot + 1) & (rules_.size() - 1);
  }
  return &rules_[slot];
}

std::uint32_t BytePairEncoder::rank_of(TokenId left, TokenId right) const {
  const Rule* rule = find(left, right);
  return rule == nullptr ? kNoRank : rule->rank;
}

// Notes the rank of the pair that begins at `place` and queues it, if there is one.
void BytePairEncoder::offer(std::uint32_t place, Scratch& scratch) const {
  Scratch::Symbol& symbol = scratch.symbols_[place];
  symbol.rank = kNoRank;
  if (symbol.next == kNoPlace) return;
  symbol.rank = rank_of(symbol.id, scratch.symbols_[symbol.next].id);
  if (symbol.rank == kNoRank) return;
  scratch.queue_.push_back((static_cast<std::uint64_t>(symbol.rank) << 32) | place);
  std::push_heap(scratch.queue_.begin(), scratch.queue_.end(), std::greater<>());
}

// Joins the symbol at `place` with the next one, which leaves the list.
void BytePairEncoder::merge_at(std::uint32_t place, Scratch& scratch) const {
  Scratch::Symbol& symbol = scratch.symbols_[place];
  Scratch::Symbol& right = scratch.symbols_[symbol.next];
  symbol.id = find(symbol.id, right.id)->merged;
  symbol.next = right.next;
  right.rank = kNoRank;
  if (symbol.next != kNoPlace) scratch.symbols_[symbol.next].previous = place;
  offer(place, scratch);
  if (symbol.previous != kNoPlace) offer(symbol.previous, scratch);
}

void BytePairEncoder::encode(std::string_view piece, Scratch& scratch,
                             std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  LOCKET_CHECK(piece.size() < kNoPlace);
  const auto count = static_cast<std::uint32_t>(piece.size());
  scratch.symbols_.resize(count);
  scratch.queue_.clear();
  for (std::uint32_t place = 0; place < count; ++place) {
    scratch.symbols_[place] = {.id = id_of_byte_[static_cast<std::uint8_t>(piece[place])],
                               .rank = kNoRank,
                               .previous = place == 0 ? kNoPlace : place - 1,
                               .next = place + 1 == count ? kNoPlace : place + 1};
  }
  // A symbol without an id has no rule with its neighbours.
  for (std::uint32_t place = 0; place < count; ++place) offer(place, scratch);
  while (!scratch.queue_.empty()) {
    std::pop_heap(scratch.queue_.begin(), scratch.queue_.end(), std::greater<>());
    const std::uint64_t candidate = scratch.queue_.back();
    scratch.queue_.pop_back();
    const auto place = static_cast<std::uint32_t>(candidate);
    // A symbol whose pair has changed since carries another rank.
    if (scratch.symbols_[place].rank == candidate >> 32) merge_at(place, scratch);
  }
  for (std::uint32_t place = 0; place != kNoPlace; place = scratch.symbols_[place].next) {
    if (scratch.symbols_[place].id != kNoId) ids.push_back(scratch.symbols_[place].id);
  }
}

}  // namespace locket::tokenizer
