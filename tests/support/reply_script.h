// Answers to write, made from model output by the parser that the server uses: the output is cut
// into random pieces, each of them a token, and the choices take turns at random.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/reply_parser.h"
#include "server/reply_writer.h"
#include "service/request_sink.h"

namespace locket::test_support {

struct ScriptedChoice {
  chat::ReplyStart start = chat::ReplyStart::kContent;
  std::string output;  // what the model writes, markup and all
  chat::FinishReason end = chat::FinishReason::kStop;
  std::vector<std::string> stop = {};
};

// What a writer is fed with.
struct ReplyScript {
  std::vector<service::ChoiceUpdate> updates;
  service::RequestResult result;
};

struct ScriptOptions {
  std::uint64_t seed = 1;
  std::size_t longest_piece = 7;  // bytes
  bool has_logprobs = false;
};

ReplyScript play(const std::vector<ScriptedChoice>& choices, const ScriptOptions& options = {});

// Model output: a block of calls, from lines "name", parameters "key", "true" or "false", "value".
struct ScriptedParameter {
  std::string_view key;
  std::string_view is_string;
  std::string_view value;
};
std::string call_markup(std::string_view name, const std::vector<ScriptedParameter>& parameters);
std::string block_markup(const std::vector<std::string>& calls);

// A plain info about one choice, thinking as asked.
server::ReplyInfo reply_info(chat::ThinkingMode thinking);

// The whole stream that a writer makes of a script.
std::string stream_of(server::Dialect dialect, const server::ReplyInfo& info,
                      const ReplyScript& script, const std::optional<server::Bill>& bill = {});

}  // namespace locket::test_support
