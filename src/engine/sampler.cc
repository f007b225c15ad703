#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "engine/portable_exp.h"

namespace locket::engine {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();
// Far outside of what is useful, and far inside of what could overflow.
constexpr double kLargestAdjustment = 1e6;
constexpr double kLargestRepetitionPenalty = 1e3;

Status check_range(std::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return {};  // false for NaN
  return fail(ErrorCode::kBadRequest,
              fmt::format("{} is {}, must be {} to {}", field, value, low, high));
}

// The candidates in sort order, sorted no further than somebody looks: most draws end within a few
// tokens of a vocabulary of a hundred thousand.
class Ranking {
 public:
  struct Scratch {
    std::vector<TokenId>& order;
    std::vector<double>& weights;
  };

  // Candidates are the values above kMasked; `best` is the largest of them. REQUIRES: temperature >
  // 0.
  Ranking(std::span<const double> values, double best, double temperature, Scratch scratch)
      : values_(values),
        best_(best),
        temperature_(temperature),
        order_(scratch.order),
        weights_(scratch.weights) {
    order_.clear();
    weights_.clear();
    for (std::size_t token = 0; token < values.size(); ++token) {
      if (values[token] > kMasked) order_.push_back(static_cast<TokenId>(token));
    }
  }

  std::size_t size() const { return order_.size(); }

  TokenId token(std::size_t rank) {
    sort_through(rank);
    return order_[rank];
  }

  // Probability divided by that of the first candidate.
  double weight(std::size_t rank) {
    while (weights_.size() <= rank) weights_.push_back(weight_of(token(weights_.size())));
    return weights_[rank];
  }

  // Sum of the weights of the first `count` candidates, in sort order.
  double sum_of_first(std::size_t count) {
    double sum = 0.0;
    for (std::size_t rank = 0; rank < count; ++rank) sum += weight(rank);
    return sum;
  }

  // Sum of all weights, by ascending id; needs no sorting.
  double sum_of_all() const {
    double sum = 0.0;
    for (const double value : values_) {
      if (value > kMasked) sum += portable_exp((value - best_) / temperature_);
    }
    return sum;
  }

 private:
  double weight_of(TokenId token) const {
    return portable_exp((values_[static_cast<std::size_t>(token)] - best_) / temperature_);
  }

  void sort_through(std::size_t rank) {
    LOCKET_DCHECK(rank < order_.size());
    constexpr std::size_t kFirstRun = 64;
    constexpr std::size_t kGrowth = 8;
    const auto earlier = [this](TokenId left, TokenId right) {
      const double left_value = values_[static_cast<std::size_t>(left)];
      const double right_value = values_[static_cast<std::size_t>(right)];
      return left_value != right_value ? left_value > right_value : left < right;
    };
    while (sorted_ <= rank) {
      const std::size_t target = std::min(std::max(kFirstRun, sorted_ * kGrowth), order_.size());
      const auto first = order_.begin() + static_cast<std::ptrdiff_t>(sorted_);
      const auto last = order_.begin() + static_cast<std::ptrdiff_t>(target);
      if (last != order_.end()) std::nth_element(first, last, order_.end(), earlier);
      std::sort(first, last, earlier);
      sorted_ = target;
    }
  }

  std::span<const double> values_;
  double best_;
  double temperature_;
  std::vector<TokenId>& order_;
  std::vector<double>& weights_;
  std::size_t sorted_ = 0;
};

// What the filters leave is always a run of first candidates.
struct Kept {
  std::size_t count = 0;
  double sum = 0.0;  // of their weights
};

Kept apply_filters(Ranking& ranking, const SamplingConfig& config) {
  const bool has_top_k =
      config.top_k > 0 && static_cast<std::uint64_t>(config.top_k) < ranking.size();
  const bool has_top_p = config.top_p < 1.0;
  if (!has_top_k && !has_top_p && config.min_p <= 0.0) {
    return {ranking.size(), ranking.sum_of_all()};
  }
  const std::size_t limit = has_top_k ? static_cast<std::size_t>(config.top_k) : ranking.size();
  double enough = std::numeric_limits<double>::infinity();
  if (has_top_p) {
    const double total = has_top_k ? ranking.sum_of_first(limit) : ranking.sum_of_all();
    enough = config.top_p * total;
  }
  Kept kept;
  while (kept.count < limit) {
    const double weight = ranking.weight(kept.count);
    if (weight <= 0.0 || weight < config.min_p) break;
    kept.sum += weight;
    ++kept.count;
    if (kept.sum >= enough) break;
  }
  return kept;
}

TokenId draw(Ranking& ranking, const Kept& kept, double uniform) {
  const double target = uniform * kept.sum;
  double sum = 0.0;
  std::size_t chosen = 0;
  for (std::size_t rank = 0; rank < kept.count && sum <= target; ++rank) {
    const double weight = ranking.weight(rank);
    if (weight <= 0.0) break;
    sum += weight;
    chosen = rank;
  }
  return ranking.token(chosen);
}

// The largest value, the lower id of equal ones; values.size() if all are masked.
std::size_t find_best(std::span<const double> values) {
  std::size_t best = values.size();
  double best_value = kMasked;
  for (std::size_t token = 0; token < values.size(); ++token) {
    if (!(values[token] > best_value)) continue;
    best = token;
    best_value = values[token];
  }
  return best;
}

}  // namespace

Status check_sampling_config(const SamplingConfig& config, std::size_t vocabulary_size) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kAdjust = kLargestAdjustment;
  LOCKET_TRY_STATUS(check_range("temperature", config.temperature, 0.0, kLargest));
  LOCKET_TRY_STATUS(check_range("top_p", config.top_p, 0.0, 1.0));
  LOCKET_TRY_STATUS(check_range("min_p", config.min_p, 0.0, 1.0));
  LOCKET_TRY_STATUS(check_range("frequency_penalty", config.frequency_penalty, -kAdjust, kAdjust));
  LOCKET_TRY_STATUS(check_range("presence_penalty", config.presence_penalty, -kAdjust, kAdjust));
  LOCKET_TRY_STATUS(check_range("repetition_penalty", config.repetition_penalty,
                                1.0 / kLargestRepetitionPenalty, kLargestRepetitionPenalty));
  if (config.top_k < 0) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("top_k is {}, must be 0 (off) or more", config.top_k));
  }
  for (const LogitBias& entry : config.logit_bias) {
    if (entry.token < 0 || static_cast<std::size_t>(entry.token) >= vocabulary_size) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("logit_bias names token {}, the vocabulary has {} tokens",
                              entry.token, vocabulary_size));
    }
    LOCKET_TRY_STATUS(check_range(fmt::format("logit_bias of token {}", entry.token), entry.bias,
                                  -kAdjust, kAdjust));
  }
  return {};
}

bool takes_largest(const SamplingConfig& config) {
  return config.temperature <= 0.0 && config.frequency_penalty == 0.0 &&
         config.presence_penalty == 0.0 && config.repetition_penalty == 1.0 &&
         config.logit_bias.empty();
}

Error no_finite_logit(std::size_t logit_count, std::size_t broken_count) {
  return {.code = ErrorCode::kInternal,
          .message = fmt::format("none of {} logits can be chosen: {} are NaN or +infinity, the "
                                 "others -infinity; one must be finite",
                                 logit_count, broken_count)};
}

Result<TokenId> Sampler::sample(std::span<const float> logits, const SamplingConfig& config,
                                const DrawKey& key, const TokenHistory& history,
                                const TokenFilter& filter) {
  LOCKET_TRY_STATUS(check_sampling_config(config, logits.size()));
  load(logits);
  apply_filter(filter);
  for (const LogitBias& entry : config.logit_bias) {
    values_[static_cast<std::size_t>(entry.token)] += entry.bias;
  }
  apply_penalties(config, history);
  const std::size_t best = find_best(values_);
  if (best == values_.size()) {
    return tl::make_unexpected(no_finite_logit(logits.size(), broken_logit_count_));
  }
  if (config.temperature <= 0.0) return static_cast<TokenId>(best);
  Ranking ranking(values_, values_[best], config.temperature, {order_, weights_});
  const Kept kept = apply_filters(ranking, config);
  return draw(ranking, kept, uniform_draw(key));
}

void Sampler::load(std::span<const float> logits) {
  values_.resize(logits.size());
  broken_logit_count_ = 0;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const float logit = logits[token];
    const bool is_broken = !(logit < std::numeric_limits<float>::infinity());  // NaN too
    values_[token] = is_broken ? kMasked : static_cast<double>(logit);
    broken_logit_count_ += is_broken ? 1 : 0;
  }
}

void Sampler::apply_filter(const TokenFilter& filter) {
  const auto is_allowed = [&](std::size_t token) {
    return filter.allowed.empty() || (token / 64 < filter.allowed.size() &&
                                      (filter.allowed[token / 64] >> (token % 64) & 1U) != 0);
  };
  if (!filter.allowed.empty()) {
    for (std::size_t token = 0; token < values_.size(); ++token) {
      if (!is_allowed(token)) values_[token] = kMasked;
    }
  }
  if (filter.banned.empty()) return;
  std::vector<double> kept;
  for (const TokenId token : filter.banned) {
    kept.push_back(values_[static_cast<std::size_t>(token)]);
  }
  for (const TokenId token : filter.banned) values_[static_cast<std::size_t>(token)] = kMasked;
  if (find_best(values_) < values_.size()) return;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    values_[static_cast<std::size_t>(filter.banned[i])] = kept[i];
  }
}

void Sampler::apply_penalties(const SamplingConfig& config, const TokenHistory& history) {
  if (config.repetition_penalty != 1.0) {
    counts_.assign(values_.size(), 0);
    count(history.prompt);
    count(history.output);
    for (std::size_t token = 0; token < values_.size(); ++token) {
      if (counts_[token] == 0) continue;
      double& value = values_[token];
      value = value > 0.0 ? value / config.repetition_penalty : value * config.repetition_penalty;
    }
  }
  if (config.frequency_penalty != 0.0 || config.presence_penalty != 0.0) {
    counts_.assign(values_.size(), 0);
    count(history.output);
    for (std::size_t token = 0; token < values_.size(); ++token) {
      if (counts_[token] == 0) continue;
      values_[token] -= config.frequency_penalty * counts_[token] + config.presence_penalty;
    }
  }
}

void Sampler::count(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (token >= 0 && static_cast<std::size_t>(token) < counts_.size()) {
      ++counts_[static_cast<std::size_t>(token)];
    }
  }
}

}  // namespace locket::engine
