// An answer in the words of one dialect: as a stream of events, piece by piece, and as one JSON
// body. The four dialects have one writer each, behind this interface; api.md names the test that
// holds each rule. A writer serves one request; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "service/request_sink.h"

namespace locket::server {

enum class Dialect { kChat, kCompletions, kResponses, kMessages, kCount };

// What the request costs at the configured prices, in US dollars.
struct Bill {
  double hit = 0;
  double miss = 0;
  double output = 0;
  bool is_peak = false;
  double total() const { return hit + miss + output; }
};

// Where a stream of Chat or Completions says its usage: with the finish of the last choice, as the
// hosted service does, or, if the request asks for it, in a chunk of its own without choices.
enum class UsageChunk { kWithFinish, kOwn, kCount };

// What an answer says besides the model's words.
struct ReplyInfo {
  std::string id = {};           // a bare UUID; writers add the prefix of their dialect
  std::int64_t created = 0;      // seconds since 1970
  std::string model = {};        // the served name
  std::string fingerprint = {};  // system_fingerprint
  chat::ThinkingMode thinking = chat::ThinkingMode::kChat;
  std::size_t choice_count = 1;
  std::size_t prompt_tokens = 0;    // known before the answer begins
  bool wants_stream_usage = false;  // stream_options.include_usage
  UsageChunk usage_chunk = UsageChunk::kWithFinish;
  bool wants_logprobs = false;
  std::size_t top_logprobs = 0;
  std::vector<std::string> stop = {};    // Messages reports which one matched
  std::string echo = {};                 // Completions: text that comes before the first piece
  chat::ToolNamespaces namespaces = {};  // Responses: names that were flattened for the model
  // Responses: tools whose calls are written as custom_tool_call. The text of such a call is its
  // argument "input", else its only argument if that is text, else all arguments.
  std::vector<std::string> custom_tools = {};
};

class ReplyWriter {
 public:
  ReplyWriter() = default;
  ReplyWriter(const ReplyWriter&) = delete;
  ReplyWriter& operator=(const ReplyWriter&) = delete;
  virtual ~ReplyWriter() = default;

  // Every function returns the bytes to send now, whole lines of a text/event-stream; may be empty.
  // begin() is called first, once; then update() for every update of the request; then end() or
  // fail(), once, which also ends the stream (nothing is sent after it).
  virtual std::string begin() = 0;
  virtual std::string update(const service::ChoiceUpdate& update) = 0;
  // REQUIRES: result.error is empty. `bill` is for the usage extension.
  virtual std::string end(const service::RequestResult& result,
                          const std::optional<Bill>& bill) = 0;
  virtual std::string fail(const Error& error) = 0;
  // Something to send while there is nothing to say; legal between any two of the above.
  virtual std::string keep_alive() const = 0;
};

std::unique_ptr<ReplyWriter> make_reply_writer(Dialect dialect, ReplyInfo info);

// The answer as one JSON body. REQUIRES: result.error is empty.
std::string reply_body(Dialect dialect, const ReplyInfo& info, const service::RequestResult& result,
                       const std::optional<Bill>& bill);

// The HTTP status of an error, and its body in the words of a dialect.
int http_status(const Error& error);
std::string error_body(Dialect dialect, const Error& error);

}  // namespace locket::server
