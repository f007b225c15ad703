#include "service/generation_config.h"

#include <span>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/config_json.h"

namespace locket::service {
namespace {

constexpr double kHighestTemperature = 2.0;

// 0 to `most`; `fallback` where the file is silent.
Result<double> number_or(const checkpoint::ConfigObject& config, std::string_view key, double most,
                         double fallback) {
  if (!config.has(key)) return fallback;
  LOCKET_TRY(const double value, config.number(key));
  if (value >= 0 && value <= most) return value;
  return config.refuse(key, "a number that is not negative and not too large is needed");
}

}  // namespace

Result<CompletionDefaults> read_generation_config(const std::filesystem::path& folder) {
  CompletionDefaults defaults;
  defaults.temperature = 1.0;
  const std::filesystem::path path = folder / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return defaults;
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::ConfigFile::open(path));
  const checkpoint::ConfigObject config = file.root();
  LOCKET_TRY(defaults.temperature, number_or(config, "temperature", kHighestTemperature, 1.0));
  LOCKET_TRY(defaults.top_p, number_or(config, "top_p", 1.0, 1.0));
  LOCKET_TRY(defaults.min_p, number_or(config, "min_p", 1.0, 0.0));
  if (config.has("top_k")) {
    LOCKET_TRY(defaults.top_k, config.integer_in("top_k", {.least = 0, .most = 1'000'000}));
  }
  return defaults;
}

std::string answers_identity(const LoadedModel& model) {
  const checkpoint::Checkpoint& checkpoint = model.engine().checkpoint();
  Sha256 digest;
  const std::string& config = checkpoint.config().text();
  digest.update(std::as_bytes(std::span(config)));
  if (checkpoint.gguf() != nullptr) digest.update(checkpoint.gguf()->header_digest());
  const Result<std::string> tokenizer = read_whole_file(checkpoint.folder() / "tokenizer.json");
  if (tokenizer) digest.update(std::as_bytes(std::span(*tokenizer)));
  return to_hex(digest.finish());
}

}  // namespace locket::service
