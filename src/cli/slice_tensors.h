// A geometry-true slice of DeepSeek-V4.1-Flash: layers, heads, experts and streams as wide as in
// the release, but eight layers, sixteen experts a layer, a fifth of the vocabulary and no Engram,
// so that it fits into a few gigabytes while its layers cost what the release's cost. The head's
// share of a step is the release's: a fifth of the layers, a fifth of the vocabulary. Weights are
// random; timing does not depend on them.
//
// Layer 0 has a window only, 1 writes rows of two tokens each, 2 and 3 read them, 4 begins the
// decoder (rows of every token, the candidate pool), 6 selects anew from the pool. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors_stream.h"
#include "model/generations/v41_config.h"

namespace locket::cli {

// The sizes; tests make smaller slices.
struct SliceShape {
  std::int64_t vocabulary = 25'856;
  std::int64_t hidden = 5'120;
  std::int64_t heads = 64;
  std::int64_t head_dim = 512;
  std::int64_t rope_dim = 64;
  std::int64_t q_rank = 1'280;
  std::int64_t o_rank = 1'024;
  std::int64_t o_groups = 8;
  std::int64_t experts = 16;
  std::int64_t experts_per_token = 6;
  std::int64_t expert_size = 2'304;
  std::int64_t index_heads = 32;
  std::int64_t index_dim = 128;
  std::int64_t index_topk = 512;
  std::int64_t pool_blocks = 2'048;
};

// config.json as a release has it.
std::string slice_config_text(const SliceShape& shape);

// What a tensor is filled with.
enum class SliceContent {
  kOnes,       // norms; bfloat16
  kZeros,      // sinks, router bias; float32
  kBf16Noise,  // about 2^-7
  kF32Noise,   // likewise
  kMixBase,    // of the hyper-connections: streams stay what they are
  kMixScale,   // likewise, 0.1
  kFp8Codes,   // E4M3 of magnitude 1/8 to 2
  kFp4Codes,   // any two codes a byte
  kFp8Scales,  // 2^-8 to 2^-5
  kFp4Scales,  // 2^-7 to 2^-4
  kCount
};

struct SliceTensor {
  checkpoint::PlannedTensor plan;
  SliceContent content = SliceContent::kZeros;
};

struct SliceFile {
  std::string name;  // "model-00001-of-00009.safetensors"
  std::vector<SliceTensor> tensors;

  std::uint64_t data_bytes() const;
};

// One file for what is outside the layers, then one a layer.
std::vector<SliceFile> slice_files(const model::V41Config& config);

// The bytes of one tensor, in pieces: the same for a seed and a name on every machine.
class SliceNoise {
 public:
  SliceNoise(std::uint64_t seed, const SliceTensor& tensor);
  // The next bytes. REQUIRES: a multiple of 8 bytes, but for the last piece.
  void fill(std::span<std::byte> bytes);

 private:
  std::uint64_t next_word();

  SliceContent content_;
  std::uint64_t state_;
  std::uint64_t position_ = 0;  // of 4-byte values
};

}  // namespace locket::cli
