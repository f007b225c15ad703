// The whole model in float32 against recorded logits of Hugging Face transformers: without cache
// quantizers every row, with them every row that no rounding boundary lies close to.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "base/hash.h"
#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_hf.h"
#include "tests/support/oracle_manifest.h"

namespace locket::test_support {
namespace {

using model::NumericsMode;

constexpr double kTolerance = 1e-5;  // relative L2 of a row of logits
constexpr double kCalmNoise = 2e-6;  // below it the references agree with each other
constexpr float kSumNoise = 1e-7f;   // of streams: less than a float32 unit
constexpr std::uint32_t kOwnNoiseRuns = 3;
constexpr std::uint32_t kMostNoiseRuns = 2000;

// Distance of every recorded row.
std::vector<double> row_distances(const HfCase& one, const tensor::FloatMatrix& ours) {
  std::vector<double> distances;
  for (std::size_t row = 0; row < one.logits.rows(); ++row) {
    distances.push_back(relative_l2(ours.row(one.first_position + row), one.logits.row(row)));
  }
  return distances;
}

TEST(HfLogitsTest, VectorsAreMadeFromTheCheckpointsInTestData) {
  const nlohmann::json official = read_oracle_manifest("official/manifest.json");
  for (const std::string_view shape : kOracleShapes) {
    const nlohmann::json hf = read_oracle_manifest(fmt::format("hf/{}/manifest.json", shape));
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
    for (const HfCase& one : read_hf_cases(shape, "wide_noq")) {
      const std::vector<double> distances =
          row_distances(one, oracle.session_logits(one.prompt, one.appended));
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

// One prompt in mode `wide`: which rows are calm, which of these are off, and why.
class WideCase {
 public:
  WideCase(std::string_view shape, OracleModel& oracle, const HfCase& one)
      : shape_(shape),
        oracle_(oracle),
        one_(one),
        logits_(oracle.session_logits(one.prompt, one.appended)) {
    distances_ = row_distances(one, logits_);
    for (std::size_t row = 0; row < distances_.size(); ++row) {
      if (static_cast<double>(one.noise[row]) > kCalmNoise) continue;
      calm_.push_back(row);
      if (distances_[row] > kTolerance) unexplained_.push_back(row);
    }
    loose_ = unexplained_.size();
    measure_own_noise();
  }

  std::size_t rows() const { return distances_.size(); }
  std::size_t calm() const { return calm_.size(); }
  std::size_t loose() const { return loose_; }
  // Calm rows whose logits our own noise leaves alone, too, and those of them that are off.
  std::size_t calm_for_both() const { return calm_for_both_; }
  std::size_t loose_though_calm_for_both() const { return loose_though_calm_for_both_; }
  const std::vector<std::size_t>& unexplained() const { return unexplained_; }
  std::size_t flips() const { return flips_; }

  void print() const {
    print_figures(
        fmt::format("hf wide {} {}: {} tokens, {} rows, {} within 1e-5, largest {:.2e}, median "
                    "{:.2e}; calm {}, "
                    "of these within 1e-5 {}",
                    shape_, one_.name, one_.prompt.size(), distances_.size(),
                    std::ranges::count_if(distances_, [](double d) { return d <= kTolerance; }),
                    std::ranges::max(distances_), median(distances_), calm(), calm() - loose_));
  }

  // Looks for runs whose sums differ by rounding noise and that give the recorded rows; what such a
  // run stores differently from the run without noise is the flip that separates us from the
  // record.
  void explain() {
    const std::vector<std::int32_t> tokens = one_.tokens();
    const LayeredRun plain = run_layers(oracle_, tokens);
    EXPECT_EQ(max_abs_difference(plain.logits.values(), logits_.values()), 0)
        << "layer by layer and by session are not the same";
    compare_with_trace(plain);
    for (std::uint32_t seed = 1; seed <= kMostNoiseRuns && !unexplained_.empty(); ++seed) {
      // Nothing behind the last row in question can matter to it.
      const auto needed = static_cast<std::size_t>(position_of(unexplained_.back())) + 1;
      const std::vector<std::int32_t> prefix(tokens.begin(),
                                             tokens.begin() + static_cast<std::ptrdiff_t>(needed));
      explain_by(plain, run_layers(oracle_, prefix, relative_noise(seed, kSumNoise)), seed);
    }
  }

 private:
  std::int64_t position_of(std::size_t row) const {
    return static_cast<std::int64_t>(one_.first_position + row);
  }

  void measure_own_noise() {
    if (calm_.empty()) return;
    std::vector<double> noise(distances_.size());
    for (std::uint32_t seed = 1; seed <= kOwnNoiseRuns; ++seed) {
      const LayeredRun noisy = run_layers(oracle_, one_.tokens(), relative_noise(seed, kSumNoise));
      for (const std::size_t row : calm_) {
        const std::size_t position = one_.first_position + row;
        noise[row] =
            std::max(noise[row], relative_l2(noisy.logits.row(position), logits_.row(position)));
      }
    }
    for (const std::size_t row : calm_) {
      if (noise[row] > kTolerance) continue;
      ++calm_for_both_;
      if (distances_[row] > kTolerance) ++loose_though_calm_for_both_;
    }
  }

  // Where a trace exists, it names the flip directly.
  void compare_with_trace(const LayeredRun& plain) const {
    const std::string file = hf_trace_of(shape_, one_.name);
    if (file.empty()) return;
    const HfTrace trace(shape_, file);
    const auto last = static_cast<std::int64_t>(trace.tokens().size()) - 1;
    const auto recorded = trace.stored(oracle_.config());
    for (const std::size_t row : unexplained_) {
      if (position_of(row) > last) continue;
      const auto flip = first_difference(plain.stored, recorded, position_of(row));
      EXPECT_TRUE(flip) << "position " << position_of(row) << " is off, but nothing stored differs";
      print_figures(fmt::format("hf wide {} {} position {}: first difference from the trace: {}",
                                shape_, one_.name, position_of(row), describe(flip)));
    }
  }

  void explain_by(const LayeredRun& plain, const LayeredRun& noisy, std::uint32_t seed) {
    struct Explained {
      std::vector<std::size_t> rows;
      double before = 0;
      double after = 0;
    };
    std::map<std::string, Explained> by_flip;
    std::vector<std::size_t> rest;
    for (const std::size_t row : unexplained_) {
      const double distance =
          relative_l2(noisy.logits.row(one_.first_position + row), one_.logits.row(row));
      const auto flip = first_difference(plain.stored, noisy.stored, position_of(row));
      if (distance > kTolerance || !flip) {
        rest.push_back(row);
        continue;
      }
      Explained& explained = by_flip[describe(flip)];
      explained.rows.push_back(row);
      explained.before = std::max(explained.before, distances_[row]);
      explained.after = std::max(explained.after, distance);
    }
    for (const auto& [flip, explained] : by_flip) {
      print_figures(fmt::format(
          "hf wide {} {}: {} rows, positions {} to {}: up to {:.1e} without noise, {:.1e} with run "
          "{} of noise {:.0e}; first code that it flips: {}",
          shape_, one_.name, explained.rows.size(), position_of(explained.rows.front()),
          position_of(explained.rows.back()), explained.before, explained.after, seed,
          static_cast<double>(kSumNoise), flip));
    }
    flips_ += by_flip.size();
    unexplained_ = rest;
  }

  std::string_view shape_;
  OracleModel& oracle_;
  const HfCase& one_;
  tensor::FloatMatrix logits_;
  std::vector<double> distances_;
  std::vector<std::size_t> calm_;
  std::vector<std::size_t> unexplained_;  // rows of HfCase::logits
  std::size_t loose_ = 0;
  std::size_t calm_for_both_ = 0;
  std::size_t loose_though_calm_for_both_ = 0;
  std::size_t flips_ = 0;
};

double percent(std::size_t part, std::size_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(whole, 1));
}

TEST(HfLogitsTest, CalmRowsWithCacheQuantizersAgreeOrDifferByANamedFlip) {
  std::size_t all_calm = 0;
  std::size_t all_close = 0;
  for (const std::string_view shape : kOracleShapes) {
    OracleModel& oracle = OracleModel::get(shape, NumericsMode::kWide);
    std::size_t rows = 0;
    std::size_t calm = 0;
    std::size_t loose = 0;
    std::size_t calm_for_both = 0;
    std::size_t loose_for_both = 0;
    std::size_t flips = 0;
    for (const HfCase& one : read_hf_cases(shape, "wide")) {
      WideCase wide(shape, oracle, one);
      wide.print();
      if (wide.loose() > 0) wide.explain();
      EXPECT_TRUE(wide.unexplained().empty())
          << shape << " " << one.name << ": " << wide.unexplained().size()
          << " rows are off and no flipped code explains them, the first is row "
          << wide.unexplained().front();
      rows += wide.rows();
      calm += wide.calm();
      loose += wide.loose();
      calm_for_both += wide.calm_for_both();
      loose_for_both += wide.loose_though_calm_for_both();
      flips += wide.flips();
    }
    ASSERT_GT(calm_for_both, 50u) << shape;
    EXPECT_GE(percent(calm_for_both - loose_for_both, calm_for_both), 95) << shape;
    print_figures(fmt::format(
        "hf wide {}, all: {} rows; calm for the references {}, of these within 1e-5 {} ({:.2f} %), "
        "the others follow from {} flips; calm for us, too, {}, of these within 1e-5 {} ({:.2f} %)",
        shape, rows, calm, calm - loose, percent(calm - loose, calm), flips, calm_for_both,
        calm_for_both - loose_for_both, percent(calm_for_both - loose_for_both, calm_for_both)));
    all_calm += calm;
    all_close += calm - loose;
  }
  EXPECT_GE(percent(all_close, all_calm), 75);
  print_figures(fmt::format("hf wide, all shapes: {} of {} calm rows within 1e-5 ({:.2f} %)",
                            all_close, all_calm, percent(all_close, all_calm)));
}

}  // namespace
}  // namespace locket::test_support
