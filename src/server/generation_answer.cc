#include "server/generation_answer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/responses_items.h"
#include "server/tenants.h"

namespace locket::server {
namespace {

// More than this waiting for a reader stops his request until he has taken half of it.
constexpr std::size_t kMostBacklog = std::size_t{256} << 10;

ReplyInfo info_of(const RequestScope& scope, const GenerationRequest& request) {
  const chat::ChatRequest& wanted = request.request;
  ReplyInfo info = {.id = random_uuid(),
                    .created = static_cast<std::int64_t>(wall_seconds()),
                    .model = wanted.model,
                    .fingerprint = scope.serving.fingerprint(),
                    .thinking = wanted.thinking,
                    .choice_count = request.prepared.choice_count,
                    .prompt_tokens = request.prepared.generation.prompt.size(),
                    .wants_stream_usage = wanted.wants_stream_usage,
                    .wants_logprobs = wanted.wants_logprobs,
                    .top_logprobs = static_cast<std::size_t>(wanted.top_logprobs),
                    .stop = wanted.stop,
                    .echo = request.echo,
                    .namespaces = wanted.namespaces};
  if (scope.serving.options().openai_usage_chunk) info.usage_chunk = UsageChunk::kOwn;
  if (wanted.has_patch_tool) info.custom_tools = {"apply_patch"};
  return info;
}

}  // namespace

GenerationAnswer::GenerationAnswer(RequestScope scope, const GenerationRequest& request)
    : scope_(std::move(scope)),
      info_(info_of(scope_, request)),
      parser_(request.prepared.parser),
      tenant_(request.prepared.generation.tenant),
      is_stream_(request.request.is_stream),
      is_padded_(!is_stream_ && scope_.serving.options().pads_waiting_json) {
  scope_.record.model = info_.model;
  scope_.record.is_generation = true;
  scope_.record.is_stream = is_stream_;
  scope_.record.max_tokens = request.prepared.generation.max_tokens;
  scope_.record.usage.prompt_tokens = info_.prompt_tokens;
  if (is_stream_) writer_ = make_reply_writer(scope_.dialect, info_);
}

void GenerationAnswer::begin_stream() {
  std::call_once(begun_, [this] {
    HttpHeaders headers = scope_.headers;
    headers.emplace_back("Cache-Control", "no-cache");
    headers.emplace_back("X-Accel-Buffering", "no");
    scope_.exchange->start_stream({.status = 200,
                                   .content_type = "text/event-stream",
                                   .body = writer_->begin(),
                                   .headers = std::move(headers)});
    scope_.exchange->set_keep_alive(writer_->keep_alive(),
                                    scope_.serving.options().keep_alive_interval);
  });
}

// JSON may begin with blanks; the status is sent before it is known.
void GenerationAnswer::begin_padding() {
  std::call_once(begun_, [this] {
    scope_.exchange->start_stream({.status = 200, .headers = scope_.headers});
    scope_.exchange->set_keep_alive("\n", scope_.serving.options().keep_alive_interval);
  });
}

void GenerationAnswer::end_padded(const service::RequestResult& result) {
  begin_padding();
  scope_.serving.record(scope_.record);
  scope_.exchange->write(result.error
                             ? error_body(scope_.dialect, *result.error)
                             : reply_body(scope_.dialect, info_, result, scope_.record.bill));
  scope_.exchange->finish();
}

void GenerationAnswer::begin(service::Dispatcher::RequestId id) {
  if (is_stream_) begin_stream();
  if (is_padded_) begin_padding();
  service::Dispatcher& dispatcher = scope_.serving.model()->dispatcher;
  scope_.exchange->on_disconnect([&dispatcher, id] { dispatcher.cancel(id); });
  scope_.exchange->on_backlog(kMostBacklog, [&dispatcher, id](HttpExchange::Backlog backlog) {
    if (backlog == HttpExchange::Backlog::kFull) {
      dispatcher.pause(id);
    } else {
      dispatcher.resume(id);
    }
  });
}

void GenerationAnswer::refuse(const Error& error) { answer_error(scope_, error); }

void GenerationAnswer::on_update(const service::ChoiceUpdate& update) {
  if (update.new_tokens > 0) {
    const double now = monotonic_seconds();
    if (last_token_ > 0) scope_.serving.metrics().record_token_gap(now - last_token_);
    last_token_ = now;
  }
  if (!is_stream_) return;
  begin_stream();
  std::string bytes = writer_->update(update);
  if (!bytes.empty()) scope_.exchange->write(std::move(bytes));
}

// What a next request may refer to is kept before the client knows that this one is over.
void GenerationAnswer::on_end(const service::RequestResult& result) {
  bool is_referred_to = scope_.dialect == Dialect::kResponses;
  for (const service::ChoiceResult& choice : result.choices) {
    if (!choice.reply.tool_calls.empty()) is_referred_to = true;
  }
  if (result.error || !is_referred_to) return finish(result);
  scope_.serving.archive([self = shared_from_this(), result] {
    self->keep(result);
    self->finish(result);
  });
}

void GenerationAnswer::keep(const service::RequestResult& result) {
  const std::size_t ids = scope_.serving.model()->loaded.tokenizer().vocabulary_size();
  const auto is_padding = [ids](engine::TokenId id) { return static_cast<std::size_t>(id) >= ids; };
  for (const service::ChoiceResult& choice : result.choices) {
    if (choice.reply.tool_calls.empty()) continue;
    // An id that no text has cannot stand in a later prompt.
    if (std::ranges::any_of(choice.token_ids, is_padding)) continue;
    scope_.serving.model()->sampled_turns.keep(tenant_, {.ids = choice.token_ids,
                                                         .start = parser_,
                                                         .reasoning = choice.reply.reasoning,
                                                         .content = choice.reply.content,
                                                         .calls = choice.reply.tool_calls});
  }
  if (scope_.dialect == Dialect::kResponses) keep_items(result);
}

void GenerationAnswer::keep_items(const service::RequestResult& result) {
  const chat::Reply& reply = result.choices.front().reply;
  const std::string owner = tenant_of({.key_name = scope_.key_name});
  service::IssuedItemsStore& store = scope_.serving.model()->issued_items;
  std::size_t index = 0;
  if (reply.reasoning && !reply.reasoning->empty()) {
    store.keep(owner, response_item_id(info_, ItemKind::kReasoning, index),
               {.kind = chat::IssuedItem::Kind::kReasoning, .text = *reply.reasoning});
    ++index;
  }
  if (!reply.content.empty()) {
    store.keep(owner, response_item_id(info_, ItemKind::kMessage, index),
               {.kind = chat::IssuedItem::Kind::kMessage, .text = reply.content});
  }
}

void GenerationAnswer::fill_record(const service::RequestResult& result) {
  RequestRecord& record = scope_.record;
  record.usage = result.usage;
  record.times = result.times;
  record.total_seconds = monotonic_seconds() - scope_.start;
  if (result.error) {
    record.error = error_code_name(result.error->code);
    return;
  }
  record.finish = chat::finish_reason_name(result.choices.front().reply.finish_reason);
  const std::optional<Prices>& prices = scope_.serving.options().prices;
  if (prices) record.bill = bill_for(*prices, result.usage, wall_seconds());
}

void GenerationAnswer::finish(const service::RequestResult& result) {
  fill_record(result);
  if (is_padded_) return end_padded(result);
  if (!is_stream_) {
    if (result.error) return answer_error(scope_, *result.error);
    return answer_json(scope_, reply_body(scope_.dialect, info_, result, scope_.record.bill));
  }
  begin_stream();
  scope_.serving.record(scope_.record);
  scope_.exchange->write(result.error ? writer_->fail(*result.error)
                                      : writer_->end(result, scope_.record.bill));
  scope_.exchange->finish();
}

}  // namespace locket::server
