// What layers do around their mechanisms, in every generation: norm, add, tell the observer, wait
// for rows, and what becomes of parts that fail. Thread-safe for different steps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// The newest ids of all parts, and the positions, row by row.
std::vector<std::int32_t> step_tokens(const Step& step);
std::vector<std::int64_t> step_positions(const Step& step);

// Whether any part of the step has not failed.
bool goes_on(const Step& step);

// Every part waits for its rows, or fails.
void wait_for_rows(Step& step);

// Fails every part that has not failed: what serves all sequences of a step could not be had.
void fail_parts(Step& step, const Error& error);

// The RMS norm of every row.
tensor::FloatMatrix normed_rows(const ForwardContext& context, float eps,
                                const std::vector<float>& weight, const tensor::FloatMatrix& rows);

// residual += update. REQUIRES: equal shapes.
void add_rows(const tensor::FloatMatrix& update, tensor::FloatMatrix& residual);

// Values of rows from a position on, or of all rows of the step, if somebody watches.
void observe_rows(const ForwardContext& context, std::string_view name, std::int64_t layer,
                  std::int64_t first_position, const tensor::FloatMatrix& values);
void observe_rows(const ForwardContext& context, std::string_view name, std::int64_t layer,
                  const Step& step, const tensor::FloatMatrix& values);

}  // namespace locket::model
