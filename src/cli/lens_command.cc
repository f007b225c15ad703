// locket lens: what each layer of a model would say next, over a text.
#include <cstdio>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "chat/request_json.h"
#include "cli/commands.h"
#include "cli/ids_file.h"
#include "cli/lens_guesses.h"
#include "cli/lens_page.h"
#include "cli/lens_text.h"
#include "cli/model_path.h"
#include "cli/model_setup.h"
#include "cli/recall_cases.h"
#include "engine/model_memory.h"
#include "service/prepared_request.h"

namespace locket::cli {
namespace {

// What is read, and how it is called.
struct LensText {
  std::vector<engine::TokenId> ids;
  std::string title;
};

Result<LensText> from_request(const ModelSetup& setup, const chat::ChatRequest& request,
                              std::string title) {
  LOCKET_TRY(service::PreparedRequest prepared, service::prepare(setup.loaded, request, {}));
  return LensText{std::move(prepared.generation.prompt), std::move(title)};
}

Result<LensText> from_messages(const ModelSetup& setup, const std::filesystem::path& path) {
  LOCKET_TRY(const std::string body, read_whole_file(path));
  const Result<chat::ChatRequest> request = chat::parse_chat_request(body);
  if (!request) {
    return fail(request.error().code,
                fmt::format("{}: {}", path.string(), request.error().message));
  }
  return from_request(setup, *request, path.filename().string());
}

// As plain text, after the token that begins every text of the model.
LensText from_prompt(const ModelSetup& setup, const std::string& prompt) {
  LensText text = {.ids = setup.loaded.tokenizer().encode_text(prompt), .title = "the text given"};
  const std::int64_t bos = setup.model().shape().bos_token_id;
  if (bos >= 0) text.ids.insert(text.ids.begin(), static_cast<engine::TokenId>(bos));
  return text;
}

// The first conversation of the demo, with its right answer.
Result<LensText> from_recall(const ModelSetup& setup, const std::filesystem::path& folder) {
  Result<RecallCases> cases = load_recall_cases(folder);
  if (!cases) {
    return fail(cases.error().code,
                cases.error().message + "; -p TEXT, --messages FILE or --ids FILE names a text");
  }
  const RecallCase& first = cases->recall.front();
  LOCKET_TRY(LensText text, from_request(setup, first.request, "a conversation of the demo"));
  const auto answer = setup.loaded.tokenizer().encode_text(first.expected);
  text.ids.insert(text.ids.end(), answer.begin(), answer.end());
  return text;
}

Result<LensText> read_text(const LensOptions& options, const ModelSetup& setup,
                           const std::filesystem::path& folder) {
  if (!options.ids.empty()) {
    LOCKET_TRY(std::vector<engine::TokenId> ids, read_ids_file(options.ids));
    return LensText{std::move(ids), options.ids.filename().string()};
  }
  if (!options.messages.empty()) return from_messages(setup, options.messages);
  if (!options.prompt.empty()) return from_prompt(setup, options.prompt);
  return from_recall(setup, folder);
}

// Asked before the work, which can be long.
Status check_page(const std::filesystem::path& page) {
  if (page.empty()) return {};
  const std::filesystem::path folder = page.has_parent_path() ? page.parent_path() : ".";
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored) &&
      !std::filesystem::is_directory(page, ignored)) {
    return {};
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("--html {}: a file in a folder that is there is needed", page.string()));
}

Status show(const LensOptions& options) {
  LOCKET_TRY_STATUS(check_page(options.html));
  LOCKET_TRY(const std::filesystem::path folder, resolve_model(options.model.model));
  LOCKET_TRY(const ModelSetup setup, set_up_model(options.model));
  LOCKET_TRY(const LensText text, read_text(options, setup, folder));
  LOCKET_TRY(const LensReading reading,
             read_layers(setup.model(), setup.engine().pool(), setup.engine().workers(), text.ids));
  const tokenizer::Tokenizer& tokenizer = setup.loaded.tokenizer();
  if (!options.html.empty()) {
    const std::string title =
        fmt::format("{} ({}), {}", folder.filename().string(), reading.generation, text.title);
    const std::string page = lens_page(reading, tokenizer, title);
    LOCKET_TRY_STATUS(write_whole_file(options.html, std::as_bytes(std::span(page))));
  }
  const std::string out =
      options.json
          ? lens_json(reading, tokenizer)
          : fmt::format("What each layer would say: {}, {} tokens\n\n{}\n{}", text.title,
                        reading.positions(),
                        lens_guesses(reading, tokenizer, static_cast<std::size_t>(options.rows)),
                        lens_scores(reading));
  std::fwrite(out.data(), 1, out.size(), stdout);
  return {};
}

}  // namespace

int run_lens(const LensOptions& options) {
  const Status status = show(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
