#include "kernels/int8_matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernel_table.h"

namespace locket::kernels {
namespace {

void grow(tensor::AlignedBuffer& buffer, std::size_t bytes) {
  if (buffer.size() < bytes) buffer = tensor::AlignedBuffer(bytes);
}

}  // namespace

void Int8Matrix::resize(std::size_t tokens, std::size_t columns) {
  tokens_ = tokens;
  columns_ = columns;
  const std::size_t groups = int8_groups(columns);
  grow(codes_, (tokens * groups + kInt8SpareRows) * kInt8GroupColumns);
  grow(scales_, tokens * groups * sizeof(float));
  grow(offsets_, tokens * groups * kInt8GroupBlocks * sizeof(std::int32_t));
}

Int8Row Int8Matrix::row(std::size_t token) {
  LOCKET_DCHECK(token < tokens_);
  return {.codes = reinterpret_cast<std::int8_t*>(codes_.data()) + token * kInt8GroupColumns,
          .scales = reinterpret_cast<float*>(scales_.data()) + token,
          .offsets = reinterpret_cast<std::int32_t*>(offsets_.data()) + token * kInt8GroupBlocks,
          .token_stride = tokens_};
}

Int8Rows Int8Matrix::rows() const {
  return {.codes = reinterpret_cast<const std::int8_t*>(codes_.data()),
          .scales = reinterpret_cast<const float*>(scales_.data()),
          .offsets = reinterpret_cast<const std::int32_t*>(offsets_.data()),
          .tokens = tokens_,
          .token_stride = tokens_,
          .columns = columns_};
}

void Int8Matrix::copy_row(const Int8Rows& from, std::size_t from_token, std::size_t token) {
  LOCKET_DCHECK(from.columns == columns_ && from_token < from.tokens);
  const Int8Row to = row(token);
  for (std::size_t group = 0; group < from.groups(); ++group) {
    const std::size_t at = group * from.token_stride + from_token;
    std::copy_n(from.codes + at * kInt8GroupColumns, kInt8GroupColumns, to.group_codes(group));
    std::copy_n(from.offsets + at * kInt8GroupBlocks, kInt8GroupBlocks, to.group_offsets(group));
    to.group_scale(group) = from.scales[at];
  }
}

void quantize_int8(std::span<const float> x, const Int8Row& row) {
  active_kernels().int8.quantize_row(x, row);
}

void int8_matmul(const WeightMatrix& w, const Int8Rows& x, float* out, std::size_t out_stride,
                 WorkerPool& workers) {
  LOCKET_CHECK(w.format == WeightFormat::kFp4 && x.columns == w.columns);
  const KernelTable& table = active_kernels();
  const std::size_t grain = WorkerPool::grain_for(x.tokens * w.columns * 16);
  workers.parallel_for(w.row_groups(), grain, [&](std::size_t first, std::size_t last) {
    table.int8.matmul_groups(w, x, out, out_stride, first, last);
  });
}

}  // namespace locket::kernels
