// V4-Flash and V4-Pro against recorded vectors of Hugging Face transformers: logits of prompts and
// of decode steps, greedy tokens, layer outputs, router choices, chosen rows and the memory, in
// mode `plain`; and, with the memory's quantizers, against the same code with quantizers planted
// into it.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <stdexcept>

#include "cache/page_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "kernels/row_codec.h"
#include "model/generations/v4.h"
#include "tests/support/lineage_oracle.h"
#include "tests/support/oracle_compare.h"

namespace locket::test_support {
namespace {

constexpr double kTolerance = 1e-5;

const model::V4Model& model_of(LineageModel& lineage) {
  return dynamic_cast<const model::V4Model&>(lineage.model());
}

class LineageV4Test : public ::testing::TestWithParam<std::string> {
 protected:
  LineageModel& plain() { return LineageModel::get(GetParam()); }
  const OracleFile& vectors() { return plain().vectors(); }
  const model::V4Config& config() { return model_of(plain()).config(); }

  std::vector<LineagePrompt> prompts_with_insides() {
    std::vector<LineagePrompt> prompts = lineage_prompts(vectors());
    std::erase_if(prompts, [](const LineagePrompt& prompt) { return prompt.inside.empty(); });
    return prompts;
  }

  // The first rows of `ours`, as many as were recorded, if there are any.
  void expect_same_rows(const tensor::FloatMatrix& ours, const std::string& name) {
    if (!vectors().has(name) || vectors().at(name).rows() == 0) return;
    const tensor::FloatMatrix theirs = vectors().matrix(name);
    ASSERT_LE(theirs.rows(), ours.rows()) << name;
    for (std::size_t row = 0; row < theirs.rows(); ++row) {
      EXPECT_LE(relative_l2(ours.row(row), theirs.row(row)), kTolerance) << name << " row " << row;
    }
    ++compared_;
  }

  void expect_same_window(const LineageMemory& memory, std::int64_t layer, std::size_t tokens,
                          const std::string& name) {
    if (!vectors().has(name)) return;
    const auto ring = static_cast<std::size_t>(
        model_of(plain()).memory().layers[static_cast<std::size_t>(layer)].ring);
    const tensor::FloatMatrix& slots = memory.rings.at(ring);
    const std::size_t count = vectors().at(name).rows();
    tensor::FloatMatrix newest(count, slots.columns());
    for (std::size_t i = 0; i < count; ++i) {
      std::ranges::copy(slots.row((tokens - count + i) % slots.rows()), newest.row(i).begin());
    }
    expect_same_rows(newest, name);
  }

  // Halves of the newest complete block: rows' values and gates, then those of the index keys.
  void expect_same_halves(const LineageMemory& memory, std::int64_t layer,
                          const std::string& prefix) {
    const int ring = model_of(plain()).memory().block_rings[static_cast<std::size_t>(layer)];
    if (ring < 0) return;
    const tensor::FloatMatrix& slots = memory.rings.at(static_cast<std::size_t>(ring));
    const auto dim = static_cast<std::size_t>(config().head_dim);
    const auto index_dim = static_cast<std::size_t>(config().index_head_dim);
    expect_same_rows(columns_of(slots, 0, dim), prefix + "rows_last_a_u");
    expect_same_rows(columns_of(slots, dim, dim), prefix + "rows_last_a_z");
    expect_same_rows(columns_of(slots, 2 * dim, index_dim), prefix + "index_rows_last_a_u");
    expect_same_rows(columns_of(slots, 2 * dim + index_dim, index_dim),
                     prefix + "index_rows_last_a_z");
  }

  void expect_same_memory(const LineageMemory& memory, std::size_t tokens,
                          const std::string& prefix) {
    for (std::int64_t layer = 0; layer < config().layer_count; ++layer) {
      const model::LayerMemory& place =
          model_of(plain()).memory().layers[static_cast<std::size_t>(layer)];
      const std::string name = fmt::format("{}.l{}.", prefix, layer);
      expect_same_window(memory, layer, tokens, name + "window");
      expect_same_halves(memory, layer, name);
      if (place.rows >= 0) {
        const auto& rows = memory.streams.at(static_cast<std::size_t>(place.rows));
        EXPECT_EQ(rows.rows(), vectors().at(name + "rows").rows()) << name;
        expect_same_rows(rows, name + "rows");
      }
      if (place.index_keys >= 0) {
        expect_same_rows(memory.streams.at(static_cast<std::size_t>(place.index_keys)),
                         name + "index_rows");
      }
    }
  }

  void expect_same_routing(const LineageRun& run, std::int64_t layer, const std::string& inside) {
    const std::string ours = fmt::format("l{}.", layer);
    const std::string theirs = fmt::format("{}.l{}.", inside, layer);
    const OracleTensor& ids = vectors().at(theirs + "router_ids");
    const tensor::FloatMatrix weights = vectors().matrix(theirs + "router_weights");
    const auto& chosen = run.integers.at(ours + "experts");
    const tensor::FloatMatrix& chosen_weights = run.floats.at(ours + "expert_weights");
    for (std::size_t row = 0; row < ids.rows(); ++row) {
      std::map<std::int32_t, float> by_id;
      for (std::size_t i = 0; i < ids.width(); ++i) {
        by_id[chosen[row][i]] = chosen_weights.row(row)[i];
      }
      std::size_t i = 0;
      ASSERT_EQ(by_id.size(), ids.width());
      for (const auto& [id, weight] : by_id) {
        EXPECT_EQ(id, ids.integers[row * ids.width() + i]) << theirs << " position " << row;
        EXPECT_NEAR(weight, weights.row(row)[i], 1e-5) << theirs << " position " << row;
        ++i;
      }
    }
  }

  void expect_same_choice(const LineageRun& run, std::int64_t layer, const std::string& inside) {
    if (config().kind(layer) != model::V4LayerKind::kChosen) return;
    const OracleTensor& theirs = vectors().at(fmt::format("{}.l{}.index_ids", inside, layer));
    const auto& ours = run.integers.at(fmt::format("l{}.index", layer));
    const auto without_empty = [](std::span<const std::int32_t> ids) {
      std::vector<std::int32_t> rows(ids.begin(), ids.end());
      std::erase(rows, -1);
      return rows;
    };
    for (std::size_t row = 0; row < theirs.rows(); ++row) {
      const auto recorded =
          std::span(theirs.integers).subspan(row * theirs.width(), theirs.width());
      EXPECT_EQ(without_empty(ours[row]), without_empty(recorded))
          << inside << " layer " << layer << " position " << row;
    }
    ++compared_;
  }

  std::size_t compared_ = 0;
};

TEST_P(LineageV4Test, RotationFrequenciesAreTheRecordedOnes) {
  EXPECT_EQ(model::rotary_frequencies(config().plain_rope),
            vectors().at("rope.main_inv_freq").floats);
  EXPECT_EQ(model::rotary_frequencies(config().compressed_rope),
            vectors().at("rope.compress_inv_freq").floats);
}

TEST_P(LineageV4Test, LogitsAndGreedyTokensAreTheRecordedOnesForAnySlices) {
  const std::vector<LineagePrompt> prompts = lineage_prompts(vectors());
  ASSERT_EQ(prompts.size(), 16U);
  for (const LineagePrompt& prompt : prompts) {
    const LineageRun run = run_lineage(plain(), prompt, 0);
    expect_same_logits(GetParam(), prompt, run);
    for (const std::uint32_t seed : {1u, 2u}) {
      const LineageRun sliced = run_lineage(plain(), prompt, seed);
      EXPECT_TRUE(std::ranges::equal(run.logits.values(), sliced.logits.values()))
          << prompt.name << ": slices of seed " << seed << " change the logits";
    }
  }
}

TEST_P(LineageV4Test, LayersChoicesAndMemoryAreTheRecordedOnes) {
  const std::vector<LineagePrompt> prompts = prompts_with_insides();
  ASSERT_EQ(prompts.size(), 2U);
  for (const LineagePrompt& prompt : prompts) {
    const LineageRun run = run_lineage(plain(), prompt, 3);
    expect_same_memory(run.after_prompt, prompt.tokens.size(), prompt.inside + ".cache");
    for (std::int64_t layer = 0; layer < config().layer_count; ++layer) {
      expect_same_routing(run, layer, prompt.inside);
      expect_same_choice(run, layer, prompt.inside);
    }
    if (prompt.inside != "short") continue;
    expect_same_memory(run.after_decode, prompt.tokens.size() + prompt.decode_tokens.size(),
                       "short.cache_after");
    for (std::int64_t layer = 0; layer < config().layer_count; ++layer) {
      const std::string ours = fmt::format("l{}.", layer);
      const std::string theirs = fmt::format("short.l{}.", layer);
      expect_same_rows(run.floats.at(ours + "attention"), theirs + "attn_out");
      expect_same_rows(run.floats.at(ours + "moe"), theirs + "mlp_out");
      expect_same_rows(run.floats.at(ours + "streams"), theirs + "out");
    }
  }
  EXPECT_GT(compared_, 60U) << "hardly anything was compared";
}

// A model with the quantizers of the memory, and what it says of all positions of a sequence.
class QuantizedModel {
 public:
  QuantizedModel(const std::string& generation, model::V4RowTail tail)
      : checkpoint_(value_of(checkpoint::Checkpoint::open(lineage_checkpoint(generation)))),
        model_(value_of(model::V4Model::load(
            checkpoint_, {.numerics = {.mode = model::NumericsMode::kWide}, .row_tail = tail}))),
        pool_(model_.layout().page_bytes(), std::uint64_t{64} << 20) {}

  const model::V4Model& model() const { return model_; }

  // Logits of all positions. `ring` gets the first ring, decoded, if it is not null.
  tensor::FloatMatrix run(std::span<const std::int32_t> prompt, std::span<const std::int32_t> more,
                          tensor::FloatMatrix* ring = nullptr) {
    LogitsOnly observer;
    engine::Session session(model_, pool_, workers_,
                            {.replay = engine::ReplayMode::kFull, .observer = &observer});
    require(session.prefill(prompt));
    for (const std::int32_t token : more) require(session.append(token));
    if (ring != nullptr) decode_first_ring(session.memory().view(), *ring);
    tensor::FloatMatrix logits(prompt.size() + more.size(),
                               observer.values.size() / (prompt.size() + more.size()));
    std::ranges::copy(observer.values, logits.values().begin());
    return logits;
  }

 private:
  struct LogitsOnly : model::ForwardObserver {
    void on_floats(const Place& place, std::span<const float> more) override {
      if (place.name == "logits") values.insert(values.end(), more.begin(), more.end());
    }
    void on_integers(const Place&, std::span<const std::int32_t>) override {}
    std::vector<float> values;
  };

  template <class T>
  static T value_of(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }
  static void require(const Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
  }

  void decode_first_ring(const cache::KvView& view, tensor::FloatMatrix& ring) const {
    const model::RowEncoding row = model_.outline().memory.ring_rows.front();
    ring = {static_cast<std::size_t>(model_.layout().rings.front().slots), row.width};
    for (std::size_t slot = 0; slot < ring.rows(); ++slot) {
      kernels::decode_row(row.format, view.ring_slot(0, static_cast<std::int64_t>(slot)),
                          ring.row(slot));
    }
  }

  checkpoint::Checkpoint checkpoint_;
  model::V4Model model_;
  cache::PagePool pool_;
  WorkerPool workers_{2};
};

// Values next to a rounding boundary may fall to either side, which moves logits by some 1e-5; a
// quantizer that is left out or stands elsewhere moves them by 1e-2 and more.
constexpr double kQuantizedTolerance = 2e-4;

TEST_P(LineageV4Test, QuantizersOfTheMemoryStandWhereASecondOpinionHasThem) {
  const OracleFile recorded(oracle_path("lineage/" + GetParam() + "/quantized.safetensors"));
  QuantizedModel quantized(GetParam(), model::V4RowTail::kF32);
  for (const std::string name : {"p2", "p5", "p6", "p9", "p13"}) {
    const auto& prompt = vectors().at(name + ".tokens").integers;
    const auto& more = recorded.at(name + ".decode_tokens").integers;
    const tensor::FloatMatrix ours = quantized.run(prompt, more);
    const tensor::FloatMatrix theirs = recorded.matrix(name + ".logits");
    const auto& positions = recorded.at(name + ".positions").integers;
    double largest = 0;
    for (std::size_t row = 0; row < positions.size(); ++row) {
      const auto position = static_cast<std::size_t>(positions[row]);
      const double distance = relative_l2(ours.row(position), theirs.row(row));
      EXPECT_LE(distance, kQuantizedTolerance) << name << " " << position;
      largest = std::max(largest, distance);
    }
    const tensor::FloatMatrix steps = recorded.matrix(name + ".decode_logits");
    for (std::size_t step = 0; step < more.size(); ++step) {
      const std::size_t position = prompt.size() + step;
      EXPECT_EQ(argmax(ours.row(position - 1)), static_cast<std::size_t>(more[step])) << name;
      const double distance = relative_l2(ours.row(position), steps.row(step));
      EXPECT_LE(distance, kQuantizedTolerance) << name << " step " << step;
      largest = std::max(largest, distance);
    }
    print_figures(fmt::format("{} {} with quantizers: {:.2e}", GetParam(), name, largest));
  }
}

TEST_P(LineageV4Test, WindowRowsAreTheQuantizedOnesWithABfloat16Tail) {
  const OracleFile recorded(oracle_path("lineage/" + GetParam() + "/quantized.safetensors"));
  QuantizedModel wide(GetParam(), model::V4RowTail::kBf16);
  EXPECT_EQ(wide.model().memory().formats.window, kernels::RowFormat::kV4Fp8);
  tensor::FloatMatrix ours;
  wide.run(vectors().at("p2.tokens").integers, {}, &ours);
  const tensor::FloatMatrix theirs = recorded.matrix("p2.cache.l0.window");
  const auto rope = static_cast<std::size_t>(config().rope_dim);
  for (std::size_t row = 0; row < theirs.rows(); ++row) {
    const auto expected = theirs.row(row);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool is_tail = i + rope >= expected.size();
      const float difference = std::abs(ours.row(row)[i] - expected[i]);
      EXPECT_LE(difference, std::abs(expected[i]) * (is_tail ? 0x1p-8f : 0.0f))
          << "row " << row << " value " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Generations, LineageV4Test, ::testing::Values("v4flash", "v4pro"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace locket::test_support
