#include "chat/completion_request.h"

#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

#include "chat/json_fields.h"
#include "chat/json_number.h"
#include "chat/json_value.h"
#include "chat/markup.h"
#include "chat/request_fields.h"
#include "chat/segments.h"

namespace locket::chat {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxToken = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxLogprobs = 20;

constexpr std::string_view kFillBegin = "<｜fim▁begin｜>";
constexpr std::string_view kFillHole = "<｜fim▁hole｜>";
constexpr std::string_view kFillEnd = "<｜fim▁end｜>";

constexpr std::string_view kPromptForms = "a string, or a list of token ids that is not empty";

constexpr std::array<std::string_view, 11> kOwnFields = {
    "prompt", "suffix",         "echo",    "logprobs", "max_tokens", "stop",
    "n",      "stream_options", "best_of", "user_id",  "user"};

Status parse_token_list(const JsonValue& list, std::string_view path, CompletionRequest& request) {
  for (std::size_t index = 0; index < list.items.size(); ++index) {
    const JsonValue& item = list.items[index];
    std::optional<std::int64_t> token;
    if (item.kind == JsonValue::Kind::kInteger) token = read_int64(item.text);
    if (!token || *token < 0 || *token > kMaxToken) {
      return wrong_value(item_path(path, index), item, "a token id");
    }
    request.prompt_ids.push_back(static_cast<std::int32_t>(*token));
  }
  if (request.prompt_ids.empty()) return wrong_value(path, list, kPromptForms);
  return {};
}

// A list may hold one prompt, as a text or as a list of ids.
Status parse_prompt(const JsonValue& body, CompletionRequest& request) {
  const JsonValue* prompt = find_present(body, "prompt");
  if (prompt == nullptr) return missing_field("prompt", kPromptForms);
  std::string path = "prompt";
  if (prompt->is_array() && !prompt->items.empty()) {
    const JsonValue& first = prompt->items.front();
    const bool is_nested = first.is_string() || first.is_array();
    if (is_nested && prompt->items.size() > 1) {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("prompt has {} prompts; one request may have one", prompt->items.size()));
    }
    if (is_nested) {
      prompt = &first;
      path = item_path(path, 0);
    }
  }
  if (prompt->is_array()) return parse_token_list(*prompt, path, request);
  if (!prompt->is_string()) return wrong_value(path, *prompt, kPromptForms);
  request.prompt = prompt->text;
  return {};
}

Status parse_output(const JsonValue& body, CompletionRequest& request) {
  const Fields fields(body, "");
  ChatRequest& options = request.options;
  LOCKET_TRY(options.max_tokens, fields.optional_integer("max_tokens", 1, kMaxCount));
  LOCKET_TRY(const auto echo, fields.optional_bool("echo"));
  request.is_echo = echo.value_or(false);
  LOCKET_TRY(const auto logprobs, fields.optional_integer("logprobs", 0, kMaxLogprobs));
  options.wants_logprobs = logprobs.has_value();
  options.top_logprobs = logprobs.value_or(0);
  LOCKET_TRY(const auto best_of, fields.optional_integer("best_of", 1, kMaxCount));
  if (best_of && *best_of != options.n) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("best_of is {} and n is {}; answers are not chosen among, so that they "
                            "must be the same",
                            *best_of, options.n));
  }
  return check_token_counts(options);
}

Result<std::vector<Segment>> fill_segments(const CompletionRequest& request,
                                           const tokenizer::Tokenizer& tokenizer) {
  for (const std::string_view token : {kFillBegin, kFillHole, kFillEnd}) {
    if (tokenizer.find_added_token(token)) continue;
    return fail(ErrorCode::kUnsupported,
                fmt::format("suffix is set, and the tokenizer of this model has no token {}; it "
                            "can only continue a text",
                            token));
  }
  SegmentWriter out;
  out.add_control(kBeginOfSentence);
  out.add_control(kFillBegin);
  out.add_plain(request.prompt);
  out.add_control(kFillHole);
  out.add_plain(request.suffix);
  out.add_control(kFillEnd);
  return out.take();
}

Status check_ids(const CompletionRequest& request, const tokenizer::Tokenizer& tokenizer) {
  for (std::size_t index = 0; index < request.prompt_ids.size(); ++index) {
    const std::int32_t id = request.prompt_ids[index];
    if (id >= 0 && static_cast<std::size_t>(id) < tokenizer.vocabulary_size()) continue;
    return fail(ErrorCode::kBadRequest,
                fmt::format("prompt[{}] is {}; it must be a token id below {}", index, id,
                            tokenizer.vocabulary_size()));
  }
  return {};
}

}  // namespace

Result<CompletionRequest> parse_completion_request(std::string_view json) {
  LOCKET_TRY(const JsonValue body, read_request(json, kOwnFields));
  CompletionRequest request;
  request.options.thinking = ThinkingMode::kChat;
  LOCKET_TRY_STATUS(parse_shared_fields(body, request.options));
  LOCKET_TRY_STATUS(parse_prompt(body, request));
  LOCKET_TRY(const auto suffix, Fields(body, "").optional_string("suffix"));
  request.suffix = suffix.value_or("");
  if (!request.suffix.empty() && !request.prompt_ids.empty()) {
    return fail(ErrorCode::kBadRequest,
                "suffix is set, and prompt is a list of token ids; with a suffix it must be a "
                "string");
  }
  LOCKET_TRY(request.options.stop, parse_stop(body, "stop"));
  LOCKET_TRY_STATUS(parse_choices(body, request.options));
  LOCKET_TRY_STATUS(parse_output(body, request));
  LOCKET_TRY(request.options.user_id, parse_user_id(body, "user_id"));
  request.options.unknown_fields = unknown_names(body, kOwnFields);
  return request;
}

Result<RenderedPrompt> render_completion(const CompletionRequest& request,
                                         const tokenizer::Tokenizer& tokenizer) {
  RenderedPrompt prompt;
  if (!request.prompt_ids.empty()) {
    LOCKET_TRY_STATUS(check_ids(request, tokenizer));
    prompt.ids = request.prompt_ids;
    prompt.segments = {{Segment::Kind::kSampled, "", prompt.ids}};
    return prompt;
  }
  if (request.suffix.empty()) {
    SegmentWriter out;
    if (tokenizer.find_added_token(kBeginOfSentence)) out.add_control(kBeginOfSentence);
    out.add_plain(request.prompt);
    prompt.segments = out.take();
  } else {
    LOCKET_TRY(prompt.segments, fill_segments(request, tokenizer));
  }
  LOCKET_TRY(prompt.ids, encode_segments(prompt.segments, tokenizer));
  if (prompt.ids.empty()) {
    return fail(ErrorCode::kBadRequest,
                "prompt is empty, and a document of this model begins with no token of its own; "
                "give it a text");
  }
  return prompt;
}

}  // namespace locket::chat
