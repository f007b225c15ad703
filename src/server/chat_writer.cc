#include "server/chat_writer.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "server/compact_arguments.h"
#include "server/reply_errors.h"
#include "server/reply_json.h"
#include "server/reply_logprobs.h"
#include "server/reply_usage.h"

namespace locket::server {
namespace {

using chat::FinishReason;
using chat::ReplyEvent;

// A client's loop over tools ends with "stop", whatever else the answer says. Who has seen the
// beginning of a call must be told of calls, also if the model broke it.
std::string_view finish_name(FinishReason reason, std::size_t calls) {
  if (reason == FinishReason::kStop && calls > 0) reason = FinishReason::kToolCalls;
  return chat::finish_reason_name(reason);
}

JsonObject head_of(const ReplyInfo& info, std::string_view object) {
  JsonObject head;
  head.text("id", info.id)
      .text("object", object)
      .integer("created", info.created)
      .text("model", info.model);
  if (!info.fingerprint.empty()) head.text("system_fingerprint", info.fingerprint);
  return head;
}

std::string function_json(std::string_view name, std::string_view arguments) {
  return JsonObject().text("name", name).text("arguments", arguments).str();
}

std::string first_call_delta(const ReplyEvent& event) {
  return JsonObject()
      .count("index", event.call)
      .text("id", event.call_id)
      .text("type", "function")
      .json("function", function_json(event.text, ""))
      .str();
}

std::string arguments_delta(std::size_t call, std::string_view arguments) {
  return JsonObject()
      .count("index", call)
      .json("function", JsonObject().text("arguments", arguments).str())
      .str();
}

std::string call_list(std::string_view call) { return JsonList().json(call).str(); }

class ChatWriter final : public ReplyWriter {
 public:
  explicit ChatWriter(ReplyInfo info)
      : info_(std::move(info)),
        head_(head_of(info_, "chat.completion.chunk")),
        choices_(info_.choice_count) {}

  std::string begin() override {
    JsonObject delta;
    delta.text("role", "assistant");
    if (info_.thinking == chat::ThinkingMode::kThinking) {
      delta.null("content").text("reasoning_content", "");
    } else {
      delta.text("content", "");
    }
    std::string out;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      out += chunk(choice, delta.str());
    }
    return out;
  }

  std::string update(const service::ChoiceUpdate& update) override {
    LOCKET_CHECK(update.choice < choices_.size());
    Choice& choice = choices_[update.choice];
    choice.tokens.insert(choice.tokens.end(), update.tokens.begin(), update.tokens.end());
    std::string out;
    for (const ReplyEvent& event : update.events) out += write_event(update.choice, event);
    return out;
  }

  std::string end(const service::RequestResult& result, const std::optional<Bill>& bill) override {
    LOCKET_CHECK(!result.error && result.choices.size() == choices_.size());
    const std::string usage = chat_usage(result, bill);
    const bool has_own_chunk = info_.usage_chunk == UsageChunk::kOwn;
    std::string out;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      if (choices_[choice].is_finished) continue;
      const FinishReason reason = result.choices[choice].reply.finish_reason;
      const bool is_last = ++finished_ == choices_.size();
      out += finish_chunk(choice, finish_name(reason, choices_[choice].calls),
                          is_last && !has_own_chunk ? usage : "");
    }
    if (has_own_chunk && info_.wants_stream_usage) {
      out += data_event(JsonObject(head_).json("choices", "[]").json("usage", usage).str());
    }
    return out + data_event("[DONE]");
  }

  std::string fail(const Error& error) override {
    return data_event(error_body(Dialect::kChat, error));
  }

  std::string keep_alive() const override { return std::string(kKeepAliveComment); }

 private:
  struct Choice {
    CompactArguments arguments;  // of the call that is open
    std::size_t calls = 0;       // begun
    bool is_finished = false;
    std::vector<service::SampledToken> tokens;  // not yet written
  };

  std::string write_event(std::size_t index, const ReplyEvent& event) {
    Choice& choice = choices_[index];
    switch (event.kind) {
      case ReplyEvent::Kind::kReasoning:
        return chunk(index, JsonObject().text("reasoning_content", event.text).str());
      case ReplyEvent::Kind::kContent:
        return chunk(index, JsonObject().text("content", event.text).str());
      case ReplyEvent::Kind::kCallName:
        choice.arguments = CompactArguments();
        ++choice.calls;
        return chunk(index,
                     JsonObject().json("tool_calls", call_list(first_call_delta(event))).str());
      case ReplyEvent::Kind::kCallArguments:
        return arguments_chunk(index, event.call, choice.arguments.push(event.text));
      case ReplyEvent::Kind::kCallEnd:
        return arguments_chunk(index, event.call, choice.arguments.finish());
      case ReplyEvent::Kind::kFinish:
        // The last one waits for the usage that end() brings.
        if (choice.is_finished || finished_ + 1 == choices_.size()) return {};
        ++finished_;
        return finish_chunk(index, finish_name(event.finish_reason, choice.calls), "");
      case ReplyEvent::Kind::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  std::string arguments_chunk(std::size_t index, std::size_t call, std::string_view arguments) {
    if (arguments.empty()) return {};
    return chunk(
        index, JsonObject().json("tool_calls", call_list(arguments_delta(call, arguments))).str());
  }

  std::string chunk(std::size_t index, std::string_view delta) {
    return write_chunk(index, delta, "null", "");
  }

  std::string finish_chunk(std::size_t index, std::string_view reason, std::string_view usage) {
    choices_[index].is_finished = true;
    return write_chunk(index, R"({"content":""})", json_quoted(reason), usage);
  }

  std::string write_chunk(std::size_t index, std::string_view delta, std::string_view finish,
                          std::string_view usage) {
    const std::vector<service::SampledToken> tokens = std::exchange(choices_[index].tokens, {});
    JsonObject choice;
    choice.count("index", index)
        .json("delta", delta)
        .json("logprobs", info_.wants_logprobs ? chat_logprobs(tokens) : "null")
        .json("finish_reason", finish);
    JsonObject out = head_;
    out.json("choices", JsonList().json(choice.str()).str());
    if (!usage.empty()) {
      out.json("usage", usage);
    } else if (info_.wants_stream_usage) {
      out.null("usage");
    }
    return data_event(out.str());
  }

  ReplyInfo info_;
  JsonObject head_;
  std::vector<Choice> choices_;
  std::size_t finished_ = 0;
};

std::string message_json(const ReplyInfo& info, const chat::Reply& reply) {
  JsonObject message;
  message.text("role", "assistant").text("content", reply.content);
  const std::string reasoning = reply.reasoning.value_or("");
  if (info.thinking == chat::ThinkingMode::kThinking || !reasoning.empty()) {
    message.text("reasoning_content", reasoning);
  }
  if (reply.tool_calls.empty()) return message.str();
  JsonList calls;
  for (std::size_t index = 0; index < reply.tool_calls.size(); ++index) {
    const chat::ReplyCall& call = reply.tool_calls[index];
    calls.json(JsonObject()
                   .count("index", index)
                   .text("id", call.id)
                   .text("type", "function")
                   .json("function", function_json(call.name, compact_arguments(call.arguments)))
                   .str());
  }
  return message.json("tool_calls", calls.str()).str();
}

}  // namespace

std::unique_ptr<ReplyWriter> make_chat_writer(ReplyInfo info) {
  return std::make_unique<ChatWriter>(std::move(info));
}

std::string chat_body(const ReplyInfo& info, const service::RequestResult& result,
                      const std::optional<Bill>& bill) {
  LOCKET_CHECK(!result.error);
  JsonList choices;
  for (std::size_t index = 0; index < result.choices.size(); ++index) {
    const service::ChoiceResult& choice = result.choices[index];
    const chat::Reply& reply = choice.reply;
    choices.json(
        JsonObject()
            .count("index", index)
            .json("message", message_json(info, reply))
            .json("logprobs", info.wants_logprobs ? chat_logprobs(choice.tokens) : "null")
            .text("finish_reason", finish_name(reply.finish_reason, reply.tool_calls.size()))
            .str());
  }
  return head_of(info, "chat.completion")
      .json("choices", choices.str())
      .json("usage", chat_usage(result, bill))
      .str();
}

}  // namespace locket::server
