// A GGUF file of the Llama architecture in the words of the released checkpoint: the same facts as
// a config.json, and the released tensor names. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/internal/gguf_header.h"

namespace locket::checkpoint::internal {

struct GgufLlama {
  std::string config;  // JSON
  std::uint64_t head_dim = 0;
};

// kUnsupported for other architectures and for what changes the computation and is not known here
// (scaled rotations, experts); kBadCheckpoint for keys that are missing or wrong. `file_name` is
// used in messages.
[[nodiscard]] Result<GgufLlama> read_gguf_llama(const GgufHeader& header,
                                                const std::string& file_name);

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; names that are not known stay.
std::string released_name(std::string_view name);

// Query and key projections lie in the file with the rows of each head in another order: 2i and
// 2i + 1 are those that the release has at i and at i + half a head, so that adjacent values
// rotate together.
bool has_paired_rows(std::string_view name);

}  // namespace locket::checkpoint::internal
