#include "tests/support/lineage_oracle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <stdexcept>
#include <utility>

#include "engine/session.h"
#include "model/generations/generation.h"
#include "tests/support/oracle_compare.h"

namespace locket::test_support {
namespace {

constexpr std::uint64_t kPoolBytes = std::uint64_t{256} << 20;

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void require_success(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

std::filesystem::path generation_path(const std::string& generation) {
  return oracle_path("lineage/" + generation);
}

// Everything that the observer is told, by layer and name.
class Capture : public model::ForwardObserver {
 public:
  void on_floats(const Place& place, std::span<const float> values) override {
    Floats& target = floats_[key(place)];
    target.width = place.width;
    target.values.insert(target.values.end(), values.begin(), values.end());
  }
  void on_integers(const Place& place, std::span<const std::int32_t> values) override {
    std::vector<std::vector<std::int32_t>>& target = integers_[key(place)];
    for (std::size_t at = 0; at + place.width <= values.size(); at += place.width) {
      const auto row = values.subspan(at, place.width);
      target.emplace_back(row.begin(), row.end());
    }
  }

  void give(LineageRun& run) {
    for (const auto& [name, floats] : floats_) {
      const std::size_t rows = floats.width == 0 ? 0 : floats.values.size() / floats.width;
      tensor::FloatMatrix matrix(rows, floats.width);
      std::ranges::copy(floats.values, matrix.values().begin());
      if (name == "logits") {
        run.logits = std::move(matrix);
      } else {
        run.floats.emplace(name, std::move(matrix));
      }
    }
    run.integers = std::move(integers_);
  }

 private:
  struct Floats {
    std::size_t width = 0;
    std::vector<float> values;
  };

  static std::string key(const Place& place) {
    if (place.layer < 0) return std::string(place.name);
    return fmt::format("l{}.{}", place.layer, place.name);
  }

  std::map<std::string, Floats> floats_;
  std::map<std::string, std::vector<std::vector<std::int32_t>>> integers_;
};

void copy_row(std::span<const std::byte> stored, std::span<float> row) {
  std::memcpy(row.data(), stored.data(), stored.size());
}

LineageMemory read_memory(const model::LanguageModel& model, engine::Session& session) {
  LineageMemory memory;
  const cache::KvLayout& layout = model.layout();
  if (model.numerics().mode != model::NumericsMode::kPlain) return memory;
  const cache::KvView view = session.memory().view();
  const auto tokens = static_cast<std::int64_t>(session.tokens().size());
  for (std::size_t i = 0; i < layout.streams.size(); ++i) {
    const std::size_t rows = to_size(tokens / layout.streams[i].tokens_per_row);
    tensor::FloatMatrix& matrix =
        memory.streams.emplace_back(rows, layout.streams[i].row_bytes / sizeof(float));
    for (std::size_t row = 0; row < rows; ++row) {
      copy_row(view.row(i, static_cast<std::int64_t>(row)), matrix.row(row));
    }
  }
  for (std::size_t i = 0; i < layout.rings.size(); ++i) {
    const std::size_t slots = to_size(layout.rings[i].slots);
    tensor::FloatMatrix& matrix =
        memory.rings.emplace_back(slots, layout.rings[i].row_bytes / sizeof(float));
    for (std::size_t slot = 0; slot < slots; ++slot) {
      copy_row(view.ring_slot(i, static_cast<std::int64_t>(slot)), matrix.row(slot));
    }
  }
  return memory;
}

// Lengths of 1 to 70: some end within groups and pages, some reach over them.
void read_in_slices(LineageModel& lineage, engine::Session& session,
                    std::span<const std::int32_t> tokens, std::uint32_t slice_seed,
                    model::ForwardObserver& observer) {
  require_success(session.begin(tokens));
  model::ForwardContext context = lineage.model().make_context(lineage.workers());
  context.observer = &observer;
  std::mt19937 random(slice_seed);
  while (session.is_reading()) {
    session.stage_slice(slice_seed == 0 ? tokens.size() : 1 + random() % 70);
    engine::Session* const sessions[] = {&session};
    require_success(engine::run_staged(lineage.model(), context, sessions).front());
  }
}

}  // namespace

std::filesystem::path lineage_checkpoint(const std::string& generation) {
  return generation_path(generation) / "checkpoint";
}

LineageModel& LineageModel::get(const std::string& generation, model::NumericsMode mode) {
  using Key = std::pair<std::string, model::NumericsMode>;
  static std::map<Key, std::unique_ptr<LineageModel>> models;
  std::unique_ptr<LineageModel>& entry = models[{generation, mode}];
  if (entry == nullptr) entry.reset(new LineageModel(generation, mode));
  return *entry;
}

LineageModel::LineageModel(const std::string& generation, model::NumericsMode mode)
    : vectors_(generation_path(generation) / "vectors.safetensors"),
      checkpoint_(value_of(checkpoint::Checkpoint::open(lineage_checkpoint(generation)))) {
  const model::Generation* const found =
      value_of(model::find_generation(checkpoint_.config().root()));
  const model::Numerics numerics = {.mode = value_of(model::choose_mode(*found, mode))};
  model_ = value_of(found->load(checkpoint_, {.numerics = numerics}));
  pool_ = std::make_unique<cache::PagePool>(model_->layout().page_bytes(), kPoolBytes);
}

std::vector<LineagePrompt> lineage_prompts(const OracleFile& vectors) {
  std::vector<LineagePrompt> prompts;
  for (std::size_t number = 0; vectors.has(fmt::format("p{}.tokens", number)); ++number) {
    LineagePrompt& prompt = prompts.emplace_back();
    prompt.name = fmt::format("p{}", number);
    prompt.tokens = vectors.at(prompt.name + ".tokens").integers;
    prompt.decode_tokens = vectors.at(prompt.name + ".decode_tokens").integers;
    prompt.positions = vectors.at(prompt.name + ".positions").integers;
    prompt.logits = vectors.matrix(prompt.name + ".logits");
    prompt.decode_logits = vectors.matrix(prompt.name + ".decode_logits");
  }
  for (const std::string inside : {"short", "medium"}) {
    const auto number = vectors.at(inside + ".prompt").integers.front();
    prompts.at(to_size(number)).inside = inside;
  }
  return prompts;
}

LineageRun run_lineage(LineageModel& lineage, const LineagePrompt& prompt,
                       std::uint32_t slice_seed) {
  LineageRun run;
  Capture capture;
  engine::Session session(lineage.model(), lineage.pool(), lineage.workers(),
                          {.replay = engine::ReplayMode::kFull, .observer = &capture});
  read_in_slices(lineage, session, prompt.tokens, slice_seed, capture);
  run.after_prompt = read_memory(lineage.model(), session);
  for (const std::int32_t token : prompt.decode_tokens) require_success(session.append(token));
  run.after_decode = read_memory(lineage.model(), session);
  capture.give(run);
  if (run.logits.rows() != prompt.tokens.size() + prompt.decode_tokens.size()) {
    throw std::runtime_error(prompt.name + ": not every position has logits");
  }
  return run;
}

void expect_same_logits(const std::string& generation, const LineagePrompt& prompt,
                        const LineageRun& run, double tolerance) {
  double in_prompt = 0;
  for (std::size_t row = 0; row < prompt.positions.size(); ++row) {
    const double distance =
        relative_l2(run.logits.row(to_size(prompt.positions[row])), prompt.logits.row(row));
    EXPECT_LE(distance, tolerance)
        << generation << " " << prompt.name << " position " << prompt.positions[row];
    in_prompt = std::max(in_prompt, distance);
  }
  double in_decode = 0;
  for (std::size_t step = 0; step < prompt.decode_tokens.size(); ++step) {
    const std::size_t position = prompt.tokens.size() + step;
    const double distance = relative_l2(run.logits.row(position), prompt.decode_logits.row(step));
    EXPECT_LE(distance, tolerance) << generation << " " << prompt.name << " step " << step;
    in_decode = std::max(in_decode, distance);
    EXPECT_EQ(argmax(run.logits.row(position - 1)), to_size(prompt.decode_tokens[step]))
        << generation << " " << prompt.name << ": greedy token " << step;
  }
  print_figures(fmt::format("{} {}: {} tokens, prompt {:.2e}, decode {:.2e}", generation,
                            prompt.name, prompt.tokens.size(), in_prompt, in_decode));
}

double largest_distance(const tensor::FloatMatrix& ours, const tensor::FloatMatrix& theirs) {
  if (ours.rows() != theirs.rows() || ours.rows() == 0) {
    throw std::runtime_error(
        fmt::format("{} and {} rows are compared", ours.rows(), theirs.rows()));
  }
  double largest = 0;
  for (std::size_t row = 0; row < ours.rows(); ++row) {
    largest = std::max(largest, relative_l2(ours.row(row), theirs.row(row)));
  }
  return largest;
}

tensor::FloatMatrix columns_of(const tensor::FloatMatrix& rows, std::size_t first,
                               std::size_t count) {
  tensor::FloatMatrix chosen(rows.rows(), count);
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    std::ranges::copy(rows.row(row).subspan(first, count), chosen.row(row).begin());
  }
  return chosen;
}

}  // namespace locket::test_support
