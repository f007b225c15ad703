// What a model's output means: where it starts, and its reasoning, content and calls, as a whole
// and as a stream of events. Plain data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace locket::chat {

// Where the model's output begins. The continued ones follow text that the client wrote.
enum class ReplyStart {
  kContent,
  kReasoning,
  kReasoningContinued,
  kContentContinued,
  kCalls,
  kCount
};

// The name used in JSON, for example "reasoning_continued".
std::string_view reply_start_name(ReplyStart start);

// How tool calls are spelled; see spelling_of() in markup.h.
enum class Markup { kV32, kV4, kV41, kCount };

struct ParserStart {
  ReplyStart start = ReplyStart::kContent;
  bool tool_calls = false;  // calls are looked for and delivered
  bool json = false;        // the answer is one JSON value
  Markup markup = Markup::kV41;
  bool has_lead_space = false;  // a space that the output begins with belongs to the format

  friend bool operator==(const ParserStart&, const ParserStart&) = default;
};

// What becomes of a stop string that was found.
enum class StopText { kDrop, kKeep, kCount };

enum class FinishReason { kStop, kLength, kToolCalls, kContentFilter, kCount };

// The name used in JSON, for example "tool_calls".
std::string_view finish_reason_name(FinishReason reason);

struct ReplyCall {
  std::string name;
  std::string arguments;  // JSON text as far as the model wrote JSON; bodies are not checked
  std::string id = {};    // given by whoever delivers the reply; the parser leaves it empty

  friend bool operator==(const ReplyCall&, const ReplyCall&) = default;
};

struct Reply {
  std::optional<std::string> reasoning;  // none: the model was not asked to think
  std::string content;
  // Calls of a block that the model closed. A block that was cut off, or a call with a broken
  // parameter, is never among them.
  std::vector<ReplyCall> tool_calls;
  FinishReason finish_reason = FinishReason::kStop;
  std::optional<std::size_t> stop_index;  // which stop string ended the answer
  std::size_t broken_calls = 0;           // begun and not delivered: cut off, or malformed
};

// Text always holds whole characters. Joined, the deltas of a kind are the Reply's text; the deltas
// of calls can also belong to a call that is cut off later, which then has no kCallEnd.
struct ReplyEvent {
  enum class Kind {
    kReasoning,      // text: more reasoning
    kContent,        // text: more content
    kCallName,       // text: the name; a new call begins
    kCallArguments,  // text: more of the arguments
    kCallEnd,        // the call is whole
    kFinish,         // finish_reason; always the last event
    kCount
  };

  Kind kind = Kind::kContent;
  std::size_t call = 0;  // of call events: 0, 1, 2 ... in the order of the names
  std::string text;
  FinishReason finish_reason = FinishReason::kStop;
  std::string call_id = {};  // of kCallName, as ReplyCall::id

  friend bool operator==(const ReplyEvent&, const ReplyEvent&) = default;
};

}  // namespace locket::chat
