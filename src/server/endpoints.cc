#include "server/endpoints.h"

#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "chat/json_fields.h"
#include "chat/json_reader.h"
#include "chat/render_prompt.h"
#include "server/generation_request.h"
#include "server/ui_state.h"
#include "tokenizer/tokenizer.h"

namespace locket::server {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::TokenId;

constexpr int kUnavailable = 503;
constexpr std::size_t kMostIds = 4'000'000;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string utc_time(std::int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

// Of one name that the model has.
Json model_json(const Serving& serving, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"type", "model"},
          {"created", serving.created()},
          {"created_at", utc_time(serving.created())},
          {"owned_by", "locket"},
          {"display_name", name},
          {"root", serving.names().front()},
          {"max_model_len", serving.context_tokens()}};
}

Result<std::vector<TokenId>> read_ids(const chat::JsonValue& body) {
  const chat::Fields fields(body, "");
  LOCKET_TRY(const chat::JsonValue* list, fields.optional_array("tokens"));
  if (list == nullptr) return chat::missing_field("tokens", "a list of ids");
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const std::string path = chat::item_path("tokens", i);
    const chat::JsonValue& item = list->items[i];
    std::int64_t id = -1;
    const bool is_integer = item.kind == chat::JsonValue::Kind::kInteger && item.text.size() < 10;
    if (is_integer) id = std::stoll(item.text);
    if (!is_integer || id < 0) {
      return chat::wrong_value(path, item, "a token id");
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

Result<std::vector<TokenId>> ids_of(RequestScope& scope) {
  const std::string& text = scope.exchange->request().body;
  const service::LoadedModel& loaded = scope.serving.model()->loaded;
  const tokenizer::Tokenizer& tokenizer = loaded.tokenizer();
  LOCKET_TRY(const chat::JsonValue body, chat::read_json(text, "the body", chat::kRequestLimits));
  if (!body.is_object()) {
    return chat::wrong_value("the body", body, "an object");
  }
  if (body.find("messages") != nullptr) {
    LOCKET_TRY(const chat::ChatRequest request,
               read_chat_request(scope.serving, Dialect::kChat, text, scope.key_name));
    LOCKET_TRY(chat::RenderedPrompt prompt,
               chat::render_prompt(request, loaded.chat_format(), tokenizer));
    return std::move(prompt.ids);
  }
  LOCKET_TRY(const std::string prompt, chat::Fields(body, "").required_string("prompt"));
  return tokenizer.encode_text(prompt);
}

}  // namespace

void tell_health(RequestScope& scope) {
  const Serving& serving = scope.serving;
  const bool is_alive = serving.is_alive();
  const bool takes_requests = serving.stage() == Serving::Stage::kReady && is_alive;
  const bool is_live = scope.route.route == Route::kLive;
  const bool is_well =
      is_live ? is_alive && serving.stage() != Serving::Stage::kFailed : takes_requests;
  Json body = {{"status", is_alive ? stage_name(serving.stage()) : "standstill"}};
  if (serving.stage() == Serving::Stage::kLoading) body["progress"] = serving.loading_progress();
  if (!is_well) {
    body["error"] = {
        {"code", kUnavailable},
        {"message", serving.stage() == Serving::Stage::kLoading
                        ? "Loading model"
                        : fmt::format("the server is {}", body["status"].get<std::string>())},
        {"type", "unavailable_error"}};
  }
  answer(scope, {.status = is_well ? 200 : kUnavailable, .body = text_of(body)});
}

void list_models(RequestScope& scope) {
  const Serving& serving = scope.serving;
  if (scope.route.route == Route::kModel) {
    const Result<std::string> name = served_name(serving, scope.dialect, scope.route.name);
    if (!name) return answer_error(scope, name.error());
    return answer_json(scope, text_of(model_json(serving, *name)));
  }
  Json data = Json::array();
  for (const std::string& name : serving.names()) data.push_back(model_json(serving, name));
  answer_json(scope, text_of({{"object", "list"},
                              {"data", data},
                              {"has_more", false},
                              {"first_id", serving.names().front()},
                              {"last_id", serving.names().back()}}));
}

void tell_version(RequestScope& scope) {
  answer_json(scope, text_of({{"version", LOCKET_VERSION}, {"engine", "locket"}}));
}

void tell_metrics(RequestScope scope) {
  const auto shared = std::make_shared<RequestScope>(std::move(scope));
  shared->serving.prepare([shared] {
    Serving& serving = shared->serving;
    Metrics& metrics = serving.metrics();
    if (const ServedModel* served = serving.model()) metrics.set_load(served->dispatcher.load());
    metrics.set_memory(serving.memory_numbers());
    metrics.set_bills(serving.bills().days());
    answer(*shared,
           {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()});
  });
}

void tell_state(RequestScope scope) {
  const auto shared = std::make_shared<RequestScope>(std::move(scope));
  shared->serving.prepare([shared] {
    Serving& serving = shared->serving;
    UiState state = {.now_seconds = wall_seconds(),
                     .model = {.stage = serving.stage(),
                               .loading_progress = serving.loading_progress(),
                               .name = serving.names().front(),
                               .context_tokens = serving.context_tokens(),
                               .version = LOCKET_VERSION},
                     .memory = serving.memory_numbers(),
                     .bills = serving.bills().days()};
    state.known_prefixes = known_prefixes_of(shared->exchange->request().query);
    if (const ServedModel* served = serving.model()) {
      state.model.numerics = served->loaded.engine().model().numerics().memory_name();
      state.load = served->dispatcher.load();
      state.requests = served->dispatcher.progress();
      state.prefixes = serving.model()->watch.latest();
    }
    answer_json(*shared, ui_state_json(state));
  });
}

void tokenize(RequestScope scope) {
  const auto shared = std::make_shared<RequestScope>(std::move(scope));
  shared->serving.prepare([shared] {
    const Result<std::vector<TokenId>> ids = ids_of(*shared);
    if (!ids) return answer_error(*shared, ids.error());
    answer_json(*shared, text_of({{"count", ids->size()},
                                  {"max_model_len", shared->serving.context_tokens()},
                                  {"tokens", *ids}}));
  });
}

void detokenize(RequestScope scope) {
  const auto shared = std::make_shared<RequestScope>(std::move(scope));
  shared->serving.prepare([shared] {
    const Result<chat::JsonValue> body =
        chat::read_json(shared->exchange->request().body, "the body",
                        {.levels = chat::kRequestLimits.levels, .values = kMostIds});
    if (!body) return answer_error(*shared, body.error());
    const Result<std::vector<TokenId>> ids = read_ids(*body);
    if (!ids) return answer_error(*shared, ids.error());
    const tokenizer::Tokenizer& tokenizer = shared->serving.model()->loaded.tokenizer();
    answer_json(*shared,
                text_of({{"prompt", tokenizer::repair_utf8(tokenizer.decode_bytes(*ids))}}));
  });
}

}  // namespace locket::server
