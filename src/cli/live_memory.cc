#include "cli/live_memory.h"

#include <fmt/format.h>
#include <system_error>
#include <vector>

#include "checkpoint/config_json.h"
#include "cli/model_setup.h"
#include "cli/text_table.h"
#include "engine/counter_random.h"
#include "engine/live_cache.h"
#include "model/generations/generation.h"

namespace locket::cli {
namespace {

using Align = TextTable::Align;

struct Measured {
  engine::LiveCacheSize size;
  double computed = 0;  // bytes per token by the layout
  std::string how;
  std::string resident;  // what its growth is made of
};

std::vector<engine::TokenId> random_ids(std::int64_t count, std::int64_t vocabulary) {
  std::vector<engine::TokenId> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const double draw = engine::uniform_draw({.position = i});
    ids[i] = static_cast<engine::TokenId>(draw * static_cast<double>(vocabulary));
  }
  return ids;
}

Result<Measured> measure_checkpoint(const std::filesystem::path& folder, std::int64_t tokens) {
  ModelOptions options;
  options.model = folder;
  LOCKET_TRY(const ModelSetup setup, set_up_model(options));
  const model::LanguageModel& model = setup.model();
  const auto ids = random_ids(tokens, model.shape().vocabulary_size);
  LOCKET_TRY(const engine::LiveCacheSize size,
             engine::measure_live_session(model, setup.engine().workers(), ids));
  return Measured{size, model.layout().bytes_per_token(), "random ids, run through the model",
                  "growth of the process, rings apart; with session state"};
}

Result<Measured> measure_config(const std::filesystem::path& path, std::int64_t tokens) {
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::ConfigFile::open(path));
  LOCKET_TRY(const model::Generation* generation, model::find_generation(file.root()));
  LOCKET_TRY(const model::ModelOutline outline,
             generation->outline(file.root(), generation->modes.front()));
  LOCKET_TRY(const engine::LiveCacheSize size, engine::fill_live_cache(outline.memory, tokens));
  return Measured{size, outline.memory.layout.bytes_per_token(),
                  "rows of random values, written without a model",
                  "growth of the process, rings apart"};
}

std::string size_table(const Measured& measured) {
  const engine::LiveCacheSize& size = measured.size;
  const auto tokens = static_cast<double>(size.tokens);
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  table.add_row({"", "bytes", "per token", ""});
  table.add_row({"computed", grouped_decimal(measured.computed * tokens),
                 grouped_decimal(measured.computed), "rows and index keys, by the layout"});
  table.add_row({"pages in use", grouped(size.page_bytes),
                 fmt::format("{:.2f}", size.page_bytes_per_token()), "by the page pool's account"});
  table.add_row({"resident", grouped_decimal(size.resident_bytes_per_token() * tokens),
                 fmt::format("{:.2f}", size.resident_bytes_per_token()), measured.resident});
  table.add_row({"rings", grouped(size.ring_bytes), "-", "windows, once per sequence"});
  return table.text(2);
}

}  // namespace

Result<std::string> live_memory_text(const std::filesystem::path& model, std::int64_t token_count) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(model, ignored);
  LOCKET_TRY(const Measured measured,
             is_file ? measure_config(model, token_count) : measure_checkpoint(model, token_count));
  return fmt::format("\nMeasured: {}\n{} tokens: {}\n{}", model.string(),
                     grouped(static_cast<std::uint64_t>(token_count)), measured.how,
                     size_table(measured));
}

}  // namespace locket::cli
