#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/check.h"
#include "chat/render_v41.h"
#include "chat/request_json.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/model_path.h"
#include "cli/token_lines.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::Tokenizer;

Result<Tokenizer> load_tokenizer(const RenderOptions& options) {
  LOCKET_TRY(const std::filesystem::path path, resolve_tokenizer(options.tokenizer, {}));
  return Tokenizer::load(path);
}

Json to_json(const chat::Segment& segment) {
  switch (segment.kind) {
    case chat::Segment::Kind::kControl:
      return Json::array({"c", segment.text});
    case chat::Segment::Kind::kPlain:
      return Json::array({"t", segment.text});
    case chat::Segment::Kind::kSampled:
      return Json::array({"s", segment.text, segment.ids});
    case chat::Segment::Kind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::string to_json(const chat::RenderedPrompt& prompt) {
  Json segments = Json::array();
  for (const chat::Segment& segment : prompt.segments) segments.push_back(to_json(segment));
  Json parser;
  parser["start"] = chat::reply_start_name(prompt.parser.start);
  parser["tool_calls"] = prompt.parser.tool_calls;
  parser["json"] = prompt.parser.json;
  Json out;
  out["segments"] = std::move(segments);
  out["text"] = chat::join_segments(prompt.segments);
  out["ids"] = prompt.ids;
  out["n_tokens"] = prompt.ids.size();
  out["n_images"] = prompt.images.size();
  out["parser"] = std::move(parser);
  return escape_line_ends(out.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<std::string> answer(const Tokenizer& tokenizer, const std::string& line) {
  LOCKET_TRY(const chat::ChatRequest request, chat::parse_chat_request(line));
  LOCKET_TRY(chat::RenderedPrompt prompt, chat::render_v41(request, tokenizer));
  chat::show_sampled(prompt.segments, tokenizer);
  return to_json(prompt);
}

}  // namespace

// Answers every line of stdin with one line: the prompt, or the refusal, which is an answer too.
int run_render(const RenderOptions& options) {
  const Result<Tokenizer> tokenizer = load_tokenizer(options);
  if (!tokenizer) {
    std::cerr << "locket render: " << tokenizer.error().message << '\n';
    return 1;
  }
  std::string text;
  for (std::size_t number = 1; std::getline(std::cin, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<std::string> answered = answer(*tokenizer, text);
    std::cout << (answered ? *answered
                           : error_line(answered.error(), {.text = text, .number = number}))
              << '\n';
    std::cout.flush();
  }
  return 0;
}

}  // namespace locket::cli
