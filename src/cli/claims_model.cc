// Claims that are measured with conversations of the small model: what the decoder replays, what
// that changes, and what the memory saves.
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "cli/claims_list.h"
#include "cli/recall_cases.h"
#include "cli/text_table.h"
#include "engine/session.h"
#include "server/prices.h"
#include "service/prepared_request.h"

namespace locket::cli {
namespace {

using engine::ReplayMode;
using engine::Session;
using engine::TokenId;
using Kind = Claim::Kind;

constexpr std::size_t kConversations = 10;
constexpr std::size_t kMostAnswerTokens = 48;

Result<std::vector<TokenId>> prompt_of(const ModelSetup& setup, const chat::ChatRequest& request) {
  LOCKET_TRY(service::PreparedRequest prepared, service::prepare(setup.loaded, request, {}));
  return std::move(prepared.generation.prompt);
}

TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

struct Answer {
  std::string text;
  std::int64_t replayed = 0;  // prompt tokens that the decoder ran over
  std::vector<float> logits;  // of the prompt's last token
};

Result<Answer> answer(const ModelSetup& setup, std::span<const TokenId> prompt,
                      const engine::SessionOptions& options) {
  engine::Engine& engine = setup.engine();
  Session session(engine.model(), engine.pool(), engine.workers(), options);
  LOCKET_TRY_STATUS(session.prefill(prompt));
  Answer answer = {.text = {},
                   .replayed = static_cast<std::int64_t>(prompt.size()) - session.segment_start(),
                   .logits = {session.logits().begin(), session.logits().end()}};
  std::vector<TokenId> ids;
  while (ids.size() < kMostAnswerTokens) {
    const TokenId next = likeliest(session.logits());
    if (next == engine.eos_token()) break;
    ids.push_back(next);
    LOCKET_TRY_STATUS(session.append(next));
  }
  session.end_turn();
  answer.text = setup.loaded.tokenizer().decode_bytes(ids);
  return answer;
}

bool has_same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct ReplayFindings {
  std::size_t conversations = 0;
  std::int64_t prompt_tokens = 0;  // of the first
  std::int64_t replayed = 0;       // of the first
  std::size_t same_text = 0;       // bounded and full
  std::size_t same_bits = 0;       // with and without memory
};

Result<ReplayFindings> try_replay(const ModelSetup& setup, const std::vector<RecallCase>& cases) {
  ReplayFindings findings;
  findings.conversations = std::min(cases.size(), kConversations);
  for (std::size_t i = 0; i < findings.conversations; ++i) {
    LOCKET_TRY(const std::vector<TokenId> prompt, prompt_of(setup, cases[i].request));
    LOCKET_TRY(const Answer bounded, answer(setup, prompt, {.replay = ReplayMode::kBounded}));
    LOCKET_TRY(const Answer full, answer(setup, prompt, {.replay = ReplayMode::kFull}));
    engine::SessionOptions remembering = setup.engine().session_options("claims");
    remembering.replay = ReplayMode::kBounded;
    LOCKET_TRY(const Answer first, answer(setup, prompt, remembering));
    LOCKET_TRY(const Answer again, answer(setup, prompt, remembering));
    findings.same_text += bounded.text == full.text ? 1 : 0;
    findings.same_bits +=
        has_same_bits(bounded.logits, first.logits) && has_same_bits(bounded.logits, again.logits)
            ? 1
            : 0;
    if (i > 0) continue;
    findings.prompt_tokens = static_cast<std::int64_t>(prompt.size());
    findings.replayed = bounded.replayed;
  }
  return findings;
}

// A conversation turn by turn, as a client sends it: all messages so far, every time.
struct Bill {
  std::size_t messages = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t hit_tokens = 0;
  std::uint64_t answer_tokens = 0;

  double dollars(const server::Prices& prices, std::uint64_t hits) const {
    return 1e-6 * (static_cast<double>(hits) * prices.hit +
                   static_cast<double>(prompt_tokens - hits) * prices.miss +
                   static_cast<double>(answer_tokens) * prices.output);
  }
};

Status add_turn(const ModelSetup& setup, const chat::ChatRequest& request, const std::string& reply,
                Bill& bill) {
  engine::Engine& engine = setup.engine();
  LOCKET_TRY(const std::vector<TokenId> prompt, prompt_of(setup, request));
  Session session(engine.model(), engine.pool(), engine.workers(),
                  engine.session_options("conversation"));
  LOCKET_TRY_STATUS(session.prefill(prompt));
  const std::vector<TokenId> ids = setup.loaded.tokenizer().encode_text(reply);
  for (const TokenId id : ids) LOCKET_TRY_STATUS(session.append(id));
  session.end_turn();
  bill.prompt_tokens += prompt.size();
  bill.hit_tokens += session.memory_use().hit_tokens;
  bill.answer_tokens += ids.size() + 1;  // and the token that ends it
  return {};
}

Result<Bill> run_conversation(const ModelSetup& setup, const RecallCase& recall) {
  Bill bill;
  chat::ChatRequest so_far = recall.request;
  so_far.messages.clear();
  const auto& messages = recall.request.messages;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    so_far.messages.push_back(messages[i]);
    if (messages[i].role != chat::Role::kUser) continue;
    const bool is_last = i + 1 == messages.size();
    const std::string& reply = is_last ? recall.expected : messages[i + 1].content.front().text;
    LOCKET_TRY_STATUS(add_turn(setup, so_far, reply, bill));
  }
  bill.messages = messages.size() + 1;
  return bill;
}

Claim bill_claim(const Bill& bill) {
  const server::Prices prices;
  const double with = bill.dollars(prices, bill.hit_tokens);
  const double without = bill.dollars(prices, 0);
  return {
      .claim = "a long conversation costs a fraction with a memory",
      .source = "published prices: hit $0.003, miss $0.15, output $0.60 a million",
      .kind = Kind::kMeasured,
      .found = fmt::format("{} messages: ${:.6f} with the memory, ${:.6f} without, {:.1f} times; "
                           "{} of {} prompt tokens remembered, {} answered",
                           bill.messages, with, without, without / with, grouped(bill.hit_tokens),
                           grouped(bill.prompt_tokens), grouped(bill.answer_tokens)),
      .how =
          "a conversation of the demo, every turn sent whole, with the answers that stand in it; "
          "off-peak; tokens are the small model's own",
      .command = {}};
}

std::vector<Claim> replay_claims(const ReplayFindings& found, std::int64_t window) {
  return {{.claim = "after reading, the decoder runs over the last n_win tokens only",
           .source = "V4.1 report, 3.2",
           .kind = Kind::kMeasured,
           .found = fmt::format("{} of {} prompt tokens; n_win is {}", found.replayed,
                                grouped(static_cast<std::uint64_t>(found.prompt_tokens)), window),
           .how = "a session of this model over a conversation of the demo",
           .command = {}},
          {.claim = "the effect of that bound is negligible",
           .source = "V4.1 report, 3.2",
           .kind = Kind::kMeasured,
           .found = fmt::format("{} of {} answers are the same text as with the whole prompt",
                                found.same_text, found.conversations),
           .how = "greedy answers after about a hundred messages; of this small model, which was "
                  "trained with the bound: nothing is said about the release",
           .command = {}},
          {.claim = "a memory does not change an answer",
           .source = "this program's promise; V4.1's service replays approximately",
           .kind = Kind::kMeasured,
           .found = fmt::format("{} of {}: logits with the same bits computed, and remembered",
                                found.same_bits, found.conversations),
           .how = "the same prompts without a memory, with an empty one, and again with it",
           .command = {}}};
}

}  // namespace

Result<ClaimGroup> model_claims(const ModelSetup& setup, const std::filesystem::path& folder) {
  LOCKET_TRY(const RecallCases cases, load_recall_cases(folder));
  LOCKET_TRY(const ReplayFindings found, try_replay(setup, cases.recall));
  LOCKET_TRY(const Bill bill, run_conversation(setup, cases.recall.front()));
  ClaimGroup group = {.topic = "Replay and memory at work, with the small model",
                      .claims = replay_claims(found, setup.model().shape().window)};
  group.claims.push_back(bill_claim(bill));
  return group;
}

ClaimGroup unmeasured_model_claims() {
  ClaimGroup group = {.topic = "Replay and memory at work, with the small model", .claims = {}};
  std::vector<Claim> claims = replay_claims({}, 0);
  claims.push_back(bill_claim({}));
  for (Claim& claim : claims) {
    claim.kind = Kind::kNotHere;
    claim.found = "--quick runs no model";
    claim.how.clear();
    claim.command = "locket claims";
    group.claims.push_back(std::move(claim));
  }
  return group;
}

}  // namespace locket::cli
