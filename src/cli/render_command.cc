#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "chat/render_prompt.h"
#include "chat/request_json.h"
#include "checkpoint/gguf.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/model_path.h"
#include "cli/token_lines.h"
#include "service/model_text.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::Tokenizer;

// A tokenizer that lies beside a model's config has the format of that model; one that lies alone
// is taken for V4.1's.
Result<service::ModelText> load_text(const RenderOptions& options) {
  LOCKET_TRY(const std::filesystem::path path, resolve_tokenizer(options.tokenizer, {}));
  if (checkpoint::is_gguf_file(path)) return service::read_model_text(path);
  std::error_code ignored;
  const bool has_model = path.filename() == "tokenizer.json" &&
                         std::filesystem::exists(path.parent_path() / "config.json", ignored);
  if (has_model) return service::read_model_text(path.parent_path());
  LOCKET_TRY(Tokenizer tokenizer, Tokenizer::load(path));
  return service::ModelText{"V4.1", std::move(tokenizer), chat::ChatFormat::kV41};
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

Result<std::string> answer(const service::ModelText& model, const std::string& line) {
  LOCKET_TRY(const chat::ChatRequest request, chat::parse_chat_request(line));
  LOCKET_TRY(chat::RenderedPrompt prompt,
             chat::render_prompt(request, model.format, model.tokenizer));
  chat::show_sampled(prompt.segments, model.tokenizer);
  return to_json(prompt);
}

}  // namespace

// Answers every line of stdin with one line: the prompt, or the refusal, which is an answer too.
int run_render(const RenderOptions& options) {
  const Result<service::ModelText> model = load_text(options);
  if (!model) {
    std::cerr << "locket render: " << model.error().message << '\n';
    return 1;
  }
  std::string text;
  for (std::size_t number = 1; std::getline(std::cin, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<std::string> answered = answer(*model, text);
    std::cout << (answered ? *answered
                           : error_line(answered.error(), {.text = text, .number = number}))
              << '\n';
    std::cout.flush();
  }
  return 0;
}

}  // namespace locket::cli
