#include "server/generation.h"

#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/render_prompt.h"
#include "server/generation_answer.h"
#include "server/generation_request.h"

namespace locket::server {
namespace {

// On a thread that prepares.
void run(RequestScope& scope) {
  Serving& serving = scope.serving;
  Result<GenerationRequest> request =
      read_generation(serving, scope.dialect, scope.exchange->request().body, scope.key_name);
  if (!request) return answer_error(scope, request.error());
  scope.record.ignored_fields = request->request.unknown_fields;
  request->prepared.label = fmt::format("{} {}", scope.route.pattern, request->request.model);
  const auto answer = std::make_shared<GenerationAnswer>(std::move(scope), *request);
  const auto id = serving.model()->dispatcher.submit(std::move(request->prepared), answer);
  if (!id) return answer->refuse(id.error());
  answer->begin(*id);
}

Result<chat::RenderedPrompt> render(const RequestScope& scope) {
  LOCKET_TRY(const chat::ChatRequest request,
             read_chat_request(scope.serving, scope.dialect, scope.exchange->request().body,
                               scope.key_name));
  const service::LoadedModel& loaded = scope.serving.model()->loaded;
  return chat::render_prompt(request, loaded.chat_format(), loaded.tokenizer());
}

std::string rendered_json(const RequestScope& scope, chat::RenderedPrompt& prompt) {
  chat::show_sampled(prompt.segments, scope.serving.model()->loaded.tokenizer());
  const nlohmann::ordered_json body = {{"prompt", chat::join_segments(prompt.segments)},
                                       {"count", prompt.ids.size()},
                                       {"max_model_len", scope.serving.context_tokens()},
                                       {"tokens", prompt.ids}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void generate(RequestScope scope) {
  const auto shared = std::make_shared<RequestScope>(std::move(scope));
  shared->serving.prepare([shared] { run(*shared); });
}

void render_only(RequestScope scope) {
  const auto shared = std::make_shared<RequestScope>(std::move(scope));
  shared->serving.prepare([shared] {
    Result<chat::RenderedPrompt> prompt = render(*shared);
    if (!prompt) return answer_error(*shared, prompt.error());
    if (shared->route.route == Route::kCountTokens) {
      return answer_json(*shared, fmt::format("{{\"input_tokens\":{}}}", prompt->ids.size()));
    }
    answer_json(*shared, rendered_json(*shared, *prompt));
  });
}

}  // namespace locket::server
