#include "cli/routing_trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace locket::cli {
namespace {

constexpr double kWords = 4294967296.0;  // of 32 bits

// In [0, 1); the distributions of the library differ from one to another.
double draw(std::mt19937& random) { return static_cast<double>(random()) / kWords; }

// Ids from the most popular to the least: those that share bytes lie `stored` places apart, so that
// they hardly ever get into each other's way.
std::vector<std::int32_t> popularity(const ZipfWish& wish, std::mt19937& random) {
  std::vector<std::int32_t> order(wish.experts);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t first = 0; first < order.size(); first += wish.stored) {
    const std::size_t count = std::min(wish.stored, order.size() - first);
    for (std::size_t i = count; i > 1; --i) {
      std::swap(order[first + i - 1], order[first + random() % i]);
    }
  }
  return order;
}

class Layer {
 public:
  Layer(const ZipfWish& wish, std::mt19937& random)
      : stored_(wish.stored), order_(popularity(wish, random)) {
    for (std::size_t place = 0; place < order_.size(); ++place) {
      weights_.push_back(std::pow(static_cast<double>(place + 1), -wish.exponent));
    }
  }

  std::vector<std::int32_t> choose(std::size_t count, std::mt19937& random) const {
    std::vector<double> weights = weights_;
    std::vector<std::int32_t> chosen;
    while (chosen.size() < count) {
      const std::int32_t id = order_[one_of(weights, random)];
      chosen.push_back(id);
      for (std::size_t place = 0; place < order_.size(); ++place) {
        if (bytes_of(order_[place]) == bytes_of(id)) weights[place] = 0;
      }
    }
    std::ranges::sort(chosen);
    return chosen;
  }

 private:
  std::size_t bytes_of(std::int32_t id) const { return static_cast<std::size_t>(id) % stored_; }

  static std::size_t one_of(std::span<const double> weights, std::mt19937& random) {
    double left = draw(random) * std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t last = 0;
    for (std::size_t place = 0; place < weights.size(); ++place) {
      if (weights[place] == 0) continue;
      last = place;
      left -= weights[place];
      if (left < 0) break;
    }
    return last;
  }

  std::size_t stored_;
  std::vector<std::int32_t> order_;
  std::vector<double> weights_;  // [order]
};

}  // namespace

RoutingTrace RoutingTrace::zipf(const ZipfWish& wish) {
  LOCKET_CHECK(wish.chosen >= 1 && wish.chosen <= std::min(wish.stored, wish.experts));
  std::mt19937 random(wish.seed);
  std::vector<Layer> layers;
  for (std::size_t layer = 0; layer < wish.layers; ++layer) layers.emplace_back(wish, random);
  RoutingTrace trace(wish.layers, wish.chosen);
  for (std::size_t token = 0; token < wish.tokens; ++token) {
    for (const Layer& layer : layers) {
      const std::vector<std::int32_t> chosen = layer.choose(wish.chosen, random);
      trace.ids_.insert(trace.ids_.end(), chosen.begin(), chosen.end());
    }
  }
  return trace;
}

TracedExperts::TracedExperts(model::ExpertSource& source, const RoutingTrace& trace,
                             std::size_t expert_count, const Foresight& foresight)
    : source_(source), trace_(trace), expert_count_(expert_count), foresight_(foresight) {}

std::vector<std::int32_t> TracedExperts::of_trace(std::int64_t layer) const {
  const auto ids = trace_.ids(token_, static_cast<std::size_t>(layer));
  std::vector<std::int32_t> found;
  const auto count = static_cast<std::int32_t>(source_.expert_count());
  for (const std::int32_t id : ids) found.push_back(id % count);
  std::ranges::sort(found);
  return found;
}

std::unique_ptr<model::ExpertSource::Lease> TracedExperts::fetch(
    std::int64_t layer, std::span<const std::int32_t> ids) {
  LOCKET_CHECK(ids.size() == trace_.chosen());
  return source_.fetch(layer, of_trace(layer));
}

void TracedExperts::expect(std::int64_t layer, std::span<const std::int32_t> /*ids*/) {
  const std::vector<std::int32_t> real = of_trace(layer);
  std::vector<std::int32_t> guess;
  const auto add = [&](std::int32_t id) {
    if (std::ranges::find(guess, id) == guess.end()) guess.push_back(id);
  };
  for (const std::int32_t id : real) {
    if (draw(random_) >= foresight_.right) continue;
    if (draw(random_) < foresight_.wrong) {
      add(static_cast<std::int32_t>(random_() % source_.expert_count()));
    }
    add(id);
  }
  source_.expect(layer, guess);
}

}  // namespace locket::cli
