// Which experts the tokens of a text go through, and a source of experts that follows it: measuring
// streams of experts needs the routing of real texts, where few experts are used often, and the
// router of random weights has none. By a Zipf law: every layer has its own order of popularity,
// and the n-th in it is chosen with weight 1 / n^exponent. Plain data; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/expert_source.h"

namespace locket::cli {

struct ZipfWish {
  std::size_t tokens = 1;
  std::size_t layers = 1;
  std::size_t experts = 1;  // of a layer
  std::size_t chosen = 1;   // of a token in a layer
  // Experts whose ids differ by a multiple of this share their bytes: a token never goes through
  // two of them. REQUIRES: at least `chosen`.
  std::size_t stored = 1;
  double exponent = 1;
  std::uint32_t seed = 1;
};

class RoutingTrace {
 public:
  // The same for a wish, everywhere.
  static RoutingTrace zipf(const ZipfWish& wish);

  std::size_t tokens() const { return ids_.size() / (layers_ * chosen_); }
  std::size_t layers() const { return layers_; }
  std::size_t chosen() const { return chosen_; }
  // [chosen], ascending.
  std::span<const std::int32_t> ids(std::size_t token, std::size_t layer) const {
    return std::span(ids_).subspan((token * layers_ + layer) * chosen_, chosen_);
  }

 private:
  RoutingTrace(std::size_t layers, std::size_t chosen) : layers_(layers), chosen_(chosen) {}

  std::size_t layers_;
  std::size_t chosen_;
  std::vector<std::int32_t> ids_;  // [tokens, layers, chosen]
};

// What a look at the next layer is worth: the share of its experts that it names, and how many
// others it names for each of those.
struct Foresight {
  double right = 0;
  double wrong = 0;
};

// Takes the place of a model's source: whatever the router chose, the experts of the trace are
// fetched from `source` (their ids modulo what that has). Not thread-safe; `source` and `trace`
// must outlive it.
class TracedExperts : public model::ExpertSource {
 public:
  // `expert_count`: of the model's router, which chooses as many as the trace has.
  TracedExperts(model::ExpertSource& source, const RoutingTrace& trace, std::size_t expert_count,
                const Foresight& foresight = {});

  // The token that the next step is for.
  void set_token(std::size_t token) { token_ = token; }

  std::size_t expert_count() const override { return expert_count_; }
  std::size_t experts_at_once() const override { return source_.experts_at_once(); }
  std::unique_ptr<Lease> fetch(std::int64_t layer, std::span<const std::int32_t> ids) override;
  bool reads_ahead() const override { return source_.reads_ahead() && foresight_.right > 0; }
  void expect(std::int64_t layer, std::span<const std::int32_t> ids) override;

 private:
  std::vector<std::int32_t> of_trace(std::int64_t layer) const;

  model::ExpertSource& source_;
  const RoutingTrace& trace_;
  std::size_t expert_count_;
  Foresight foresight_;
  std::size_t token_ = 0;
  std::mt19937 random_{3};
};

}  // namespace locket::cli
