#include "model/step_tools.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/check.h"
#include "kernels/rms_norm.h"
#include "model/row_work.h"

namespace locket::model {

std::vector<std::int32_t> step_tokens(const Step& step) {
  std::vector<std::int32_t> ids;
  for (const StepPart& part : step.parts) {
    const auto tokens = part.tokens.last(part.count);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  return ids;
}

std::vector<std::int64_t> step_positions(const Step& step) {
  std::vector<std::int64_t> positions(step.rows());
  for (std::size_t row = 0; row < positions.size(); ++row) positions[row] = step.position(row);
  return positions;
}

bool goes_on(const Step& step) {
  return std::ranges::any_of(step.parts,
                             [](const StepPart& part) { return part.status.has_value(); });
}

void wait_for_rows(Step& step) {
  for (StepPart& part : step.parts) {
    if (part.status) part.status = part.memory->wait_for_rows();
  }
}

void fail_parts(Step& step, const Error& error) {
  for (StepPart& part : step.parts) {
    if (part.status) part.status = tl::make_unexpected(error);
  }
}

tensor::FloatMatrix normed_rows(const ForwardContext& context, float eps,
                                const std::vector<float>& weight, const tensor::FloatMatrix& rows) {
  tensor::FloatMatrix normed(rows.rows(), rows.columns());
  for_each_row(context, rows.rows(), rows.columns() * kWorkPerNormedValue, [&](std::size_t i) {
    kernels::rms_norm(rows.row(i), weight, eps, context.numerics.rounding(), normed.row(i));
  });
  return normed;
}

void add_rows(const tensor::FloatMatrix& update, tensor::FloatMatrix& residual) {
  const std::span<const float> from = update.values();
  const std::span<float> to = residual.values();
  LOCKET_CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

void observe_rows(const ForwardContext& context, std::string_view name, std::int64_t layer,
                  std::int64_t first_position, const tensor::FloatMatrix& values) {
  if (context.observer == nullptr) return;
  context.observer->on_floats(
      {.name = name, .layer = layer, .first_position = first_position, .width = values.columns()},
      values.values());
}

void observe_rows(const ForwardContext& context, std::string_view name, std::int64_t layer,
                  const Step& step, const tensor::FloatMatrix& values) {
  observe_rows(context, name, layer, step.first_position(), values);
}

}  // namespace locket::model
