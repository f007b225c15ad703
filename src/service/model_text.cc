#include "service/model_text.h"

#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <system_error>
#include <utility>

#include "checkpoint/config_json.h"
#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "engine/generation_name.h"
#include "service/load_tokenizer.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNewestGeneration = "V4.1";

// Engram tables are made for every id of V4.1. Before it, a vocabulary is padded: no text has the
// ids beyond those of the tokenizer. What the config lacks is the engine's to say.
Status check_vocabulary(std::string_view generation, const checkpoint::ConfigObject& root,
                        const tokenizer::Tokenizer& tokenizer) {
  const bool is_newest = generation == kNewestGeneration;
  const Result<checkpoint::ConfigObject> text = is_newest ? root.object("text_config") : root;
  if (!text) return {};
  const Result<std::int64_t> size = text->integer("vocab_size");
  const auto ids = static_cast<std::int64_t>(tokenizer.vocabulary_size());
  if (!size || ids == *size || (!is_newest && ids < *size)) return {};
  return fail(
      ErrorCode::kBadCheckpoint,
      fmt::format("tokenizer.json has {} ids, {}vocab_size of config.json is {}; {}", ids,
                  is_newest ? "text_config." : "", *size,
                  is_newest ? "they must be equal" : "there may not be more ids than that"));
}

// Empty if there is none, or if it is a list of several.
Result<std::string> read_template(const fs::path& path) {
  if (checkpoint::is_gguf_file(path)) {
    LOCKET_TRY(const checkpoint::GgufFile file, checkpoint::GgufFile::open(path));
    return file.string("tokenizer.chat_template").value_or("");
  }
  const fs::path config_path = path / "tokenizer_config.json";
  std::error_code ignored;
  if (!fs::exists(config_path, ignored)) return std::string();
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::ConfigFile::open(config_path));
  return file.root().string("chat_template").value_or("");
}

}  // namespace

Result<ModelText> read_model_text(const fs::path& path) {
  LOCKET_TRY(tokenizer::Tokenizer tokenizer, load_tokenizer(path));
  LOCKET_TRY(const checkpoint::ConfigFile config, checkpoint::open_model_config(path));
  LOCKET_TRY(const std::string_view generation, engine::generation_name(config.root()));
  const auto at_path = [&path](Error error) {
    error.message = fmt::format("{}: {}", path.string(), error.message);
    return error;
  };
  LOCKET_TRY_STATUS(check_vocabulary(generation, config.root(), tokenizer).map_error(at_path));
  LOCKET_TRY(const std::string template_text, read_template(path));
  LOCKET_TRY(const chat::ChatFormat format,
             chat::choose_chat_format({generation, template_text}, tokenizer).map_error(at_path));
  return ModelText{std::string(generation), std::move(tokenizer), format};
}

}  // namespace locket::service
