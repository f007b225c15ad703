#include "service/completion.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "chat/render_v41.h"
#include "chat/reply_parser.h"

namespace locket::service {
namespace {

using engine::TokenId;

engine::SamplingConfig sampling_of(const chat::SamplingWishes& wishes,
                                   const CompletionDefaults& defaults) {
  engine::SamplingConfig config;
  config.temperature = wishes.temperature.value_or(defaults.temperature);
  config.top_k = wishes.top_k.value_or(defaults.top_k);
  config.top_p = wishes.top_p.value_or(defaults.top_p);
  config.min_p = wishes.min_p.value_or(defaults.min_p);
  config.frequency_penalty = wishes.frequency_penalty.value_or(0.0);
  config.presence_penalty = wishes.presence_penalty.value_or(0.0);
  config.repetition_penalty = wishes.repetition_penalty.value_or(1.0);
  for (const chat::LogitBias& bias : wishes.logit_bias) {
    config.logit_bias.push_back({.token = bias.token, .bias = bias.bias});
  }
  return config;
}

// Tokens that may be generated; kContextTooLong if what was asked for does not fit.
Result<std::size_t> generation_limit(std::size_t context, std::size_t prompt_tokens,
                                     std::int64_t wanted) {
  const std::size_t room = context > prompt_tokens ? context - prompt_tokens : 0;
  const auto least = static_cast<std::size_t>(std::max<std::int64_t>(wanted, 1));
  if (room < least) {
    return fail(ErrorCode::kContextTooLong,
                fmt::format("a prompt of {} tokens and {} more do not fit into the model's context "
                            "of {} tokens (max_position_embeddings)",
                            prompt_tokens, least, context));
  }
  return wanted > 0 ? static_cast<std::size_t>(wanted) : room;
}

class Generation {
 public:
  Generation(const LoadedModel& loaded, const chat::ChatRequest& request,
             const CompletionDefaults& defaults, const CompletionHooks& hooks,
             const chat::ParserStart& parser)
      : loaded_(loaded),
        hooks_(hooks),
        sampling_(sampling_of(request.sampling, defaults)),
        seed_(request.sampling.seed.value_or(defaults.seed)),
        ends_at_eos_(!request.ignore_eos),
        session_(loaded.engine().make_session()),
        decoder_(loaded.tokenizer()),
        parser_(parser, request.stop) {}

  // `answer_tokens`: what the answer must have room for; 0: not known.
  Result<Completion> run(const chat::RenderedPrompt& prompt, std::size_t limit,
                         std::size_t answer_tokens) {
    LOCKET_TRY_STATUS(engine::check_sampling_config(sampling_, loaded_.engine().vocabulary_size()));
    Result<Completion> completion = answer(prompt, limit, answer_tokens);
    session_.end_turn();
    if (completion) completion->memory = session_.memory_use();
    return completion;
  }

 private:
  Result<Completion> answer(const chat::RenderedPrompt& prompt, std::size_t limit,
                            std::size_t answer_tokens) {
    engine::PromptLengths lengths = {.system_tokens = prompt.system_ids};
    // With a bound the whole answer's pages are taken first: no surprise in the middle of it. The
    // last token is never fed to the model.
    if (answer_tokens > 0) lengths.room_tokens = prompt.ids.size() + answer_tokens - 1;
    const double start = monotonic_seconds();
    LOCKET_TRY_STATUS(session_.prefill(
        prompt.ids, hooks_.stop,
        [&](std::size_t done) {
          if (hooks_.on_prompt) hooks_.on_prompt(done, prompt.ids.size());
        },
        lengths));
    const double read = monotonic_seconds();
    Completion completion;
    LOCKET_TRY(const chat::FinishReason reason, generate(limit, completion));
    deliver(parser_.push(decoder_.finish()));
    deliver(parser_.finish(reason));
    completion.reply = parser_.reply();
    completion.prompt_tokens = prompt.ids.size();
    completion.prompt_seconds = read - start;
    completion.generation_seconds = monotonic_seconds() - read;
    return completion;
  }

  void deliver(const std::vector<chat::ReplyEvent>& events) const {
    if (!hooks_.on_event) return;
    for (const chat::ReplyEvent& event : events) hooks_.on_event(event);
  }

  Result<TokenId> draw(const Completion& completion) {
    const engine::DrawKey key = {.seed = seed_, .choice = 0, .position = session_.tokens().size()};
    const engine::TokenHistory history = {
        .prompt = session_.tokens().first(session_.prompt_tokens()),
        .output = completion.token_ids};
    LOCKET_TRY(const TokenId token, sampler_.sample(session_.logits(), sampling_, key, history));
    if (sampler_.broken_logit_count() > 0 && !has_warned_) {
      has_warned_ = true;
      log_warning(fmt::format("{} logits are NaN or infinite at position {}; they are left out",
                              sampler_.broken_logit_count(), session_.tokens().size()));
    }
    return token;
  }

  Result<chat::FinishReason> generate(std::size_t limit, Completion& completion) {
    const TokenId eos = loaded_.engine().eos_token();
    while (true) {
      LOCKET_TRY(const TokenId token, draw(completion));
      if (token == eos && ends_at_eos_) return chat::FinishReason::kStop;
      completion.token_ids.push_back(token);
      deliver(parser_.push(decoder_.push(token)));
      if (parser_.is_finished()) return chat::FinishReason::kStop;
      if (completion.token_ids.size() >= limit) return chat::FinishReason::kLength;
      if (hooks_.stop.stop_requested()) {
        completion.is_cancelled = true;
        return chat::FinishReason::kStop;
      }
      const Status fed = session_.append(token);
      if (!fed && fed.error().code == ErrorCode::kOverBudget) {
        log_warning(fmt::format("the answer ends here: {}", fed.error().message));
        return chat::FinishReason::kLength;
      }
      LOCKET_TRY_STATUS(fed);
    }
  }

  const LoadedModel& loaded_;
  const CompletionHooks& hooks_;
  engine::SamplingConfig sampling_;
  std::uint64_t seed_;
  bool ends_at_eos_;
  bool has_warned_ = false;
  engine::Session session_;
  engine::Sampler sampler_;
  tokenizer::StreamDecoder decoder_;
  chat::ReplyParser parser_;
};

}  // namespace

Result<Completion> complete(const LoadedModel& loaded, const chat::ChatRequest& request,
                            const CompletionDefaults& defaults, const CompletionHooks& hooks) {
  LOCKET_TRY(const chat::RenderedPrompt prompt, chat::render_v41(request, loaded.tokenizer()));
  if (!prompt.images.empty()) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("the messages hold {} images; this program reads text only",
                            prompt.images.size()));
  }
  const std::int64_t wanted = request.max_tokens.value_or(defaults.max_tokens);
  LOCKET_TRY(const std::size_t limit,
             generation_limit(loaded.engine().max_positions(), prompt.ids.size(), wanted));
  return Generation(loaded, request, defaults, hooks, prompt.parser)
      .run(prompt, limit, wanted > 0 ? limit : 0);
}

}  // namespace locket::service
