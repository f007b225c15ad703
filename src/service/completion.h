// One answer, from messages to text: render, read the prompt, generate, parse. What the command
// line and the server both need, written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/reply.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "service/loaded_model.h"
#include "service/prepared_request.h"

namespace locket::service {

struct CompletionHooks {
  // Called as text becomes certain; may be empty.
  std::function<void(const chat::ReplyEvent&)> on_event = {};
  // Called with the prompt tokens read so far and their number; may be empty.
  std::function<void(std::size_t done, std::size_t total)> on_prompt = {};
  std::stop_token stop = {};
};

struct Completion {
  chat::Reply reply;
  std::vector<engine::TokenId> token_ids;  // generated, the end token left out
  bool is_cancelled = false;               // stopped by the caller; the reply is what there was
  std::size_t prompt_tokens = 0;
  engine::MemoryUse memory;  // what was remembered of the prompt
  double prompt_seconds = 0;
  double generation_seconds = 0;
};

// kUnsupported for images, kContextTooLong and kOverBudget before any work if prompt and max_tokens
// do not fit, kBadRequest for sampling values out of range, kCancelled if stopped while reading the
// prompt. What was read and said is remembered, also if it ended early. One call at a time per
// model.
[[nodiscard]] Result<Completion> complete(const LoadedModel& loaded,
                                          const chat::ChatRequest& request,
                                          const CompletionDefaults& defaults,
                                          const CompletionHooks& hooks);

}  // namespace locket::service
