#include "agent_trace/draws.h"

#include <algorithm>

#include "engine/portable_exp.h"

namespace locket::agent_trace {
namespace {

double any_exp(double x) {
  return x <= 0 ? engine::portable_exp(x) : 1.0 / engine::portable_exp(-x);
}

}  // namespace

double Draws::uniform() {
  return engine::uniform_draw({.seed = seed_, .choice = lane_, .position = count_++});
}

std::int64_t Draws::between(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(uniform() * static_cast<double>(most - least + 1));
}

// Twelve uniform numbers add up to nearly a normal one: mean 6, variance 1.
std::int64_t Draws::log_normal(const LogNormal& shape) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += uniform();
  const double value = shape.median * any_exp(shape.sigma * sum);
  return std::clamp(static_cast<std::int64_t>(value), shape.least, shape.most);
}

std::int64_t Draws::geometric(double mean) {
  std::int64_t count = 1;
  while (chance(1.0 - 1.0 / mean)) ++count;
  return count;
}

double Draws::over_octaves(double least, double octaves) {
  constexpr double kLn2 = 0.6931471805599453;
  return least * any_exp(uniform() * octaves * kLn2);
}

}  // namespace locket::agent_trace
