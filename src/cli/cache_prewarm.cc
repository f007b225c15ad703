// locket cache prewarm: prompts are read into the memory, and nothing is answered.
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/cache_parts.h"
#include "cli/model_setup.h"
#include "cli/progress_line.h"
#include "cli/text_table.h"
#include "engine/session.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;

// Tokens of one file: all, those that were remembered, those that were computed.
struct Warmed {
  std::size_t tokens = 0;
  std::size_t hit = 0;
  std::size_t computed = 0;
  double seconds = 0;
};

Result<Warmed> warm(const ModelSetup& setup, const std::filesystem::path& file) {
  LOCKET_TRY(const chat::RenderedPrompt prompt,
             render_file(file, {setup.loaded.tokenizer(), setup.loaded.chat_format()}));
  ProgressLine progress(fmt::format("reading {}", file.string()));
  const double start = monotonic_seconds();
  engine::Session session = setup.engine().make_session();
  const auto show = [&](std::size_t done) { progress.show(done, prompt.ids.size()); };
  Status status = session.prefill(prompt.ids, {}, show, {.system_tokens = prompt.system_ids});
  if (!status) {
    status.error().message = fmt::format("{}: {}", file.string(), status.error().message);
    return tl::make_unexpected(std::move(status.error()));
  }
  session.end_turn();
  const engine::MemoryUse use = session.memory_use();
  return Warmed{.tokens = prompt.ids.size(),
                .hit = use.hit_tokens,
                .computed = prompt.ids.size() - use.hit_tokens + use.replayed_tokens,
                .seconds = monotonic_seconds() - start};
}

void print(const CacheOptions& options, const std::filesystem::path& file, const Warmed& warmed) {
  if (options.json) {
    const Json json = {{"file", file.string()},
                       {"tokens", warmed.tokens},
                       {"hit_tokens", warmed.hit},
                       {"computed_tokens", warmed.computed},
                       {"seconds", warmed.seconds}};
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}: {} tokens, {} remembered, {} computed in {:.2f} s\n", file.string(),
               grouped(warmed.tokens), grouped(warmed.hit), grouped(warmed.computed),
               warmed.seconds);
  }
  std::fflush(stdout);
}

Status prewarm(const CacheOptions& options) {
  LOCKET_TRY_STATUS(memory_folder(options));
  LOCKET_TRY(const ModelSetup setup, set_up_remembering_model(options.model));
  const cache::DiskStore* const disk = setup.engine().memory()->disk();
  if (disk == nullptr || !disk->is_writable()) {
    return fail(ErrorCode::kBadRequest, fmt::format("the memory cannot be written: {}",
                                                    disk == nullptr ? "its folder cannot be used"
                                                                    : disk->read_only_reason()));
  }
  for (const std::filesystem::path& file : options.files) {
    LOCKET_TRY(const Warmed warmed, warm(setup, file));
    print(options, file, warmed);
  }
  setup.engine().memory()->flush();
  const cache::MemoryCounts counts = setup.engine().memory()->counts();
  const cache::DiskCounts stored = disk->counts();
  if (counts.turns_not_written == 0 && stored.pages_not_written == 0) return {};
  return fail(ErrorCode::kOverBudget,
              fmt::format("{} pages of what was read could not be stored in {}: is the quota or "
                          "the disk full?",
                          stored.pages_not_written, disk->directory().string()));
}

}  // namespace

int run_cache_prewarm(const CacheOptions& options) {
  const Status status = prewarm(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
