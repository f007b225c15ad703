// How much of a prompt the decoder runs over (report 3.2: bounded replay). The encoder always sees
// the whole prompt; the decoder starts afresh at prompt token N - R with windows cut there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace locket::engine {

enum class ReplayMode {
  kBounded,  // the window's length: the vendor's serving rule
  kExact,    // the decoder's whole reach: as if it had run over everything
  kFull,     // the whole prompt: what the official code and transformers do
  kCount
};

std::string_view replay_mode_name(ReplayMode mode);
std::optional<ReplayMode> find_replay_mode(std::string_view name);

struct DecoderGeometry {
  std::int64_t window = 0;
  std::int64_t decoder_layers = 0;
};

// R: prompt tokens that the decoder runs over. bounded min(N, W), 1 without a decoder; exact min(N,
// L * (W - 1) + 1); full N.
std::int64_t replay_length(ReplayMode mode, std::int64_t prompt_tokens,
                           const DecoderGeometry& geometry);

}  // namespace locket::engine
