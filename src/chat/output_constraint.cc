#include "chat/output_constraint.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "chat/internal/answer_grammar.h"
#include "chat/internal/automaton_walk.h"
#include "chat/internal/token_trie.h"
#include "chat/internal/utf8_step.h"

namespace locket::chat {
namespace {

using tokenizer::TokenId;

constexpr std::size_t kMaxMasks = 64;
// Places that one mask may look at for the first time. What a hostile schema would need beyond is
// left out of the mask; tokens of one byte never are, so that it is not empty.
constexpr std::size_t kMaskBudget = 400'000;

// The spot behind a text; kNowhere if it does not fit.
SpotId walk_text(AutomatonWalk& walk, std::string_view text) {
  SpotId spot = walk.start();
  for (const char byte : text) {
    if (spot == kNowhere) break;
    if (walk.is_crowded()) spot = walk.forget(spot);
    spot = walk.step(spot, static_cast<unsigned char>(byte));
  }
  return spot;
}

void set_bit(std::vector<std::uint64_t>& words, TokenId token) {
  const auto index = static_cast<std::size_t>(token);
  if (index / 64 < words.size()) words[index / 64] |= std::uint64_t{1} << (index % 64);
}

}  // namespace

struct TokenBytes::State {
  TokenTrie trie;
};

TokenBytes::TokenBytes(const tokenizer::Tokenizer& tokenizer, TokenId end_token)
    : state_(std::make_unique<const State>(State{TokenTrie(tokenizer, end_token)})) {}
TokenBytes::~TokenBytes() = default;

std::size_t TokenBytes::vocabulary_size() const { return state_->trie.vocabulary_size(); }

struct ConstraintGrammar::State {
  AnswerGrammar answer;
};

ConstraintGrammar::ConstraintGrammar(std::unique_ptr<const State> state)
    : state_(std::move(state)) {}
ConstraintGrammar::~ConstraintGrammar() = default;

Result<std::shared_ptr<const ConstraintGrammar>> ConstraintGrammar::compile(
    const ChatRequest& request, const ParserStart& start) {
  LOCKET_TRY(std::optional<AnswerGrammar> answer, compile_answer(request, start));
  if (!answer) return std::shared_ptr<const ConstraintGrammar>();
  auto state = std::make_unique<State>(State{*std::move(answer)});
  AutomatonWalk walk(state->answer.automaton);
  if (walk_text(walk, state->answer.prefix) == kNowhere) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("messages[{}].content is no beginning of an answer that the request "
                            "asks for by response_format or tools",
                            request.messages.size() - 1));
  }
  return std::make_shared<const ConstraintGrammar>(std::move(state));
}

struct OutputConstraint::State {
  State(std::shared_ptr<const ConstraintGrammar> the_grammar,
        std::shared_ptr<const TokenBytes> the_tokens)
      : grammar(std::move(the_grammar)),
        tokens(std::move(the_tokens)),
        walk(grammar->state().answer.automaton),
        spot(walk_text(walk, grammar->state().answer.prefix)) {}

  struct Mask {
    SpotId spot = kNowhere;
    std::uint64_t used = 0;
    std::vector<std::uint64_t> words;
  };

  Mask& oldest_mask() {
    if (masks.size() < kMaxMasks) return masks.emplace_back();
    return *std::min_element(masks.begin(), masks.end(), [](const Mask& one, const Mask& other) {
      return one.used < other.used;
    });
  }

  const Mask& mask() {
    for (Mask& known : masks) {
      if (known.spot != spot) continue;
      known.used = ++uses;
      return known;
    }
    Mask& made = oldest_mask();
    made.spot = spot;
    made.used = ++uses;
    fill(made.words);
    return made;
  }

  void fill(std::vector<std::uint64_t>& words) {
    const TokenTrie& trie = tokens->state().trie;
    words.assign(tokens->mask_words(), 0);
    fill_tokens(words);
    std::array<std::optional<bool>, kSymbolCount> fits;
    for (const TokenTrie::ControlToken& control : trie.control_tokens()) {
      std::optional<bool>& fit = fits[control.symbol];
      if (!fit) fit = walk.step(spot, control.symbol) != kNowhere;
      if (*fit) set_bit(words, control.id);
    }
    const bool is_empty =
        std::all_of(words.begin(), words.end(), [](std::uint64_t word) { return word == 0; });
    if (is_empty || walk.is_final(spot)) set_bit(words, trie.end_token());
  }

  // Whether every plain character comes back to the spot.
  bool is_inside_text() {
    // Between the bytes of a character there are few spots where this is so.
    constexpr std::size_t kMaxPlaces = 64;
    std::vector<std::pair<SpotId, Utf8Place>> seen = {{spot, Utf8Place::kBetween}};
    for (std::size_t at = 0; at < seen.size(); ++at) {
      const auto [from, place] = seen[at];
      for (Symbol byte = 0; byte <= kLastByte; ++byte) {
        const std::optional<Utf8Place> next_place =
            utf8_step(place, static_cast<unsigned char>(byte));
        if (!next_place || !is_plain_byte(static_cast<unsigned char>(byte))) continue;
        const std::pair<SpotId, Utf8Place> next = {walk.step(from, byte), *next_place};
        if (next.first == kNowhere) return false;
        if (next.second == Utf8Place::kBetween && next.first != spot) return false;
        if (std::find(seen.begin(), seen.end(), next) == seen.end()) seen.push_back(next);
        if (seen.size() > kMaxPlaces) return false;
      }
    }
    return true;
  }

  void fill_tokens(std::vector<std::uint64_t>& words) {
    const TokenTrie& trie = tokens->state().trie;
    if (!is_inside_text()) return walk_tokens(trie.nodes(), words);
    words.assign(trie.plain_mask().begin(), trie.plain_mask().end());
    walk_tokens(trie.odd_nodes(), words);
  }

  void walk_tokens(std::span<const TokenTrie::Node> nodes, std::vector<std::uint64_t>& words) {
    const TokenTrie& trie = tokens->state().trie;
    const std::span<const TokenId> ids = trie.tokens();
    std::vector<SpotId> path(trie.max_depth() + 1, kNowhere);
    path[0] = spot;
    walk.set_budget(kMaskBudget);
    for (std::size_t at = 0; at < nodes.size();) {
      const TokenTrie::Node& node = nodes[at];
      const SpotId before = path[node.depth - 1U];
      const SpotId next =
          node.depth == 1 ? walk.step(before, node.byte) : walk.step_in_budget(before, node.byte);
      if (next == kNowhere) {
        at = node.end;
        continue;
      }
      path[node.depth] = next;
      for (const TokenId id : ids.subspan(node.first_token, node.token_count)) set_bit(words, id);
      ++at;
    }
  }

  std::shared_ptr<const ConstraintGrammar> grammar;
  std::shared_ptr<const TokenBytes> tokens;
  AutomatonWalk walk;
  SpotId spot;
  bool is_free = false;   // a token came that was not allowed
  bool is_ended = false;  // the end token came
  std::vector<Mask> masks;
  std::uint64_t uses = 0;
};

OutputConstraint::OutputConstraint(std::shared_ptr<const ConstraintGrammar> grammar,
                                   std::shared_ptr<const TokenBytes> tokens)
    : state_(std::make_unique<State>(std::move(grammar), std::move(tokens))) {}
OutputConstraint::OutputConstraint(OutputConstraint&&) noexcept = default;
OutputConstraint::~OutputConstraint() = default;

std::span<const std::uint64_t> OutputConstraint::allowed() {
  State& state = *state_;
  if (state.is_free || state.is_ended || state.walk.is_free(state.spot)) return {};
  if (state.walk.is_crowded()) {
    state.spot = state.walk.forget(state.spot);
    state.masks.clear();
  }
  return state.mask().words;
}

void OutputConstraint::advance(TokenId token) {
  State& state = *state_;
  const TokenTrie& trie = state.tokens->state().trie;
  if (state.is_free || state.is_ended) return;
  if (token == trie.end_token()) {
    state.is_ended = true;
    return;
  }
  const std::vector<Symbol> symbols = trie.symbols(token);
  SpotId spot = symbols.empty() ? kNowhere : state.spot;
  for (const Symbol symbol : symbols) {
    if (spot != kNowhere) spot = state.walk.step(spot, symbol);
  }
  state.is_free = spot == kNowhere;
  if (!state.is_free) state.spot = spot;
}

bool OutputConstraint::is_complete() const {
  const State& state = *state_;
  return state.is_ended || (!state.is_free && state.walk.is_over(state.spot));
}

}  // namespace locket::chat
