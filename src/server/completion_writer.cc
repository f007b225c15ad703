#include "server/completion_writer.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "server/reply_errors.h"
#include "server/reply_json.h"
#include "server/reply_logprobs.h"
#include "server/reply_usage.h"

namespace locket::server {
namespace {

using chat::FinishReason;
using chat::ReplyEvent;

std::string_view finish_name(FinishReason reason) {
  // There are no calls in this dialect.
  if (reason == FinishReason::kToolCalls) reason = FinishReason::kStop;
  return chat::finish_reason_name(reason);
}

JsonObject head_of(const ReplyInfo& info) {
  JsonObject head;
  head.text("id", "cmpl-" + info.id)
      .text("object", "text_completion")
      .integer("created", info.created)
      .text("model", info.model);
  if (!info.fingerprint.empty()) head.text("system_fingerprint", info.fingerprint);
  return head;
}

std::string choice_json(std::size_t index, std::string_view text, std::string_view logprobs,
                        std::string_view finish) {
  return JsonObject()
      .text("text", text)
      .count("index", index)
      .json("logprobs", logprobs)
      .json("finish_reason", finish)
      .str();
}

class CompletionWriter final : public ReplyWriter {
 public:
  explicit CompletionWriter(ReplyInfo info)
      : info_(std::move(info)),
        head_(head_of(info_)),
        choices_(info_.choice_count,
                 Choice{.logprobs = CompletionLogprobs(info_.echo, info_.top_logprobs)}) {}

  std::string begin() override {
    if (info_.echo.empty()) return {};
    std::string out;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      out += write_chunk(choice, info_.echo, "null", "");
    }
    return out;
  }

  std::string update(const service::ChoiceUpdate& update) override {
    LOCKET_CHECK(update.choice < choices_.size());
    Choice& choice = choices_[update.choice];
    choice.tokens.insert(choice.tokens.end(), update.tokens.begin(), update.tokens.end());
    std::string out;
    for (const ReplyEvent& event : update.events) {
      if (event.kind == ReplyEvent::Kind::kContent) {
        out += write_chunk(update.choice, event.text, "null", "");
      }
      // The last finish waits for the usage that end() brings.
      const bool is_finish = event.kind == ReplyEvent::Kind::kFinish && !choice.is_finished;
      if (is_finish && finished_ + 1 < choices_.size()) {
        out += finish_chunk(update.choice, event.finish_reason, "");
      }
    }
    return out;
  }

  std::string end(const service::RequestResult& result, const std::optional<Bill>& bill) override {
    LOCKET_CHECK(!result.error && result.choices.size() == choices_.size());
    const std::string usage = chat_usage(result, bill);
    const bool has_own_chunk = info_.usage_chunk == UsageChunk::kOwn;
    std::string out;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      if (choices_[choice].is_finished) continue;
      const bool has_usage = finished_ + 1 == choices_.size() && !has_own_chunk;
      out +=
          finish_chunk(choice, result.choices[choice].reply.finish_reason, has_usage ? usage : "");
    }
    if (has_own_chunk && info_.wants_stream_usage) {
      out += data_event(JsonObject(head_).json("choices", "[]").json("usage", usage).str());
    }
    return out + data_event("[DONE]");
  }

  std::string fail(const Error& error) override {
    return data_event(error_body(Dialect::kCompletions, error));
  }

  std::string keep_alive() const override { return std::string(kKeepAliveComment); }

 private:
  struct Choice {
    CompletionLogprobs logprobs;
    std::vector<service::SampledToken> tokens = {};  // not yet written
    bool is_finished = false;
  };

  std::string finish_chunk(std::size_t index, FinishReason reason, std::string_view usage) {
    ++finished_;
    choices_[index].is_finished = true;
    return write_chunk(index, "", json_quoted(finish_name(reason)), usage);
  }

  std::string write_chunk(std::size_t index, std::string_view text, std::string_view finish,
                          std::string_view usage) {
    Choice& choice = choices_[index];
    const std::vector<service::SampledToken> tokens = std::exchange(choice.tokens, {});
    const std::string logprobs = info_.wants_logprobs ? choice.logprobs.take(tokens) : "null";
    JsonObject out = head_;
    out.json("choices", JsonList().json(choice_json(index, text, logprobs, finish)).str());
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

}  // namespace

std::unique_ptr<ReplyWriter> make_completion_writer(ReplyInfo info) {
  return std::make_unique<CompletionWriter>(std::move(info));
}

std::string completion_body(const ReplyInfo& info, const service::RequestResult& result,
                            const std::optional<Bill>& bill) {
  LOCKET_CHECK(!result.error);
  JsonList choices;
  for (std::size_t index = 0; index < result.choices.size(); ++index) {
    const service::ChoiceResult& choice = result.choices[index];
    CompletionLogprobs logprobs(info.echo, info.top_logprobs);
    choices.json(choice_json(index, info.echo + choice.reply.content,
                             info.wants_logprobs ? logprobs.take(choice.tokens) : "null",
                             json_quoted(finish_name(choice.reply.finish_reason))));
  }
  return head_of(info).json("choices", choices.str()).json("usage", chat_usage(result, bill)).str();
}

}  // namespace locket::server
