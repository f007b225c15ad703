// The whole model in float32 against recorded logits of Hugging Face transformers: without cache
// quantizers every row, with them every row that no rounding boundary lies close to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_data.h"
#include "tests/support/oracle_model.h"
#include "tests/support/oracle_run.h"

namespace locket::test_support {
namespace {

using model::NumericsMode;

constexpr double kTolerance = 1e-5;      // relative L2 of a row of logits
constexpr double kCalmNoise = 2e-6;      // below it the references agree with each other
constexpr float kSumNoise = 3e-7f;       // what another order of sums changes
constexpr std::uint32_t kNoiseRuns = 300;

nlohmann::json read_manifest(const std::string& name) {
  const auto text = read_whole_file(oracle_path(name));
  if (!text) throw std::runtime_error(text.error().message);
  return nlohmann::json::parse(*text);
}

struct HfCase {
  std::string name;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> appended;
  std::size_t first_position = 0;  // of `logits`
  tensor::FloatMatrix logits;      // prompt's positions from first_position on, then decode steps
  std::vector<float> noise;        // per row of `logits`

  std::vector<std::int32_t> tokens() const {
    std::vector<std::int32_t> all = prompt;
    all.insert(all.end(), appended.begin(), appended.end());
    return all;
  }
};

std::vector<HfCase> read_cases(std::string_view shape, const std::string& set) {
  const std::string folder = fmt::format("hf/{}/", shape);
  const OracleFile file(oracle_path(folder + set + ".safetensors"));
  std::vector<HfCase> cases;
  for (const auto& entry : read_manifest(folder + "manifest.json")["sets"][set]["cases"]) {
    HfCase one = {.name = entry["name"]};
    one.prompt = file.at(one.name + ".ids").integers;
    one.appended = file.at(one.name + ".decode_ids").integers;
    one.first_position = entry["first_logits_position"];
    const tensor::FloatMatrix prefill = file.matrix(one.name + ".logits");
    const tensor::FloatMatrix decode = file.matrix(one.name + ".decode_logits");
    one.logits = {prefill.rows() + decode.rows(), prefill.columns()};
    std::ranges::copy(prefill.values(), one.logits.values().begin());
    std::ranges::copy(decode.values(),
                      one.logits.values().last(decode.values().size()).begin());
    const std::vector<float>& noise = file.at(one.name + ".noise").floats;
    one.noise.assign(noise.begin() + static_cast<std::ptrdiff_t>(one.first_position), noise.end());
    cases.push_back(std::move(one));
  }
  return cases;
}

// Distance of every recorded row.
std::vector<double> row_distances(const HfCase& one, const tensor::FloatMatrix& ours) {
  std::vector<double> distances;
  for (std::size_t row = 0; row < one.logits.rows(); ++row) {
    distances.push_back(relative_l2(ours.row(one.first_position + row), one.logits.row(row)));
  }
  return distances;
}

std::vector<double> session_distances(OracleModel& oracle, const HfCase& one) {
  return row_distances(one, oracle.session_logits(one.prompt, one.appended));
}

TEST(HfLogitsTest, VectorsAreMadeFromTheCheckpointsInTestData) {
  const nlohmann::json official = read_manifest("official/manifest.json");
  for (const std::string_view shape : kOracleShapes) {
    const nlohmann::json hf = read_manifest(fmt::format("hf/{}/manifest.json", shape));
    const nlohmann::json& files = official[std::string(shape)]["checkpoint_files"];
    ASSERT_FALSE(files.empty());
    EXPECT_EQ(files, hf["checkpoint"]);
    for (const auto& [name, digest] : files.items()) {
      const auto content = read_whole_file(oracle_checkpoint(shape) / name);
      ASSERT_TRUE(content) << content.error().message;
      EXPECT_EQ(to_hex(sha256(std::as_bytes(std::span(*content)))), digest.get<std::string>())
          << shape << "/" << name;
    }
  }
}

TEST(HfLogitsTest, EveryRowWithoutCacheQuantizersAgrees) {
  std::size_t rows = 0;
  double largest = 0;
  for (const std::string_view shape : kOracleShapes) {
    OracleModel& oracle = OracleModel::get(shape, NumericsMode::kPlain);
    for (const HfCase& one : read_cases(shape, "wide_noq")) {
      const std::vector<double> distances = session_distances(oracle, one);
      const double worst = std::ranges::max(distances);
      EXPECT_LE(worst, kTolerance) << shape << " " << one.name;
      print_figures(fmt::format("hf plain {} {}: {} tokens, {} rows, largest {:.2e}, median {:.2e}",
                                shape, one.name, one.prompt.size(), distances.size(), worst,
                                median(distances)));
      rows += distances.size();
      largest = std::max(largest, worst);
    }
  }
  print_figures(fmt::format("hf plain, all: {} rows, largest {:.2e}", rows, largest));
}

// A row of a calm place that is off.
struct LooseRow {
  std::size_t row = 0;  // of HfCase::logits
  double distance = 0;
};

// Looks for a run whose sums differ by rounding noise and which gives the recorded row; what it
// stores differently from the run without noise is the flip that separates us from the record.
bool explain_by_noise(OracleModel& oracle, const HfCase& one, const LooseRow& loose) {
  const std::vector<std::int32_t> tokens = one.tokens();
  const LayeredRun plain = run_layers(oracle, tokens);
  const std::size_t position = one.first_position + loose.row;
  for (std::uint32_t seed = 1; seed <= kNoiseRuns; ++seed) {
    const LayeredRun noisy = run_layers(oracle, tokens, relative_noise(seed, kSumNoise));
    const double distance = relative_l2(noisy.logits.row(position), one.logits.row(loose.row));
    if (distance > kTolerance) continue;
    const auto flip =
        first_difference(plain.stored, noisy.stored, static_cast<std::int64_t>(position));
    print_figures(fmt::format(
        "hf wide {} position {}: {:.1e} without noise, {:.1e} with noise of {:.0e} (run {}); "
        "first code that it flips: {}",
        one.name, position, loose.distance, distance, static_cast<double>(kSumNoise), seed,
        describe(flip)));
    return flip.has_value();
  }
  return false;
}

TEST(HfLogitsTest, CalmRowsWithCacheQuantizersAgreeOrDifferByAFlippedCode) {
  for (const std::string_view shape : kOracleShapes) {
    OracleModel& oracle = OracleModel::get(shape, NumericsMode::kWide);
    std::size_t calm = 0;
    std::size_t close = 0;
    std::size_t rows = 0;
    for (const HfCase& one : read_cases(shape, "wide")) {
      const std::vector<double> distances = session_distances(oracle, one);
      std::vector<LooseRow> loose;
      std::size_t calm_here = 0;
      for (std::size_t row = 0; row < distances.size(); ++row) {
        if (static_cast<double>(one.noise[row]) > kCalmNoise) continue;
        ++calm_here;
        if (distances[row] > kTolerance) loose.push_back({row, distances[row]});
      }
      print_figures(fmt::format(
          "hf wide {} {}: {} tokens, {} rows, {} within 1e-5, largest {:.2e}, median {:.2e}; calm "
          "rows {}, within 1e-5 {}",
          shape, one.name, one.prompt.size(), distances.size(),
          std::ranges::count_if(distances, [](double d) { return d <= kTolerance; }),
          std::ranges::max(distances), median(distances), calm_here, calm_here - loose.size()));
      for (const LooseRow& row : loose) {
        EXPECT_TRUE(explain_by_noise(oracle, one, row))
            << shape << " " << one.name << ", row " << row.row << " is off by " << row.distance
            << " and no flipped code explains it";
      }
      rows += distances.size();
      calm += calm_here;
      close += calm_here - loose.size();
    }
    EXPECT_GE(static_cast<double>(close), 0.95 * static_cast<double>(calm)) << shape;
    print_figures(fmt::format("hf wide {}, all: {} rows, {} calm, of these {} within 1e-5 ({:.2f} %)",
                              shape, rows, calm, close,
                              100.0 * static_cast<double>(close) / static_cast<double>(calm)));
  }
}

}  // namespace
}  // namespace locket::test_support
