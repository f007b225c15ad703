// A chat request as the program understands it, whatever wire format it came in. Plain data: a
// request that parse_chat_request() returned is valid; code that fills one by hand must keep the
// rules of check_messages() in check_messages.h. Copies own their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/reply.h"

namespace locket::chat {

enum class Role { kSystem, kUser, kAssistant, kTool, kLatestReminder, kDeveloper, kCount };

// A picture that a message refers to. The text room only marks its place.
struct ImageSource {
  std::string url;     // data:image/..., http:// or https://
  std::string detail;  // low, high, original, auto, or empty
};

struct ContentPart {
  enum class Kind { kText, kImage, kCount };
  Kind kind = Kind::kText;
  std::string text;
  ImageSource image;
};

// A call in an old assistant message. `arguments` is the client's text, JSON or not.
struct ToolCall {
  std::string id;  // empty: the client gave none
  std::string name;
  std::string arguments;
};

// What a message asks for in place of an answer.
enum class Task { kNone, kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl, kCount };

struct Message {
  Role role = Role::kUser;
  std::vector<ContentPart> content;
  std::string reasoning;             // assistant
  std::vector<ToolCall> tool_calls;  // assistant
  std::string tool_call_id;          // tool; empty: the first call that waits for a result
  bool is_unfinished = false;        // assistant, last: the model continues this text
  Task task = Task::kNone;           // user, developer
  // assistant: the very tokens that the model sampled for this turn, without the end token. They
  // stand in the prompt in place of what reasoning, content and calls would be rendered to, unless
  // the request puts another header before the turn than the one they were sampled under.
  std::vector<std::int32_t> sampled = {};
  ReplyStart sampled_start = ReplyStart::kContent;  // where in the turn `sampled` begins
};

inline Message text_message(Role role, std::string text) {
  Message message;
  message.role = role;
  message.content.push_back({ContentPart::Kind::kText, std::move(text), {}});
  return message;
}

// Names that the model sees in place of nested ones: flat name -> {namespace, name}.
struct ToolNamespace {
  std::string flat;
  std::string name_space;
  std::string name;
};
using ToolNamespaces = std::vector<ToolNamespace>;

struct Tool {
  std::string name;
  std::string description;
  std::string parameters = "{}";  // JSON text in the form of python_json()
  bool is_strict = false;         // arguments must keep to the parameters
};

struct ToolChoice {
  enum class Kind { kAuto, kNone, kRequired, kNamed, kCount };
  Kind kind = Kind::kAuto;
  std::string name;  // kNamed
};

struct ResponseFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema, kCount };
  Kind kind = Kind::kText;
  std::string schema;  // kJsonSchema: JSON text in the form of python_json()
};

enum class ThinkingMode { kChat, kThinking, kCount };

// What happens to the reasoning of finished assistant messages: kept only while tools are offered
// (the hosted rule), or always.
enum class OldReasoning { kKeepWithTools, kKeepAlways, kCount };

inline constexpr int kDefaultEffort = 75;
inline constexpr std::size_t kMaxStopStrings = 16;

struct LogitBias {
  std::int32_t token = 0;
  double bias = 0.0;
};

// What the client said about sampling; nothing where it said nothing.
struct SamplingWishes {
  std::optional<double> temperature;  // 0 .. 2
  std::optional<double> top_p;        // 0 .. 1
  std::optional<double> min_p;        // 0 .. 1
  std::optional<std::int64_t> top_k;  // 0: off
  std::optional<std::uint64_t> seed;
  std::optional<double> frequency_penalty;   // -2 .. 2
  std::optional<double> presence_penalty;    // -2 .. 2
  std::optional<double> repetition_penalty;  // above 0, up to 10
  std::vector<LogitBias> logit_bias;
};

struct ChatRequest {
  std::string model;
  std::vector<Message> messages;
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  ResponseFormat response_format;

  ThinkingMode thinking = ThinkingMode::kThinking;
  int effort = kDefaultEffort;  // 1 .. 100
  OldReasoning old_reasoning = OldReasoning::kKeepWithTools;

  std::vector<std::string> stop;  // at most kMaxStopStrings, none empty
  SamplingWishes sampling;
  std::optional<std::int64_t> max_tokens;  // 1 ..
  std::int64_t n = 1;                      // completions wanted
  bool ignore_eos = false;
  bool wants_logprobs = false;
  std::int64_t top_logprobs = 0;  // 0 .. 20
  bool is_stream = false;
  bool wants_stream_usage = false;
  std::string user_id;
  std::string cache_salt;
  std::int64_t min_tokens = 0;            // the answer does not end before
  std::vector<std::int32_t> stop_tokens;  // end the answer like the end token
  bool keeps_stop_text = false;           // a matched stop string stays in the answer
  ToolNamespaces namespaces;
  // The tool "apply_patch" was offered as a custom one: a call of it is the text under "input".
  bool has_patch_tool = false;

  // Names of the body that nothing reads, in order, for the log.
  std::vector<std::string> unknown_fields;
};

// Whether the prompt shows tools: there are some and the choice is not "none".
inline bool has_visible_tools(const ChatRequest& request) {
  return !request.tools.empty() && request.tool_choice.kind != ToolChoice::Kind::kNone;
}

// Whether the answer must begin with a call.
inline bool has_forced_call(const ChatRequest& request) {
  return request.tool_choice.kind == ToolChoice::Kind::kRequired ||
         request.tool_choice.kind == ToolChoice::Kind::kNamed;
}

}  // namespace locket::chat
