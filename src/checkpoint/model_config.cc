#include "checkpoint/model_config.h"

#include <system_error>

#include "checkpoint/gguf.h"

namespace locket::checkpoint {

Result<ConfigFile> open_model_config(const std::filesystem::path& model) {
  if (is_gguf_file(model)) {
    LOCKET_TRY(const GgufFile file, GgufFile::open(model));
    return ConfigFile::parse(file.config_text(), model.string());
  }
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(model, ignored);
  return ConfigFile::open(is_file ? model : model / "config.json");
}

}  // namespace locket::checkpoint
