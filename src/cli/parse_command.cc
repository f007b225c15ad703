#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/json_fields.h"
#include "chat/json_number.h"
#include "chat/json_reader.h"
#include "chat/reply_parser.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/model_path.h"
#include "cli/token_lines.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;
using chat::Fields;
using chat::FinishReason;
using chat::JsonValue;
using tokenizer::Tokenizer;

// What one line asks for.
struct ParseJob {
  std::vector<std::string> pieces;  // of the output, as they are fed
  FinishReason finish = FinishReason::kStop;
  chat::ParserStart start;
  std::vector<std::string> stop;
};

// Only ids need a tokenizer, so it is loaded with the first line that has some.
class LazyTokenizer {
 public:
  explicit LazyTokenizer(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] Result<const Tokenizer*> get() {
    if (!tokenizer_) {
      LOCKET_TRY(const std::filesystem::path path, resolve_tokenizer(path_, {}));
      LOCKET_TRY(Tokenizer loaded, Tokenizer::load(path));
      tokenizer_.emplace(std::move(loaded));
    }
    return &*tokenizer_;
  }

 private:
  std::filesystem::path path_;
  std::optional<Tokenizer> tokenizer_;
};

// The value of an enum with kCount whose name is the member's text; `fallback` if there is none.
template <class Enum>
Result<Enum> parse_named(const Fields& fields, std::string_view name,
                         std::string_view (*name_of)(Enum), Enum fallback) {
  LOCKET_TRY(const auto text, fields.optional_string(name));
  if (!text) return fallback;
  std::string known;
  for (int value = 0; value < static_cast<int>(Enum::kCount); ++value) {
    const auto candidate = static_cast<Enum>(value);
    if (name_of(candidate) == *text) return candidate;
    known += (value == 0 ? "" : ", ") + std::string(name_of(candidate));
  }
  return chat::wrong_value(fields.path_of(name), chat::json_string(*text), "one of " + known);
}

Result<std::vector<std::string>> parse_stop(const JsonValue& parser, const Fields& fields) {
  constexpr std::string_view kWanted = "a list of strings that are not empty";
  std::vector<std::string> stop;
  LOCKET_TRY(const JsonValue* list, fields.optional_array("stop"));
  if (list == nullptr) return stop;
  for (const JsonValue& item : list->items) {
    if (!item.is_string() || item.text.empty()) {
      return chat::wrong_value(fields.path_of("stop"), *parser.find("stop"), kWanted);
    }
    stop.push_back(item.text);
  }
  return stop;
}

Status parse_parser(const JsonValue& parser, std::string_view path, ParseJob& job) {
  const Fields fields(parser, path);
  LOCKET_TRY(job.start.start,
             parse_named(fields, "start", &chat::reply_start_name, chat::ReplyStart::kContent));
  LOCKET_TRY(const auto tool_calls, fields.optional_bool("tool_calls"));
  job.start.tool_calls = tool_calls.value_or(true);
  LOCKET_TRY(const auto json, fields.optional_bool("json"));
  job.start.json = json.value_or(false);
  LOCKET_TRY(job.stop, parse_stop(parser, fields));
  return {};
}

// The text of each id, as a stream of ids gives it.
Result<std::vector<std::string>> decode_ids(const JsonValue& ids, std::string_view path,
                                            const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  tokenizer::StreamDecoder decoder(tokenizer);
  for (const JsonValue& item : ids.items) {
    const auto id = chat::read_uint64(item.text);
    if (item.kind != JsonValue::Kind::kInteger || !id || *id >= tokenizer.vocabulary_size()) {
      return chat::wrong_value(
          path, item, "a list of ids below " + std::to_string(tokenizer.vocabulary_size()));
    }
    pieces.push_back(decoder.push(static_cast<tokenizer::TokenId>(*id)));
  }
  pieces.push_back(decoder.finish());
  return pieces;
}

Status parse_input(const JsonValue& input, std::string_view path, LazyTokenizer& tokenizer,
                   ParseJob& job) {
  const Fields fields(input, path);
  LOCKET_TRY(job.finish,
             parse_named(fields, "finish", &chat::finish_reason_name, FinishReason::kStop));
  LOCKET_TRY(const JsonValue* ids, fields.optional_array("ids"));
  if (ids == nullptr) {
    LOCKET_TRY(std::string text, fields.required_string("text"));
    job.pieces.push_back(std::move(text));
    return {};
  }
  LOCKET_TRY(const Tokenizer* loaded, tokenizer.get());
  LOCKET_TRY(job.pieces, decode_ids(*ids, fields.path_of("ids"), *loaded));
  return {};
}

// {"text", "finish", "start", ...}, or the same under "input" and "parser".
Result<ParseJob> parse_line(std::string_view text, LazyTokenizer& tokenizer) {
  LOCKET_TRY(const JsonValue line, chat::read_json(text, "the line"));
  if (!line.is_object()) return chat::wrong_value("the line", line, "an object");
  const Fields fields(line, "");
  LOCKET_TRY(const JsonValue* input, fields.optional_object("input"));
  LOCKET_TRY(const JsonValue* parser, fields.optional_object("parser"));
  ParseJob job;
  LOCKET_TRY_STATUS(parse_input(input == nullptr ? line : *input, input == nullptr ? "" : "input",
                                tokenizer, job));
  LOCKET_TRY_STATUS(
      parse_parser(parser == nullptr ? line : *parser, parser == nullptr ? "" : "parser", job));
  return job;
}

chat::Reply run_job(const ParseJob& job, std::size_t piece_bytes) {
  chat::ReplyParser parser(job.start, job.stop);
  for (const std::string_view piece : job.pieces) {
    for (std::size_t begin = 0; begin < piece.size(); begin += piece_bytes) {
      parser.push(piece.substr(begin, piece_bytes));
      // Avoids overflow of `begin` when the pieces are whole.
      if (piece.size() - begin <= piece_bytes) break;
    }
  }
  parser.finish(job.finish);
  return parser.reply();
}

std::string to_json(const chat::Reply& reply) {
  Json calls = Json::array();
  for (const chat::ReplyCall& call : reply.tool_calls) {
    Json object;
    object["name"] = call.name;
    object["arguments"] = call.arguments;
    calls.push_back(std::move(object));
  }
  Json out;
  out["reasoning"] = reply.reasoning ? Json(*reply.reasoning) : Json(nullptr);
  out["content"] = reply.content;
  out["tool_calls"] = std::move(calls);
  out["finish_reason"] = chat::finish_reason_name(reply.finish_reason);
  return escape_line_ends(out.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

// Answers every line of stdin with one line. The result does not depend on --chunks; the option is
// there to show it.
int run_parse(const ParseOptions& options) {
  const std::int64_t wanted = options.chunks.value_or(0);
  const std::size_t piece_bytes =
      wanted > 0 ? static_cast<std::size_t>(wanted) : std::numeric_limits<std::size_t>::max();
  LazyTokenizer tokenizer(options.tokenizer);
  std::string text;
  for (std::size_t number = 1; std::getline(std::cin, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<ParseJob> job = parse_line(text, tokenizer);
    std::cout << (job ? to_json(run_job(*job, piece_bytes))
                      : error_line(job.error(), {.text = text, .number = number}))
              << '\n';
    std::cout.flush();
  }
  return 0;
}

}  // namespace locket::cli
