#include "service/choice_answer.h"

#include <fmt/format.h>
#include <utility>

#include "base/log.h"
#include "chat/markup.h"
#include "service/call_id.h"

namespace locket::service {
namespace {

using Part = SampledToken::Part;

Part first_part(const chat::ParserStart& start) {
  switch (start.start) {
    case chat::ReplyStart::kReasoning:
    case chat::ReplyStart::kReasoningContinued:
      return Part::kReasoning;
    case chat::ReplyStart::kContent:
    case chat::ReplyStart::kContentContinued:
      return Part::kContent;
    case chat::ReplyStart::kCalls:
    case chat::ReplyStart::kCount:
      break;
  }
  return Part::kOther;
}

chat::FinishReason finish_of(engine::EndReason reason) {
  return reason == engine::EndReason::kLength ? chat::FinishReason::kLength
                                              : chat::FinishReason::kStop;
}

}  // namespace

ChoiceAnswer::ChoiceAnswer(const LoadedModel& loaded, const PreparedRequest& request,
                           std::size_t choice, ChoiceHooks hooks)
    : loaded_(loaded),
      choice_(choice),
      hooks_(std::move(hooks)),
      decoder_(loaded.tokenizer()),
      parser_(request.parser, request.stop, request.stop_text),
      wants_logprobs_(request.generation.wants_logprobs),
      part_(first_part(request.parser)) {
  if (request.grammar != nullptr) constraint_.emplace(request.grammar, loaded.token_bytes());
}

void ChoiceAnswer::on_admitted(const engine::MemoryUse& memory) {
  if (hooks_.on_admitted) hooks_.on_admitted(memory);
}

void ChoiceAnswer::on_prompt(std::size_t done, std::size_t total) {
  if (hooks_.on_prompt) hooks_.on_prompt(done, total);
}

std::span<const std::uint64_t> ChoiceAnswer::allowed_tokens() {
  return constraint_ ? constraint_->allowed() : std::span<const std::uint64_t>();
}

Part ChoiceAnswer::part_of(engine::TokenId token) {
  const ControlTokens& control = loaded_.control_tokens();
  if (token == control.think_close && part_ == Part::kReasoning) {
    part_ = Part::kContent;
    return Part::kOther;
  }
  if (token == control.dsml) part_ = Part::kOther;
  return part_;
}

SampledToken ChoiceAnswer::with_bytes(const engine::GeneratedToken& token, Part part) const {
  const auto named = [&](engine::TokenId id, double logprob) {
    return TokenLogprob{
        .token = id, .logprob = logprob, .bytes = loaded_.tokenizer().decode_bytes({&id, 1})};
  };
  SampledToken sampled = {.chosen = named(token.token, token.logprob), .top = {}, .part = part};
  for (const engine::TokenLogprob& other : token.top) {
    sampled.top.push_back(named(other.token, other.logprob));
  }
  return sampled;
}

void ChoiceAnswer::name_calls(std::vector<chat::ReplyEvent>& events) {
  for (chat::ReplyEvent& event : events) {
    if (event.kind == chat::ReplyEvent::Kind::kCallEnd) whole_calls_.push_back(event.call);
    if (event.kind != chat::ReplyEvent::Kind::kCallName) continue;
    while (call_ids_.size() <= event.call) call_ids_.push_back(make_call_id(call_ids_.size()));
    event.call_id = call_ids_[event.call];
  }
}

void ChoiceAnswer::deliver(ChoiceUpdate update) {
  if (hooks_.on_update) hooks_.on_update(std::move(update));
}

engine::GenerationClient::Verdict ChoiceAnswer::on_token(const engine::GeneratedToken& token) {
  if (token.broken_logits > 0 && !has_warned_) {
    has_warned_ = true;
    log_warning(
        fmt::format("{} logits are NaN or infinite at token {} of an answer; they are left "
                    "out",
                    token.broken_logits, result_.token_ids.size()));
  }
  result_.token_ids.push_back(token.token);
  if (constraint_) constraint_->advance(token.token);
  const Part before = part_;
  const Part part = part_of(token.token);
  if (before == Part::kReasoning) ++result_.reasoning_tokens;
  ChoiceUpdate update = {.choice = choice_,
                         .new_tokens = 1,
                         .events = parser_.push(decoder_.push(token.token)),
                         .tokens = {}};
  name_calls(update.events);
  if (wants_logprobs_) {
    update.tokens.push_back(with_bytes(token, part));
    result_.tokens.push_back(update.tokens.back());
  }
  deliver(std::move(update));
  return parser_.is_finished() ? Verdict::kEnough : Verdict::kGoOn;
}

void ChoiceAnswer::on_end(const engine::GenerationEnd& end) {
  ChoiceUpdate update = {
      .choice = choice_, .new_tokens = 0, .events = parser_.push(decoder_.finish()), .tokens = {}};
  for (chat::ReplyEvent& event : parser_.finish(finish_of(end.reason))) {
    update.events.push_back(std::move(event));
  }
  name_calls(update.events);
  if (end.reason != engine::EndReason::kFailed) deliver(std::move(update));
  result_.reply = parser_.reply();
  result_.completion_tokens = result_.token_ids.size();
  for (std::size_t i = 0; i < result_.reply.tool_calls.size() && i < whole_calls_.size(); ++i) {
    result_.reply.tool_calls[i].id = call_ids_[whole_calls_[i]];
  }
  if (hooks_.on_end) hooks_.on_end(std::move(result_), end);
}

engine::GenerationRequest generation_of(const PreparedRequest& request, std::size_t choice) {
  engine::GenerationRequest generation = request.generation;
  generation.choice = choice;
  return generation;
}

}  // namespace locket::service
