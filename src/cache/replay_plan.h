// What must be computed again so that a sequence can go on from what is stored: where the encoder
// starts, from where on rows are written, where the decoder's segment begins. A pure function; the
// reasons are in docs/architecture.md, "Resuming".
#pragma once

#include <cstdint>
#include <span>

namespace locket::cache {

struct ReplayGeometry {
  std::int64_t window = 0;          // W: positions that a window sees, its own included
  std::int64_t encoder_layers = 0;  // layers below the boundary
  std::int64_t group = 1;           // largest number of tokens that share a row

  // Positions over which a start without rings is not exact yet.
  std::int64_t encoder_reach() const { return encoder_layers * (window - 1); }
};

struct ReplayRequest {
  std::int64_t prompt_tokens = 0;                // N
  std::int64_t stored_tokens = 0;                // H: rows of positions below are there; <= tokens
  std::int64_t decoder_tokens = 0;               // R: prompt tokens that the decoder runs over
  std::span<const std::int64_t> snapshots = {};  // positions with stored rings, any order
};

struct ReplayPlan {
  std::int64_t start = 0;          // first position of the encoder's run
  bool uses_snapshot = false;      // rings of `start` are restored; else windows are cut there
  std::int64_t exact_from = 0;     // T: from here on the encoder's output is exact
  std::int64_t write_from = 0;     // H rounded down to whole groups: rows are written from here on
  std::int64_t decoder_start = 0;  // N - R

  // Windows of the encoder do not reach below this position.
  std::int64_t window_start() const { return uses_snapshot ? 0 : start; }
  // Positions that are computed although their rows are stored.
  std::int64_t replayed_tokens() const { return write_from - start; }
};

// REQUIRES: 1 <= prompt_tokens; 0 <= stored_tokens; 0 <= decoder_tokens <= prompt_tokens.
ReplayPlan make_replay_plan(const ReplayRequest& request, const ReplayGeometry& geometry);

}  // namespace locket::cache
