// What the owner of a request is told while it is answered, and the whole of it at the end. The
// sink is called from the thread that runs the model: it must return at once and never block.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/reply.h"
#include "engine/sampler.h"

namespace locket::service {

// A token with its natural log probability under the distribution before temperature and filters.
struct TokenLogprob {
  engine::TokenId token = 0;
  double logprob = 0;
  std::string bytes;  // what the token stands for; any bytes, not always whole characters
};

// A generated token, where log probabilities were asked for.
struct SampledToken {
  enum class Part { kReasoning, kContent, kOther, kCount };  // kOther: markup, calls, the end
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // most probable first
  Part part = Part::kContent;
};

// One choice has got further. Choices are numbered from 0.
struct ChoiceUpdate {
  std::size_t choice = 0;
  std::size_t new_tokens = 0;            // that the model has generated since the last update
  std::vector<chat::ReplyEvent> events;  // may be empty while text is held back
  std::vector<SampledToken> tokens;      // empty unless log probabilities were asked for
};

struct ChoiceResult {
  chat::Reply reply;
  std::vector<engine::TokenId> token_ids;  // generated, the end token left out
  std::vector<SampledToken> tokens;        // as in the updates, joined
  std::size_t completion_tokens = 0;       // token_ids.size(): with reasoning
  std::size_t reasoning_tokens = 0;
};

// Sums over all choices.
struct RequestUsage {
  std::size_t prompt_tokens = 0;  // of the one prompt that all choices share
  std::size_t hit_tokens = 0;     // of them, remembered; never more than prompt_tokens
  std::size_t disk_tokens = 0;    // of the remembered ones, read from disk
  std::size_t replayed_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t reasoning_tokens = 0;
};

struct RequestTimes {
  double queue_seconds = 0;        // until work on it began
  double restore_seconds = 0;      // until the last stored byte was in memory
  double prompt_seconds = 0;       // until its prompt was read, from the beginning of work
  double decode_seconds = 0;       // from then on
  double first_token_seconds = 0;  // from its arrival; 0: there was none
};

struct RequestResult {
  std::optional<Error> error;         // kCancelled if the owner gave it up
  std::vector<ChoiceResult> choices;  // one each; as far as they came, if there is an error
  RequestUsage usage;
  RequestTimes times;
};

class RequestSink {
 public:
  RequestSink() = default;
  RequestSink(const RequestSink&) = delete;
  RequestSink& operator=(const RequestSink&) = delete;
  virtual ~RequestSink() = default;

  // Work on it begins: it has left the queue.
  virtual void on_started() {}
  // Prompt tokens read so far, those remembered included.
  virtual void on_prompt(std::size_t /*done*/, std::size_t /*total*/) {}
  virtual void on_update(const ChoiceUpdate& update) = 0;
  // Exactly once, and last.
  virtual void on_end(const RequestResult& result) = 0;
};

}  // namespace locket::service
