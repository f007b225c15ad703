#include "model/engram.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/elementary.h"
#include "kernels/rms_norm.h"
#include "kernels/sum_order.h"
#include "model/linear.h"
#include "numerics/group_scaled.h"

namespace locket::model {
namespace {

constexpr float kGateFloor = 1e-6f;  // of |dot|; a constant of the model

// The gate of one stream of one position.
float stream_gate(std::span<const float> x, std::span<const float> query_key,
                  std::span<const float> key, float norm_eps) {
  const float sum =
      kernels::ordered_sum(x.size(), [&](std::size_t i) { return x[i] * query_key[i] * key[i]; });
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(x.size())));
  const float dot =
      sum * kernels::reciprocal_rms(x, norm_eps) * kernels::reciprocal_rms(key, norm_eps) * scale;
  return kernels::sigmoid(std::copysign(std::sqrt(std::max(std::fabs(dot), kGateFloor)), dot));
}

}  // namespace

EngramTable::EngramTable(const checkpoint::StoredTensor& weight,
                         const std::optional<checkpoint::StoredTensor>& scale)
    : weight_(weight), scale_(scale), head_dim_(static_cast<std::size_t>(weight.shape.back())) {}

Result<EngramTable> EngramTable::open(const checkpoint::StoredTensor& weight,
                                      const std::optional<checkpoint::StoredTensor>& scale,
                                      std::uint64_t resident_limit) {
  EngramTable table(weight, scale);
  if (weight.byte_count() > resident_limit) return table;
  LOCKET_TRY(table.resident_weight_, weight.read());
  if (scale) {
    LOCKET_TRY(table.resident_scale_, scale->read());
  }
  return table;
}

Status EngramTable::fetch(const checkpoint::StoredTensor& tensor,
                          const tensor::AlignedBuffer& resident, std::uint64_t first_byte,
                          std::span<std::byte> target) const {
  if (resident.size() == 0) return tensor.read_range(first_byte, target);
  std::memcpy(target.data(), resident.data() + first_byte, target.size());
  return {};
}

Status EngramTable::read_row(std::int64_t row, std::span<float> out) const {
  const auto index = static_cast<std::uint64_t>(row);
  const std::size_t element_bytes = scale_ ? 1 : 2;
  std::vector<std::uint8_t> codes(head_dim_ * element_bytes);
  LOCKET_TRY_STATUS(fetch(weight_, resident_weight_, index * codes.size(),
                          std::as_writable_bytes(std::span(codes))));
  if (!scale_) {
    for (std::size_t i = 0; i < head_dim_; ++i) {
      numerics::Bf16 value;
      std::memcpy(&value.bits, codes.data() + 2 * i, 2);
      out[i] = numerics::to_float(value);
    }
    return {};
  }
  std::vector<std::uint8_t> scales(head_dim_ / numerics::kFp8GroupSize);
  LOCKET_TRY_STATUS(fetch(*scale_, resident_scale_, index * scales.size(),
                          std::as_writable_bytes(std::span(scales))));
  numerics::dequantize_fp8(codes, scales, out);
  return {};
}

void engram_forward(ForwardContext& context, const EngramWeights& weights, float norm_eps,
                    const tensor::FloatMatrix& rows, tensor::FloatMatrix& streams) {
  const tensor::FloatMatrix projected =
      rounded_linear(context, weights.wkv, quantize_activations(context, rows));
  // Keys of the S streams, then one value for all.
  const std::size_t hidden = projected.columns() - streams.columns();
  const std::size_t count = streams.columns() / hidden;
  for (std::size_t token = 0; token < streams.rows(); ++token) {
    const auto value = projected.row(token).last(hidden);
    for (std::size_t s = 0; s < count; ++s) {
      const auto x = streams.row(token).subspan(s * hidden, hidden);
      const float gate = stream_gate(x, std::span(weights.query_key).subspan(s * hidden, hidden),
                                     projected.row(token).subspan(s * hidden, hidden), norm_eps);
      for (std::size_t i = 0; i < hidden; ++i) {
        x[i] = kernels::round_value(x[i] + gate * value[i], context.numerics.rounding());
      }
    }
  }
}

}  // namespace locket::model
