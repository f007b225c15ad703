// One completion from token ids to reasoning, content and calls: decodes, parses, keeps to what the
// request binds it to, and says when the text is at its end. Called by the thread that runs the
// model.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/output_constraint.h"
#include "chat/reply_parser.h"
#include "engine/generation.h"
#include "service/loaded_model.h"
#include "service/prepared_request.h"
#include "service/request_sink.h"
#include "tokenizer/tokenizer.h"

namespace locket::service {

// All may be empty; called from the thread that runs the model.
struct ChoiceHooks {
  std::function<void(const engine::MemoryUse&)> on_admitted = {};
  std::function<void(std::size_t done, std::size_t total)> on_prompt = {};
  std::function<void(ChoiceUpdate)> on_update = {};
  std::function<void(ChoiceResult, const engine::GenerationEnd&)> on_end = {};
};

class ChoiceAnswer final : public engine::GenerationClient {
 public:
  // `loaded` must outlive it.
  ChoiceAnswer(const LoadedModel& loaded, const PreparedRequest& request, std::size_t choice,
               ChoiceHooks hooks);

  void on_admitted(const engine::MemoryUse& memory) override;
  void on_prompt(std::size_t done, std::size_t total) override;
  std::span<const std::uint64_t> allowed_tokens() override;
  bool constrains() const override { return constraint_.has_value(); }
  Verdict on_token(const engine::GeneratedToken& token) override;
  void on_end(const engine::GenerationEnd& end) override;

 private:
  // What of the output the next token belongs to.
  SampledToken::Part part_of(engine::TokenId token);
  SampledToken with_bytes(const engine::GeneratedToken& token, SampledToken::Part part) const;
  void name_calls(std::vector<chat::ReplyEvent>& events);
  void deliver(ChoiceUpdate update);

  const LoadedModel& loaded_;
  std::size_t choice_;
  ChoiceHooks hooks_;
  tokenizer::StreamDecoder decoder_;
  chat::ReplyParser parser_;
  std::optional<chat::OutputConstraint> constraint_;
  bool wants_logprobs_;
  bool has_warned_ = false;
  SampledToken::Part part_;  // where the output stands
  ChoiceResult result_;
  std::vector<std::string> call_ids_;     // of every call that was begun
  std::vector<std::size_t> whole_calls_;  // those that came to their end
};

// What the engine runs for choice `choice`.
engine::GenerationRequest generation_of(const PreparedRequest& request, std::size_t choice);

}  // namespace locket::service
