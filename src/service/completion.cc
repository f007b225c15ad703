#include "service/completion.h"

#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "engine/scheduler.h"
#include "service/choice_answer.h"

namespace locket::service {
namespace {

// Follows the one choice of a request.
struct Progress {
  double start = monotonic_seconds();
  std::size_t read_tokens = 0;
  double read = 0;  // when the prompt had been read; 0: not yet
  Completion completion = {};
  engine::GenerationEnd end = {};
};

ChoiceHooks follow(Progress& progress, const CompletionHooks& hooks) {
  return {.on_admitted = {},
          .on_prompt =
              [&](std::size_t done, std::size_t total) {
                progress.read_tokens = done;
                if (done == total) progress.read = monotonic_seconds();
                if (hooks.on_prompt) hooks.on_prompt(done, total);
              },
          .on_update =
              [&](const ChoiceUpdate& update) {
                if (!hooks.on_event || progress.read == 0) return;
                for (const chat::ReplyEvent& event : update.events) hooks.on_event(event);
              },
          .on_end =
              [&](ChoiceResult result, const engine::GenerationEnd& end) {
                progress.completion.reply = std::move(result.reply);
                progress.completion.token_ids = std::move(result.token_ids);
                progress.completion.memory = end.memory;
                progress.end = end;
              }};
}

}  // namespace

Result<Completion> complete(const LoadedModel& loaded, const chat::ChatRequest& request,
                            const CompletionDefaults& defaults, const CompletionHooks& hooks) {
  LOCKET_TRY(PreparedRequest prepared, prepare(loaded, request, defaults));
  // With a bound the whole answer's pages are taken first: no surprise in the middle of it.
  const bool has_bound = request.max_tokens.has_value() || defaults.max_tokens > 0;
  if (has_bound) prepared.generation.answer_room = prepared.generation.max_tokens;
  const std::size_t prompt_tokens = prepared.generation.prompt.size();
  Progress progress;
  engine::Scheduler scheduler(loaded.engine(), {.max_running = 1});
  const auto id =
      scheduler.add(generation_of(prepared, 0),
                    std::make_shared<ChoiceAnswer>(loaded, prepared, 0, follow(progress, hooks)));
  do {
    if (hooks.stop.stop_requested()) scheduler.cancel(id);
  } while (scheduler.step());
  if (progress.end.reason == engine::EndReason::kFailed) {
    return tl::make_unexpected(std::move(progress.end.error));
  }
  Completion& completion = progress.completion;
  completion.is_cancelled = progress.end.reason == engine::EndReason::kCancelled;
  if (completion.is_cancelled && progress.read == 0) {
    return fail(ErrorCode::kCancelled, fmt::format("stopped after {} of {} prompt tokens",
                                                   progress.read_tokens, prompt_tokens));
  }
  completion.prompt_tokens = prompt_tokens;
  completion.prompt_seconds = progress.read - progress.start;
  completion.generation_seconds = monotonic_seconds() - progress.read;
  return std::move(completion);
}

}  // namespace locket::service
