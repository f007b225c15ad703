// Makes the checkpoint folder of a slice (slice_tensors.h): config, tokenizer, index and weights
// under the names of a release, so that every command takes it for a model. Written piece by piece;
// it needs no memory worth mentioning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/result.h"
#include "cli/slice_tensors.h"

namespace locket::cli {

struct SliceWish {
  SliceShape shape = {};
  std::uint64_t seed = 1;
  // Its tokenizer is extended to the slice's vocabulary by tokens that no text has.
  std::filesystem::path tokenizer_folder = {};
  // Called with the bytes written and their sum; may be empty.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

struct WrittenSlice {
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
};

// The same files for a seed, everywhere. The folder is made, or must be empty: kBadRequest.
// kOverBudget with the numbers if the disk has not enough room, before anything is written; kIo.
[[nodiscard]] Result<WrittenSlice> write_slice(const std::filesystem::path& folder,
                                               const SliceWish& wish);

}  // namespace locket::cli
