// How often each expert of a model has been used, where a use counts half after so many visits of
// its layer: what decides which experts stay in memory, and which are loaded at the next start.
// Plain least-recently-used would lose everything to one long prompt, which visits every expert
// once; plain counts would hold on to the experts of yesterday's subject. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace locket::model {

struct ExpertKey {
  std::int64_t layer = 0;
  std::int32_t expert = 0;

  friend bool operator==(const ExpertKey&, const ExpertKey&) = default;
  friend bool operator<(const ExpertKey& a, const ExpertKey& b) {
    return a.layer != b.layer ? a.layer < b.layer : a.expert < b.expert;
  }
};

class ExpertUses {
 public:
  // Visits of a layer after which a use counts half.
  static constexpr double kHalfLife = 256.0;

  ExpertUses(std::size_t layers, std::size_t experts);

  std::size_t layers() const { return layers_; }
  std::size_t experts() const { return experts_; }

  // One visit of a layer that uses these experts.
  void note(std::int64_t layer, std::span<const std::int32_t> experts);

  // The higher, the more an expert is used. Comparing two gives the same at any later time, if
  // neither is used meanwhile. Minus infinity: never used.
  double rank(const ExpertKey& key) const { return ranks_[index(key)]; }

  // Experts that have been used, highest rank first (then by layer and id), at most `most`.
  std::vector<ExpertKey> most_used(std::size_t most) const;

  // As bytes for a file: with the model that they belong to, a version and a checksum.
  std::string to_bytes(const Sha256Digest& model) const;
  // kBadMemory, saying why, if these are not bytes of to_bytes() for this model and these sizes.
  [[nodiscard]] static Result<ExpertUses> from_bytes(std::string_view bytes,
                                                     const Sha256Digest& model, std::size_t layers,
                                                     std::size_t experts);

 private:
  std::size_t index(const ExpertKey& key) const {
    return static_cast<std::size_t>(key.layer) * experts_ + static_cast<std::size_t>(key.expert);
  }
  double now() const { return static_cast<double>(visits_) / static_cast<double>(layers_); }

  std::size_t layers_;
  std::size_t experts_;
  std::uint64_t visits_ = 0;  // of all layers
  // [layers, experts]: log2 of the sum of 2^(time of use / half-life) over all uses. The sum of
  // decayed uses at any time t is 2^(rank - t / half-life).
  std::vector<double> ranks_;
};

}  // namespace locket::model
