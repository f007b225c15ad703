#include "server/generation_request.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/hash.h"
#include "chat/completion_request.h"
#include "chat/messages_request.h"
#include "chat/model_names.h"
#include "chat/request_json.h"
#include "chat/responses_request.h"
#include "server/tenants.h"

namespace locket::server {
namespace {

constexpr std::int64_t kChatTokens = 8'192;
constexpr std::int64_t kThinkingTokens = 65'536;
constexpr std::int64_t kMostEffortTokens = 131'072;
constexpr int kMostEffort = 100;
constexpr double kLeastThinkingTopP = 0.95;

std::uint64_t random_seed() {
  std::array<std::uint64_t, 1> seed = {};
  random_bytes(std::as_writable_bytes(std::span(seed)));
  return seed[0];
}

std::int64_t default_max_tokens(const chat::ChatRequest& request) {
  if (request.thinking == chat::ThinkingMode::kChat) return kChatTokens;
  return request.effort >= kMostEffort ? kMostEffortTokens : kThinkingTokens;
}

// What the hosted service makes of sampling wishes.
void make_compatible(chat::ChatRequest& request) {
  chat::SamplingWishes& wishes = request.sampling;
  wishes.frequency_penalty.reset();
  wishes.presence_penalty.reset();
  if (request.thinking == chat::ThinkingMode::kChat) {
    wishes.top_p.reset();
    return;
  }
  wishes.temperature.reset();
  if (wishes.top_p) wishes.top_p = std::max(*wishes.top_p, kLeastThinkingTopP);
}

std::string tenant_of_request(const chat::ChatRequest& request, const std::string& key_name) {
  return tenant_of(
      {.key_name = key_name, .user_id = request.user_id, .cache_salt = request.cache_salt});
}

service::CompletionDefaults defaults_of(const Serving& serving, const chat::ChatRequest& request) {
  service::CompletionDefaults defaults = serving.sampling_defaults();
  defaults.seed = random_seed();
  defaults.max_tokens = default_max_tokens(request);
  defaults.max_context = serving.options().max_context_tokens;
  defaults.too_long = service::CompletionDefaults::TooLong::kShorten;
  return defaults;
}

void address(GenerationRequest& request, const std::string& key_name) {
  request.prepared.generation.tenant = tenant_of_request(request.request, key_name);
  request.prepared.owner = key_name;
}

Result<GenerationRequest> read_completion(Serving& serving, std::string_view body,
                                          const std::string& key_name) {
  LOCKET_TRY(chat::CompletionRequest parsed, chat::parse_completion_request(body));
  GenerationRequest request;
  request.request = std::move(parsed.options);
  LOCKET_TRY(request.request.model,
             served_name(serving, Dialect::kCompletions, request.request.model));
  const service::LoadedModel& loaded = serving.model()->loaded;
  LOCKET_TRY(chat::RenderedPrompt prompt, chat::render_completion(parsed, loaded.tokenizer()));
  if (parsed.is_echo) {
    request.echo = parsed.prompt_ids.empty() ? parsed.prompt
                                             : loaded.tokenizer().decode_bytes(parsed.prompt_ids);
    request.echo = tokenizer::repair_utf8(request.echo);
  }
  if (serving.options().sampling == SamplingMode::kCompat) make_compatible(request.request);
  LOCKET_TRY(request.prepared, service::prepare_rendered(loaded, std::move(prompt), request.request,
                                                         defaults_of(serving, request.request)));
  address(request, key_name);
  return request;
}

Result<chat::ChatRequest> parse(Serving& serving, Dialect dialect, std::string_view body,
                                const std::string& key_name) {
  switch (dialect) {
    case Dialect::kChat:
      return chat::parse_chat_request(body);
    case Dialect::kMessages:
      return chat::parse_messages_request(body);
    case Dialect::kResponses: {
      // References find what this caller was told, whatever the user_id of the request says.
      const service::TenantItems items(serving.model()->issued_items,
                                       tenant_of({.key_name = key_name}));
      return chat::parse_responses_request(body, items);
    }
    case Dialect::kCompletions:
    case Dialect::kCount:
      break;
  }
  return fail(ErrorCode::kInternal, "a dialect without chat requests");
}

}  // namespace

Result<std::string> served_name(const Serving& serving, Dialect dialect, const std::string& name) {
  const std::vector<std::string>& names = serving.names();
  if (name.empty()) return names.front();
  const auto is_served = [&](const std::string& one) {
    return std::ranges::find(names, one) != names.end();
  };
  if (is_served(name)) return name;
  const std::string canonical = chat::canonical_model_name(name);
  if (is_served(canonical)) return canonical;
  if (dialect == Dialect::kMessages && canonical.starts_with("claude")) return canonical;
  return fail(ErrorCode::kNotFound,
              fmt::format("the model \"{}\" does not exist; this server has {}", name,
                          fmt::join(names, ", ")));
}

Result<chat::ChatRequest> read_chat_request(Serving& serving, Dialect dialect,
                                            std::string_view body, const std::string& key_name) {
  LOCKET_TRY(chat::ChatRequest request, parse(serving, dialect, body, key_name));
  LOCKET_TRY(request.model, served_name(serving, dialect, request.model));
  serving.model()->sampled_turns.put_back(tenant_of_request(request, key_name), request);
  return request;
}

Result<GenerationRequest> read_generation(Serving& serving, Dialect dialect, std::string_view body,
                                          const std::string& key_name) {
  if (dialect == Dialect::kCompletions) return read_completion(serving, body, key_name);
  GenerationRequest request;
  LOCKET_TRY(request.request, read_chat_request(serving, dialect, body, key_name));
  if (serving.options().sampling == SamplingMode::kCompat) make_compatible(request.request);
  LOCKET_TRY(request.prepared, service::prepare(serving.model()->loaded, request.request,
                                                defaults_of(serving, request.request)));
  address(request, key_name);
  return request;
}

}  // namespace locket::server
