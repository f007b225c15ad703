// Manifold-constrained hyper-connections, single pass: S residual streams; every site (the
// attention or the FFN half of a layer) collapses them to one input and spreads its output over
// them again. Report 2.1; official model.py, hc_mixes, and kernel.py, hc_split_sinkhorn.
//
// In V4.1 the collapse is lagged by one site: a site uses the weights `pre` that the previous site
// computed. In V4 a site collapses with its own, and the output head has weights for its collapse.
// A site's coefficients come from the streams before its own update.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct HyperConnectionsConfig {
  std::size_t streams = 0;  // S, hc_mult
  std::size_t sinkhorn_iterations = 0;
  float hc_eps = 0;
  float norm_eps = 0;
};

struct HyperConnectionsWeights {
  std::vector<float> fn;     // [2S + S*S, S * hidden]
  std::vector<float> base;   // [2S + S*S]
  std::vector<float> scale;  // [3]: of pre, post, comb
};

struct HyperConnections {
  tensor::FloatMatrix pre;   // [tokens, S]: collapse weights, V4.1: for the NEXT site
  tensor::FloatMatrix post;  // [tokens, S]
  tensor::FloatMatrix comb;  // [tokens, S * S]: comb[j * S + k], j old stream, k new stream
};

// Coefficients of one site from streams [tokens, S * hidden]. The mixes are summed in double and
// rounded once: their error would reach every value of every stream.
HyperConnections hyper_connections(ForwardContext& context, const HyperConnectionsConfig& config,
                                   const HyperConnectionsWeights& weights,
                                   const tensor::FloatMatrix& streams);

// Collapse weights [tokens, S] alone, as the output head of V4 has them: sigmoid + eps of its
// mixes. `weights`: fn [S, S * hidden], base [S], scale [1].
tensor::FloatMatrix collapse_weights(ForwardContext& context, const HyperConnectionsConfig& config,
                                     const HyperConnectionsWeights& weights,
                                     const tensor::FloatMatrix& streams);

// The coefficients of one position from its mixes [2S + S*S] (after the norm factor).
// pre, post [S], comb [S * S].
struct CoefficientSpans {
  std::span<float> pre;
  std::span<float> post;
  std::span<float> comb;
};
void split_coefficients(const HyperConnectionsConfig& config,
                        const HyperConnectionsWeights& weights, std::span<const float> mixes,
                        const CoefficientSpans& out);

// [tokens, hidden] = round(sum over streams of pre * stream).
tensor::FloatMatrix collapse_streams(const ForwardContext& context,
                                     const tensor::FloatMatrix& streams,
                                     const tensor::FloatMatrix& pre);

// streams'_k = round(post_k * y + sum over j of comb[j][k] * streams_j), in place.
void expand_streams(const ForwardContext& context, const HyperConnections& site,
                    const tensor::FloatMatrix& y, tensor::FloatMatrix& streams);

}  // namespace locket::model
