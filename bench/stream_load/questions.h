// The requests of the load and what the model answers to each of them alone: short and long
// prompts, greedy and seeded, with reasoning and without. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream_load/chat_stream.h"

namespace locket::stream_load {

struct Question {
  std::string body;       // JSON without its last brace
  std::string lone_text;  // the answer when nothing else runs
  std::size_t lone_tokens = 0;

  // The whole request. A salt makes the server forget what it has read of the same question.
  std::string with_salt(std::uint64_t salt) const;
  std::string whole() const { return body + "}"; }
};

std::vector<Question> make_questions();

// Asks each of them alone and keeps the answers. kIo names what went wrong.
[[nodiscard]] Status answer_alone(const Address& address, std::vector<Question>& questions);

}  // namespace locket::stream_load
