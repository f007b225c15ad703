// Where the routed experts of a model come from: memory, or disk through a cache of a fixed size.
// The mixture of experts asks for the experts of one layer and keeps them as long as it computes.
// The bits of a result do not depend on the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/weight_matrix.h"

namespace locket::model {

struct ExpertWeights {
  kernels::WeightMatrix gate;  // w1 [expert_size, hidden]; FP4 routed, FP8 shared
  kernels::WeightMatrix up;    // w3 [expert_size, hidden]
  kernels::WeightMatrix down;  // w2 [hidden, expert_size]
};

class ExpertSource {
 public:
  ExpertSource() = default;
  ExpertSource(const ExpertSource&) = delete;
  ExpertSource& operator=(const ExpertSource&) = delete;
  virtual ~ExpertSource() = default;

  // Of every layer that has some.
  virtual std::size_t expert_count() const = 0;

  // Most experts that one fetch() may name; at least 1. A step that needs more asks for them group
  // by group and holds two leases at a time: the one it computes and the one that is on its way.
  virtual std::size_t experts_at_once() const = 0;

  // Experts that are being used: they stay where they are as long as this lives. Must not outlive
  // the source.
  class Lease {
   public:
    Lease() = default;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    virtual ~Lease() = default;
    // Whether wait(index) returns at once: what is there is computed while others are on their way.
    virtual bool is_ready(std::size_t index) const = 0;
    // The weights of the index-th expert that was asked for; returns when they are there, so that
    // the first may be computed while others are on their way. Errors of reading them.
    [[nodiscard]] virtual Result<const ExpertWeights*> wait(std::size_t index) = 0;
    // Of `indices`, the one to go on with: one that is ready, as soon as there is one. A source
    // that cannot tell says the first. REQUIRES: not empty.
    virtual std::size_t wait_any(std::span<const std::size_t> indices) { return indices.front(); }
  };

  // Starts to fetch these experts of `layer`, all at once. `ids`: ascending, no duplicates, at most
  // experts_at_once(). One caller at a time.
  virtual std::unique_ptr<Lease> fetch(std::int64_t layer, std::span<const std::int32_t> ids) = 0;

  // Whether expect() is of any use.
  virtual bool reads_ahead() const { return false; }
  // A guess of what the next fetch() of `layer` will name, likeliest first, no duplicates: those
  // may be read meanwhile, after everything that a lease waits for. Takes the place of an earlier
  // guess. The same caller as fetch(); returns at once.
  virtual void expect(std::int64_t /*layer*/, std::span<const std::int32_t> /*ids*/) {}
};

// All experts in memory: [layers][experts]; the first layers may have none. Thread-safe, nothing
// ever fails.
std::unique_ptr<ExpertSource> resident_experts(std::vector<std::vector<ExpertWeights>> layers);

}  // namespace locket::model
