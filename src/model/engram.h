// Engram: rows of hashed n-gram tables, looked up by token ids alone, are added to the residual
// streams before a layer through a gate per stream. Engram paper (arXiv 2601.07372); report 2.3;
// official engram.py.
//
// Which rows: engram_hash.h. The rows are gathered before the forward pass, never inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// Tables up to this size are held in memory.
inline constexpr std::uint64_t kResidentTableBytes = std::uint64_t{1} << 28;

// One table [rows, head_dim]: FP8 with an E8M0 scale per 32, or BF16 without scales. Small tables
// are held in memory, large ones are read row by row from the checkpoint, which must outlive the
// table. Thread-safe.
class EngramTable {
 public:
  // `scale` is absent for BF16. Tables up to `resident_limit` bytes are read now.
  [[nodiscard]] static Result<EngramTable> open(
      const checkpoint::StoredTensor& weight, const std::optional<checkpoint::StoredTensor>& scale,
      std::uint64_t resident_limit);

  std::size_t head_dim() const { return head_dim_; }
  bool is_resident() const { return resident_weight_.size() > 0; }
  // Row `row` as float32, exact, into out [head_dim].
  [[nodiscard]] Status read_row(std::int64_t row, std::span<float> out) const;

 private:
  EngramTable(const checkpoint::StoredTensor& weight,
              const std::optional<checkpoint::StoredTensor>& scale);
  [[nodiscard]] Status fetch(const checkpoint::StoredTensor& tensor,
                             const tensor::AlignedBuffer& resident, std::uint64_t first_byte,
                             std::span<std::byte> target) const;

  checkpoint::StoredTensor weight_;
  std::optional<checkpoint::StoredTensor> scale_;
  tensor::AlignedBuffer resident_weight_;
  tensor::AlignedBuffer resident_scale_;
  std::size_t head_dim_;
};

struct EngramWeights {
  kernels::WeightMatrix wkv;  // [(S + 1) * hidden, columns * head_dim] FP8
  // q_weight * k_weight, per stream [S * hidden]; the two appear only as their product.
  std::vector<float> query_key;
};

// Adds to streams [tokens, S * hidden]; `rows` [tokens, columns * head_dim] are the gathered table
// rows.
void engram_forward(ForwardContext& context, const EngramWeights& weights, float norm_eps,
                    const tensor::FloatMatrix& rows, tensor::FloatMatrix& streams);

}  // namespace locket::model
