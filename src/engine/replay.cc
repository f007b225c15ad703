#include "engine/replay.h"

#include <algorithm>

#include "base/check.h"

namespace locket::engine {

std::string_view replay_mode_name(ReplayMode mode) {
  switch (mode) {
    case ReplayMode::kBounded:
      return "bounded";
    case ReplayMode::kExact:
      return "exact";
    case ReplayMode::kFull:
      return "full";
    case ReplayMode::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::optional<ReplayMode> find_replay_mode(std::string_view name) {
  for (int i = 0; i < static_cast<int>(ReplayMode::kCount); ++i) {
    const auto mode = static_cast<ReplayMode>(i);
    if (replay_mode_name(mode) == name) return mode;
  }
  return std::nullopt;
}

std::int64_t replay_length(ReplayMode mode, std::int64_t prompt_tokens,
                           const DecoderGeometry& geometry) {
  switch (mode) {
    case ReplayMode::kBounded:
      // Without a decoder the output of the last token alone is wanted.
      return std::min(prompt_tokens,
                      geometry.decoder_layers == 0 ? std::int64_t{1} : geometry.window);
    case ReplayMode::kExact:
      return std::min(prompt_tokens, geometry.decoder_layers * (geometry.window - 1) + 1);
    case ReplayMode::kFull:
      return prompt_tokens;
    case ReplayMode::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::engine
