// Routed experts that stay on disk: those that are asked for are read past the page cache, all at
// once, packed as they come, and kept in a cache of a fixed size, from which those that are used
// least go first (expert_uses.h). The bits of a result are those of resident experts.
//
// What expect() names is read ahead within the same budget: into room that nobody holds, and after
// everything that a lease waits for. A guess that was wrong is given up as soon as its layer asks
// for others, as far as it has not begun; one that was read nevertheless is the first to go.
//
// An error of reading (a file that ends early, a scale that is NaN) names tensor and file and is
// given to who waits for that expert; the next fetch() tries again. The checkpoint must outlive the
// source. fetch(), expect() and leases: one caller at a time; counts() and uses(): any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/expert_load.h"
#include "model/expert_slots.h"
#include "model/expert_source.h"
#include "model/expert_uses.h"

namespace locket::model {

struct StreamedExpertsOptions {
  std::uint64_t budget_bytes = 0;  // of packed experts; room for at least two is needed
  std::size_t readers = 4;         // reads that are under way at once; at least 1
};

class StreamedExperts : public ExpertSource {
 public:
  // `layers`: [layers][experts]. kOverBudget if the budget does not hold two experts; kIo if a file
  // cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<StreamedExperts>> create(
      std::vector<std::vector<StoredExpert>> layers, const StreamedExpertsOptions& options);
  explicit StreamedExperts(std::unique_ptr<ExpertSlots> slots);  // create() makes it

  std::size_t expert_count() const override;
  std::size_t experts_at_once() const override;
  std::unique_ptr<Lease> fetch(std::int64_t layer, std::span<const std::int32_t> ids) override;
  bool reads_ahead() const override { return true; }
  void expect(std::int64_t layer, std::span<const std::int32_t> ids) override;

  // Experts that fit into the cache.
  std::size_t capacity() const;
  ExpertStreamCounts counts() const;

  // Uses so far, with those of earlier runs if warm_up() was told of them.
  ExpertUses uses() const;
  // Takes these uses for its own and reads the most used experts, as many as fit. An expert that
  // cannot be read is left out. `progress` (may be empty) hears how many of how many are there.
  // REQUIRES: no lease is alive; uses of as many layers and experts.
  using WarmProgress = std::function<void(std::size_t done, std::size_t total)>;
  void warm_up(ExpertUses earlier, const WarmProgress& progress);

 private:
  std::unique_ptr<ExpertSlots> slots_;
};

}  // namespace locket::model
