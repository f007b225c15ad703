#include "service/prepared_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "chat/render_prompt.h"

namespace locket::service {
namespace {

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
                                     std::int64_t wanted, CompletionDefaults::TooLong too_long) {
  const std::size_t room = context > prompt_tokens ? context - prompt_tokens : 0;
  if (room == 0) {
    return fail(ErrorCode::kContextTooLong,
                fmt::format("this model's maximum context length is {} tokens; the prompt has {} "
                            "tokens and leaves no room for an answer",
                            context, prompt_tokens));
  }
  if (wanted <= 0) return room;
  const auto limit = static_cast<std::size_t>(wanted);
  if (room >= limit) return limit;
  if (too_long == CompletionDefaults::TooLong::kShorten) return room;
  return fail(ErrorCode::kContextTooLong,
              fmt::format("this model's maximum context length is {} tokens; a prompt of {} tokens "
                          "and {} more do not fit into it",
                          context, prompt_tokens, limit));
}

std::size_t context_of(const LoadedModel& loaded, const CompletionDefaults& defaults) {
  const std::size_t most = loaded.engine().max_positions();
  return defaults.max_context == 0 ? most : std::min(most, defaults.max_context);
}

Result<std::vector<engine::TokenId>> end_tokens_of(const LoadedModel& loaded,
                                                   const chat::ChatRequest& request) {
  std::vector<engine::TokenId> tokens;
  if (!request.ignore_eos) tokens.push_back(loaded.engine().eos_token());
  for (const std::int32_t token : request.stop_tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= loaded.engine().vocabulary_size()) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("stop_token_ids names token {}, the vocabulary has {} tokens", token,
                              loaded.engine().vocabulary_size()));
    }
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace

Result<PreparedRequest> prepare(const LoadedModel& loaded, const chat::ChatRequest& request,
                                const CompletionDefaults& defaults) {
  LOCKET_TRY(chat::RenderedPrompt prompt,
             chat::render_prompt(request, loaded.chat_format(), loaded.tokenizer()));
  return prepare_rendered(loaded, std::move(prompt), request, defaults);
}

Result<PreparedRequest> prepare_rendered(const LoadedModel& loaded, chat::RenderedPrompt prompt,
                                         const chat::ChatRequest& request,
                                         const CompletionDefaults& defaults) {
  if (!prompt.images.empty()) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("the messages hold {} images; this program reads text only",
                            prompt.images.size()));
  }
  PreparedRequest prepared;
  engine::GenerationRequest& generation = prepared.generation;
  const std::int64_t wanted = request.max_tokens.value_or(defaults.max_tokens);
  LOCKET_TRY(generation.max_tokens, generation_limit(context_of(loaded, defaults),
                                                     prompt.ids.size(), wanted, defaults.too_long));
  generation.prompt = std::move(prompt.ids);
  generation.system_tokens = prompt.system_ids;
  generation.tenant = loaded.engine().tenant();
  generation.sampling = sampling_of(request.sampling, defaults);
  LOCKET_TRY_STATUS(
      engine::check_sampling_config(generation.sampling, loaded.engine().vocabulary_size()));
  generation.seed = request.sampling.seed.value_or(defaults.seed);
  generation.min_tokens =
      std::min(static_cast<std::size_t>(request.min_tokens), generation.max_tokens);
  LOCKET_TRY(generation.end_tokens, end_tokens_of(loaded, request));
  generation.wants_logprobs = request.wants_logprobs;
  generation.top_logprobs = static_cast<std::size_t>(request.top_logprobs);
  prepared.choice_count = static_cast<std::size_t>(request.n);
  prepared.parser = prompt.parser;
  prepared.stop = request.stop;
  if (request.keeps_stop_text) prepared.stop_text = chat::StopText::kKeep;
  LOCKET_TRY(prepared.grammar, chat::ConstraintGrammar::compile(request, prompt.parser));
  // Made here, not on the thread that runs the model.
  if (prepared.grammar != nullptr) static_cast<void>(loaded.token_bytes());
  return prepared;
}

}  // namespace locket::service
