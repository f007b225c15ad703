// A request made ready to run: rendered, turned into tokens, checked against the model's limits,
// its defaults filled in. Plain data; made by prepare(), on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/output_constraint.h"
#include "chat/rendered_prompt.h"
#include "chat/reply.h"
#include "engine/generation.h"
#include "service/loaded_model.h"

namespace locket::service {

// What a request that does not say otherwise gets.
struct CompletionDefaults {
  double temperature = 0.0;  // greedy
  std::int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  std::uint64_t seed = 0;
  std::int64_t max_tokens = 0;  // 0: to the end of the context
  std::size_t max_context = 0;  // tokens of prompt and answer; 0: what the model takes
  // What prompt and max_tokens together being longer than the context means.
  enum class TooLong { kRefuse, kShorten } too_long = TooLong::kRefuse;
};

struct PreparedRequest {
  engine::GenerationRequest generation;  // of choice 0; the others differ in their number only
  std::size_t choice_count = 1;
  chat::ParserStart parser;
  std::vector<std::string> stop;
  chat::StopText stop_text = chat::StopText::kDrop;
  std::shared_ptr<const chat::ConstraintGrammar> grammar = {};  // null: free
  std::string owner = {};  // whose turn it is when many wait; who is counted
  std::string label = {};  // what pages and logs call it; never prompt text
};

// kUnsupported for images and for what the model's prompt format has no words for, kContextTooLong
// with the numbers if the prompt does not fit (and, unless too_long says otherwise, if prompt and
// max_tokens together do not), kBadRequest for values out of range and schemas that cannot be kept.
// The tenant is the engine's.
[[nodiscard]] Result<PreparedRequest> prepare(const LoadedModel& loaded,
                                              const chat::ChatRequest& request,
                                              const CompletionDefaults& defaults);

// The same for a prompt that was rendered in another way; `request` says the rest.
[[nodiscard]] Result<PreparedRequest> prepare_rendered(const LoadedModel& loaded,
                                                       chat::RenderedPrompt prompt,
                                                       const chat::ChatRequest& request,
                                                       const CompletionDefaults& defaults);

}  // namespace locket::service
