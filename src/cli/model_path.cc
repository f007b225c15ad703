#include "cli/model_path.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "checkpoint/gguf.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelVariable = "LOCKET_MODEL";
// build/<preset>/locket and <prefix>/bin/locket lie at most two folders below; one more to spare.
constexpr std::size_t kStepsUpwards = 4;

bool has_config(const fs::path& folder) {
  if (checkpoint::is_gguf_file(folder)) return true;
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

std::string joined(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) {
    if (!text.empty()) text += ", ";
    text += folder.string();
  }
  return text;
}

}  // namespace

std::vector<fs::path> model_candidates(const ModelSearch& search) {
  if (!search.named.empty()) return {search.named};
  const fs::path shipped = fs::path("models") / "mini";
  std::vector<fs::path> candidates;
  const auto add = [&candidates](fs::path candidate) {
    if (std::find(candidates.begin(), candidates.end(), candidate) != candidates.end()) return;
    candidates.push_back(std::move(candidate));
  };
  fs::path folder = search.program.parent_path();
  for (std::size_t step = 0; step < kStepsUpwards && !folder.empty(); ++step) {
    add(folder / shipped);
    add(folder / "share" / "locket" / shipped);
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  add(search.current_folder / shipped);
  return candidates;
}

Result<fs::path> find_model(const ModelSearch& search) {
  const std::vector<fs::path> candidates = model_candidates(search);
  for (const fs::path& folder : candidates) {
    if (has_config(folder)) return folder;
  }
  if (!search.named.empty()) {
    return fail(ErrorCode::kNotFound, fmt::format("{} is {}, where no config.json is; expected a "
                                                  "checkpoint folder",
                                                  kModelVariable, search.named));
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("no model is named, and the one that ships is not in any of: {}; name a "
                          "checkpoint folder, or set {}",
                          joined(candidates), kModelVariable));
}

Result<fs::path> find_default_model() {
  const char* named = std::getenv(kModelVariable);
  std::error_code ignored;
  return find_model({.named = named == nullptr ? "" : named,
                     .program = fs::read_symlink("/proc/self/exe", ignored),
                     .current_folder = fs::current_path(ignored)});
}

Result<fs::path> resolve_model(const fs::path& model) {
  if (!model.empty()) return model;
  return find_default_model();
}

Result<fs::path> resolve_tokenizer(const fs::path& tokenizer, const fs::path& model) {
  if (!tokenizer.empty()) return tokenizer;
  LOCKET_TRY(const fs::path folder, resolve_model(model));
  return checkpoint::is_gguf_file(folder) ? folder : folder / "tokenizer.json";
}

}  // namespace locket::cli
