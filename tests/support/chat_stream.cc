#include "tests/support/chat_stream.h"

#include <fmt/format.h>
#include <set>
#include <utility>

namespace locket::test_support {
namespace {

using nlohmann::json;

// Joins a delta to what is there: texts are joined, lists of logprobs too, objects member by
// member.
void accumulate(json& whole, const json& delta) {
  if (whole.is_null()) {
    whole = delta;
  } else if (whole.is_string() && delta.is_string()) {
    whole = whole.get<std::string>() + delta.get<std::string>();
  } else if (whole.is_array() && delta.is_array()) {
    for (const json& item : delta) whole.push_back(item);
  } else if (whole.is_object() && delta.is_object()) {
    for (const auto& [key, value] : delta.items()) accumulate(whole[key], value);
  }
}

// What both dialects share: heads, choices, finishes, usage, the end.
class ChunkReader {
 public:
  ChunkReader(std::string_view object, const ChatExpectation& expectation)
      : object_(object), expectation_(expectation), choices_(expectation.choice_count) {}
  virtual ~ChunkReader() = default;

  StreamCheck read(const std::vector<StreamEvent>& events) {
    for (std::size_t at = 0; at < events.size(); ++at) {
      report_.set_place(at);
      report_.require(!is_over_, "an event behind the end");
      read_event(events[at]);
    }
    report_.require(is_over_, "the stream has no end");
    if (error_.is_null()) {
      for (const Choice& choice : choices_) {
        report_.require(!choice.finish.is_null(), "a choice without a finish");
      }
      report_.require(!usage_.is_null() || !expects_usage(), "no usage");
    }
    return {.body = body(), .error = error_, .problems = report_.take()};
  }

 protected:
  struct Choice {
    json whole;  // message or text
    json logprobs;
    json finish;
    std::size_t chunks = 0;
    std::size_t calls = 0;
    int stage = 0;  // 0 nothing, 1 reasoning, 2 content, 3 calls
  };

  virtual void read_delta(Choice& choice, const json& chunk_choice) = 0;
  virtual json choice_body(std::size_t index, const Choice& choice) const = 0;
  virtual std::string body_object() const = 0;

  StreamReport report_;

 private:
  bool expects_usage() const {
    return expectation_.usage_chunk == server::UsageChunk::kWithFinish || expectation_.wants_usage;
  }

  void read_event(const StreamEvent& event) {
    report_.require(event.name.empty(), "an event line");
    if (event.data == "[DONE]") {
      is_over_ = true;
      report_.require(error_.is_null(), "[DONE] behind an error");
      return;
    }
    const json data = report_.parse(event);
    if (!data.contains("error")) return read_chunk(data);
    is_over_ = true;
    error_ = data["error"];
    for (const char* key : {"message", "type", "code"}) {
      report_.require(!text_at(error_, key).empty(), fmt::format("an error without {}", key));
    }
    report_.require(error_.contains("param"), "an error without param");
  }

  void read_chunk(const json& data) {
    report_.require_value(data, "object", object_);
    for (const char* key : {"id", "created", "model", "system_fingerprint"}) {
      report_.require(data.contains(key) && !data[key].is_null(), fmt::format("no {}", key));
      if (head_.contains(key)) report_.require_value(data, key, head_[key]);
      head_[key] = data.value(key, json());
    }
    const json list = data.value("choices", json());
    report_.require(list.is_array() && list.size() <= 1, "choices is no list of one");
    const bool has_choice = list.is_array() && !list.empty();
    const bool finishes = has_choice && read_choice(list[0]);
    read_usage(data, has_choice, finishes);
  }

  // Whether it is the finish of the last choice.
  bool read_choice(const json& entry) {
    const json index = entry.value("index", json());
    const bool is_known = index.is_number_unsigned() && index < choices_.size();
    report_.require(is_known, "a choice without a number below their count");
    if (!is_known) return false;
    Choice& choice = choices_[index.get<std::size_t>()];
    report_.require(choice.finish.is_null(), "a chunk behind the finish of its choice");
    report_.require(entry.contains("logprobs"), "no logprobs");
    report_.require(entry.contains("finish_reason"), "no finish_reason");
    read_delta(choice, entry);
    ++choice.chunks;
    accumulate(choice.logprobs, entry.value("logprobs", json()));
    const json finish = entry.value("finish_reason", json());
    if (finish.is_null()) return false;
    static const std::set<json> kReasons = {"stop", "length", "tool_calls", "content_filter"};
    report_.require(kReasons.contains(finish), "an unknown finish_reason");
    const bool ends_calls = finish == "tool_calls" || finish == "length";
    report_.require(choice.calls == 0 || ends_calls, "calls that end with another reason");
    report_.require(choice.calls > 0 || finish != "tool_calls", "tool_calls without a call");
    choice.finish = finish;
    return ++finished_ == choices_.size();
  }

  void read_usage(const json& data, bool has_choice, bool is_last_finish) {
    const bool is_own = expectation_.usage_chunk == server::UsageChunk::kOwn;
    const bool is_place = is_own ? !has_choice : is_last_finish;
    report_.require(has_choice || is_own, "a chunk without a choice");
    if (!is_place) {
      report_.require(!expectation_.wants_usage || data.contains("usage"), "no usage:null");
      report_.require(data.value("usage", json()).is_null(), "usage on another chunk");
      report_.require(expectation_.wants_usage || !data.contains("usage"), "usage not asked for");
      return;
    }
    report_.require(usage_.is_null(), "usage twice");
    usage_ = data.value("usage", json());
    for (const char* key : {"prompt_tokens", "completion_tokens", "total_tokens",
                            "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"}) {
      report_.require(usage_.is_object() && usage_.contains(key), fmt::format("no {}", key));
    }
  }

  json body() const {
    json out = head_;
    out["object"] = body_object();
    out["choices"] = json::array();
    for (std::size_t index = 0; index < choices_.size(); ++index) {
      json choice = choice_body(index, choices_[index]);
      choice["index"] = index;
      choice["logprobs"] = choices_[index].logprobs;
      choice["finish_reason"] = choices_[index].finish;
      out["choices"].push_back(choice);
    }
    out["usage"] = usage_;
    return out;
  }

  json object_;
  ChatExpectation expectation_;
  std::vector<Choice> choices_;
  json head_;
  json usage_;
  json error_;
  std::size_t finished_ = 0;
  bool is_over_ = false;
};

class ChatReader final : public ChunkReader {
 public:
  explicit ChatReader(const ChatExpectation& expectation)
      : ChunkReader("chat.completion.chunk", expectation) {}

 private:
  void read_delta(Choice& choice, const json& entry) override {
    const json delta = entry.value("delta", json());
    report_.require(delta.is_object(), "no delta");
    if (!delta.is_object()) return;
    const bool is_first = choice.chunks == 0;
    report_.require(delta.contains("role") == is_first, "role not exactly in the first chunk");
    if (is_first) report_.require_value(delta, "role", "assistant");
    read_text(choice, delta, "reasoning_content", 1);
    const bool is_start = is_first && delta.contains("content") && delta["content"].is_null();
    if (!is_start) read_text(choice, delta, "content", 2);
    if (delta.contains("tool_calls")) read_calls(choice, delta["tool_calls"]);
    json plain = delta;
    plain.erase("tool_calls");
    accumulate(choice.whole, plain);
  }

  void read_text(Choice& choice, const json& delta, const char* key, int stage) {
    if (!delta.contains(key)) return;
    report_.require(delta[key].is_string(), fmt::format("{} is no text", key));
    if (text_at(delta, key).empty()) return;
    report_.require(choice.stage <= stage, fmt::format("{} too late", key));
    choice.stage = stage;
  }

  void read_calls(Choice& choice, const json& calls) {
    report_.require(calls.is_array() && calls.size() == 1, "tool_calls is no list of one");
    if (!calls.is_array() || calls.empty()) return;
    const json& call = calls[0];
    const json index = call.value("index", json());
    report_.require(index.is_number_unsigned(), "a call without a number");
    if (!index.is_number_unsigned()) return;
    choice.stage = 3;
    const json function = call.value("function", json());
    report_.require(
        function.is_object() && function.contains("arguments") && function["arguments"].is_string(),
        "a call without arguments");
    json& whole = choice.whole["tool_calls"];
    if (index == choice.calls) {
      ++choice.calls;
      report_.require(!text_at(call, "id").empty(), "a new call without id");
      report_.require_value(call, "type", "function");
      report_.require(!text_at(function, "name").empty(), "a new call without name");
      whole.push_back(call);
      return;
    }
    report_.require(index == choice.calls - 1, "a call whose number is not that of the open one");
    report_.require(!call.contains("id") && !call.contains("type") && !function.contains("name"),
                    "id, type or name a second time");
    if (index < whole.size()) {
      json delta = call;
      delta.erase("index");
      accumulate(whole[index.get<std::size_t>()], delta);
    }
  }

  json choice_body(std::size_t /*index*/, const Choice& choice) const override {
    return {{"message", choice.whole}};
  }
  std::string body_object() const override { return "chat.completion"; }
};

class CompletionReader final : public ChunkReader {
 public:
  explicit CompletionReader(const ChatExpectation& expectation)
      : ChunkReader("text_completion", expectation) {}

 private:
  void read_delta(Choice& choice, const json& entry) override {
    report_.require(entry.contains("text") && entry["text"].is_string(), "no text");
    accumulate(choice.whole, entry.value("text", json()));
  }
  json choice_body(std::size_t /*index*/, const Choice& choice) const override {
    return {{"text", choice.whole}};
  }
  std::string body_object() const override { return "text_completion"; }
};

}  // namespace

StreamCheck check_chat_stream(const std::vector<StreamEvent>& events,
                              const ChatExpectation& expectation) {
  return ChatReader(expectation).read(events);
}

StreamCheck check_completion_stream(const std::vector<StreamEvent>& events,
                                    const ChatExpectation& expectation) {
  return CompletionReader(expectation).read(events);
}

}  // namespace locket::test_support
