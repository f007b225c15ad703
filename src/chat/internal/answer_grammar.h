// The grammar of a whole output: reasoning, answer and calls, as a request asks for them. Pure
// function.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/internal/byte_automaton.h"
#include "chat/message.h"
#include "chat/reply.h"

namespace locket::chat {

// Of response_format and of the parameters of one tool.
inline constexpr std::size_t kMaxSchemaBytes = std::size_t{64} * 1024;

struct AnswerGrammar {
  Automaton automaton;
  std::string prefix;  // what the client wrote of the answer already
};

// Nothing if the request binds nothing. kBadRequest names the place in a schema, the keyword and
// the rule, or the limit that was passed.
[[nodiscard]] Result<std::optional<AnswerGrammar>> compile_answer(const ChatRequest& request,
                                                                  const ParserStart& start);

}  // namespace locket::chat
