#include "model/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace locket::model {
namespace {

// Fractional index of the pair that turns `rotations` times over the original context.
double pair_of_rotations(const RotaryConfig& config, double rotations) {
  const auto context = static_cast<double>(config.original_context);
  return static_cast<double>(config.dim) *
         std::log(context / (2.0 * std::numbers::pi * rotations)) / (2.0 * std::log(config.base));
}

float mixed(float frequency, float factor, float ramp) {
  return frequency * (1.0f - ramp) + frequency / factor * ramp;
}

float mixed_of_powers(float power, float factor, float ramp) {
  const float kept = 1.0f - ramp;
  return 1.0f / (factor * power) * (1.0f - kept) + 1.0f / power * kept;
}

// `powers`: one over the frequencies.
void apply_yarn(const RotaryConfig& config, std::span<const float> powers,
                std::vector<float>& frequencies) {
  const double low = std::max(std::floor(pair_of_rotations(config, config.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_of_rotations(config, config.beta_slow)),
                               static_cast<double>(config.dim - 1));
  const auto width = static_cast<float>(std::max(high - low, 1e-3));
  const auto factor = static_cast<float>(config.factor);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / width, 0.0f, 1.0f);
    frequencies[i] = config.steps == YarnSteps::kDivided ? mixed(frequencies[i], factor, ramp)
                                                         : mixed_of_powers(powers[i], factor, ramp);
  }
}

}  // namespace

std::vector<float> rotary_frequencies(const RotaryConfig& config) {
  std::vector<float> powers;
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < config.dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(config.dim);
    const auto power = static_cast<float>(std::pow(config.base, static_cast<double>(exponent)));
    powers.push_back(power);
    frequencies.push_back(1.0f / power);
  }
  if (config.original_context > 0) apply_yarn(config, powers, frequencies);
  return frequencies;
}

RotaryTable rotary_table(const std::vector<float>& frequencies,
                         std::span<const std::int64_t> positions) {
  const std::size_t count = positions.size();
  RotaryTable table = {.cos = {count, frequencies.size()}, .sin = {count, frequencies.size()}};
  for (std::size_t row = 0; row < count; ++row) {
    const auto position = static_cast<float>(positions[row]);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const auto angle = static_cast<double>(position * frequencies[i]);
      table.cos.row(row)[i] = static_cast<float>(std::cos(angle));
      table.sin.row(row)[i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace locket::model
