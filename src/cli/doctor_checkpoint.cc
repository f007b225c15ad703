// A checkpoint: its files, what is in them, and whether it answers.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "base/direct_file.h"
#include "base/system_memory.h"
#include "checkpoint/tensor_sample.h"
#include "cli/cache_parts.h"
#include "cli/doctor_checks.h"
#include "cli/mode_choice.h"
#include "cli/progress_line.h"
#include "model/generations/generation.h"
#include "service/load_tokenizer.h"
#include "service/loaded_model.h"

namespace locket::cli {
namespace {

using Level = Finding::Level;

constexpr std::size_t kSampledBytesPerTensor = 12288;
// A model that is read in about a second is also run.
constexpr std::uint64_t kMostBytesToRun = std::uint64_t{1} << 30;

Finding finding(Level level, const char* name, std::string text, std::string advice = {}) {
  return {.level = level,
          .area = "checkpoint",
          .name = name,
          .text = std::move(text),
          .advice = std::move(advice)};
}

std::uint64_t tensor_bytes(const checkpoint::Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) bytes += tensor.byte_count();
  return bytes;
}

Finding check_shapes(checkpoint::Checkpoint& checkpoint) {
  const checkpoint::ConfigObject root = checkpoint.config().root();
  const auto generation = model::find_generation(root);
  if (!generation) return finding(Level::kFailure, "shapes", generation.error().message);
  const auto outline = (*generation)->outline(root, (*generation)->modes.front());
  if (!outline) return finding(Level::kFailure, "shapes", outline.error().message);
  const auto skipped = (*generation)->check(checkpoint);
  if (!skipped) return finding(Level::kFailure, "shapes", skipped.error().message);
  return finding(
      Level::kOk, "shapes",
      fmt::format("{}, {} layers, every tensor as the config wants it{}{}", (*generation)->name,
                  outline->shape.layer_count, skipped->empty() ? "" : "; ", *skipped));
}

std::vector<Finding> check_values(const checkpoint::Checkpoint& checkpoint) {
  ProgressLine progress("looking into the weights");
  const auto sample = checkpoint::sample_tensors(
      checkpoint, kSampledBytesPerTensor,
      [&progress](std::size_t done, std::size_t total) { progress.show(done, total); });
  if (!sample) return {finding(Level::kFailure, "values", sample.error().message)};
  if (sample->broken == 0) {
    return {finding(Level::kOk, "values",
                    fmt::format("numbers in all of {} that were looked at, of {} tensors",
                                bytes_text(sample->bytes), sample->tensors))};
  }
  std::vector<Finding> findings;
  for (const std::string& line : sample->findings) {
    findings.push_back(finding(Level::kFailure, "values", line,
                               "the file is damaged, or was converted wrongly: fetch it again"));
  }
  return findings;
}

// Whether experts and tables can be read past the system's page cache.
Finding check_direct_reads(const checkpoint::Checkpoint& checkpoint) {
  for (const checkpoint::SafetensorsFile& file : checkpoint.files()) {
    const Result<DirectFile> direct = DirectFile::open(file.path());
    if (!direct) return finding(Level::kFailure, "direct reads", direct.error().message);
    if (direct->is_direct()) continue;
    return finding(Level::kWarning, "direct reads",
                   fmt::format("the file system of {} has none", file.path().string()),
                   "weights that stay on disk are read more slowly: a local disk is better");
  }
  return finding(Level::kOk, "direct reads", "the file system has them");
}

// A few tokens through the whole model.
Finding check_answer(const std::filesystem::path& folder) {
  const auto mode = choose_mode({}, folder);
  if (!mode) return finding(Level::kFailure, "answer", mode.error().message);
  Result<service::LoadedModel> loaded = service::LoadedModel::open(
      folder, {.numerics = {.mode = *mode},
               .threads = 1,
               .memory = {.keeps = engine::MemoryOptions::Keeps::kNothing}});
  if (!loaded) return finding(Level::kFailure, "answer", loaded.error().message);
  const std::vector<tokenizer::TokenId> ids = loaded->tokenizer().encode_text("Hello there.");
  engine::Session session = loaded->engine().make_session();
  const Status read = session.prefill(ids);
  if (!read) return finding(Level::kFailure, "answer", read.error().message);
  const bool is_finite =
      std::ranges::all_of(session.logits(), [](float logit) { return std::isfinite(logit); });
  if (is_finite) {
    return finding(Level::kOk, "answer",
                   fmt::format("it runs: {} tokens in, numbers out", ids.size()));
  }
  return finding(Level::kFailure, "answer", "it runs, and what it gives are no numbers",
                 "weights are damaged that no sample has shown: fetch the files again");
}

Finding check_tokenizer(const std::filesystem::path& folder) {
  const auto tokenizer = service::load_tokenizer(folder);
  if (!tokenizer) return finding(Level::kFailure, "tokenizer", tokenizer.error().message);
  return finding(Level::kOk, "tokenizer", fmt::format("{} ids", tokenizer->vocabulary_size()));
}

}  // namespace

std::vector<Finding> check_checkpoint(const std::filesystem::path& folder) {
  auto checkpoint = checkpoint::Checkpoint::open(folder);
  if (!checkpoint) {
    return {finding(Level::kFailure, "files", checkpoint.error().message), check_tokenizer(folder)};
  }
  const std::uint64_t bytes = tensor_bytes(*checkpoint);
  std::vector<Finding> findings = {finding(
      Level::kOk, "files",
      fmt::format("{}: {} tensors in {} files, {}, each whole", folder.string(),
                  checkpoint->tensor_count(), checkpoint->files().size(), bytes_text(bytes)))};
  findings.push_back(check_shapes(*checkpoint));
  for (Finding& found : check_values(*checkpoint)) findings.push_back(std::move(found));
  findings.push_back(check_tokenizer(folder));
  findings.push_back(check_direct_reads(*checkpoint));
  if (!is_healthy(findings)) return findings;
  if (bytes > std::min(kMostBytesToRun, available_memory_bytes() / 2)) {
    findings.push_back(finding(Level::kOk, "answer",
                               "not tried: reading all weights takes long; locket run does"));
  } else {
    findings.push_back(check_answer(folder));
  }
  return findings;
}

}  // namespace locket::cli
