// The tiny checkpoints of tests/data/checkpoints as loaded models, and whole runs of a sequence
// whose bits can be compared: the logits of every position and every byte of the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "engine/replay.h"
#include "engine/sampler.h"
#include "kernels/kernel_table.h"
#include "model/generations/v41.h"
#include "model/numerics_mode.h"

namespace locket::test_support {

// "micro", "odd" (sizes that are no multiples of anything), "thin" (the release's head, window and
// top-k sizes).
const std::vector<std::string>& tiny_names();
std::filesystem::path tiny_checkpoint(const std::string& name);

// Loaded at the first call and kept until the program ends.
const model::V41Model& tiny_model(const std::string& name, model::NumericsMode mode);

// `count` ids in [0, limit): the same for a seed on every machine.
std::vector<engine::TokenId> random_ids(std::uint32_t seed, std::size_t count, std::int64_t limit);

// How a sequence is run. Only `replay` and `prompt_tokens` (with another replay than full) may show
// in the bits.
struct RunPlan {
  engine::ReplayMode replay = engine::ReplayMode::kFull;
  std::size_t slice_tokens = std::size_t{1} << 20;  // one slice
  std::size_t prompt_tokens = 0;  // the other tokens are appended one by one; 0: all are the prompt
  std::size_t threads = 1;
  const kernels::KernelTable* kernels = nullptr;  // nullptr: the fastest
  std::uint32_t page_seed = 0;  // not 0: pages that were used before, in a shuffled order
};

// What a run leaves behind.
struct RunBits {
  std::int64_t first_position = 0;              // of the logits
  std::vector<std::vector<float>> logits;       // [positions][vocabulary]
  std::vector<std::vector<std::byte>> streams;  // [streams][rows in use * row bytes]
  std::vector<std::byte> rings;                 // all of them
};

// Fails the running test if the run fails.
RunBits run_sequence(const model::V41Model& model, std::span<const engine::TokenId> ids,
                     const RunPlan& plan);

// Every position that `actual` has logits of; `expected` must have them, and may have more.
::testing::AssertionResult same_logits(const RunBits& actual, const RunBits& expected);
// Every row that `actual` has; `expected` may have more.
::testing::AssertionResult same_rows(const RunBits& actual, const RunBits& expected);
::testing::AssertionResult same_rings(const RunBits& actual, const RunBits& expected);

}  // namespace locket::test_support
