// locket trace --layer L --from FILE: one layer alone on recorded inputs, so that rounding
// differences of earlier layers cannot pile up. FILE is a safetensors file with the names of a
// trace:
//   layer.(L-1).streams [n, S, hidden] and layer.(L-1).pre [n, S]   (embed.streams for layer 0)
//   kv.K.rows, kv.K.index_keys     if layer K's memory is read and L does not write it itself
//   index.I.rows [n, index_topk]   if L reuses the selection of layer I
//   index.P.pool [n, blocks]       if L chooses from the pool of layer P: block numbers, -1 = none
#pragma once

#include <span>

#include "base/result.h"
#include "cli/model_setup.h"
#include "cli/options.h"
#include "cli/trace_file.h"

namespace locket::cli {

// layer.L.streams, .pre, .attention, .moe, window.L.rows, router.L.*, index.L.rows.
[[nodiscard]] Result<TraceFile> trace_layer(const TraceOptions& options,
                                            std::span<const engine::TokenId> ids,
                                            const ModelSetup& setup);

}  // namespace locket::cli
