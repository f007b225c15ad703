#include "model/expert_load.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace locket::model {
namespace {

using checkpoint::TensorPiece;

constexpr std::size_t kGroupRows = 16;
// Several make one read of the device.
constexpr std::size_t kPieceBytes = checkpoint::TensorReads::kBlockBytes / 2;

// Where the bytes of a piece go.
struct Place {
  const StoredWeight* stored = nullptr;
  kernels::WeightMatrix* matrix = nullptr;
  bool is_scale = false;
  std::size_t first_row = 0;

  Status pack(std::span<const std::byte> bytes) const {
    const Status packed = is_scale ? kernels::pack_scales(bytes, *matrix)
                                   : kernels::pack_values(bytes, first_row, *matrix);
    if (packed) return {};
    const checkpoint::StoredTensor& tensor = is_scale ? *stored->scale : stored->weight;
    return fail(packed.error().code,
                fmt::format("tensor {} in {}: {}", tensor.name(), tensor.file->path().string(),
                            packed.error().message));
  }
};

void make_room(const StoredWeight& stored, kernels::WeightMatrix& matrix) {
  const bool fits = matrix.format == stored.format && matrix.rows == stored.rows &&
                    matrix.columns == stored.columns && matrix.tiles.size() > 0;
  if (!fits) matrix = kernels::unpacked_matrix(stored.format, stored.rows, stored.columns);
}

// An expert on its way.
class Load {
 public:
  Load(const StoredExpert& stored, ExpertWeights& target, std::function<void(Status)> done)
      : stored_(stored), target_(target), done_(std::move(done)) {
    add(stored.gate, target.gate);
    add(stored.up, target.up);
    add(stored.down, target.down);
    left_ = places_.size();
  }

  std::span<const TensorPiece> pieces() const { return pieces_; }

  void take(std::size_t piece, const Result<std::span<const std::byte>>& bytes) {
    Status status = bytes ? pack(piece, *bytes) : Status(tl::make_unexpected(bytes.error()));
    if (!status) {
      const std::lock_guard lock(mutex_);
      if (first_error_) first_error_ = std::move(status);
    }
    if (left_.fetch_sub(1) == 1) done_(std::move(first_error_));
  }

 private:
  Status pack(std::size_t piece, std::span<const std::byte> bytes) {
    std::call_once(has_room_, [this] {
      make_room(stored_.gate, target_.gate);
      make_room(stored_.up, target_.up);
      make_room(stored_.down, target_.down);
    });
    return places_[piece].pack(bytes);
  }

  void add(const StoredWeight& stored, kernels::WeightMatrix& matrix) {
    if (stored.scale) {
      const auto bytes = static_cast<std::size_t>(stored.scale->byte_count());
      pieces_.push_back({.tensor = &*stored.scale, .first_byte = 0, .bytes = bytes});
      places_.push_back({.stored = &stored, .matrix = &matrix, .is_scale = true});
    }
    const std::size_t row_bytes = kernels::stored_row_bytes(stored.format, stored.columns);
    const std::size_t step =
        std::max<std::size_t>(1, kPieceBytes / (kGroupRows * row_bytes)) * kGroupRows;
    for (std::size_t row = 0; row < stored.rows; row += step) {
      const std::size_t rows = std::min(step, stored.rows - row);
      pieces_.push_back({.tensor = &stored.weight,
                         .first_byte = std::uint64_t{row} * row_bytes,
                         .bytes = rows * row_bytes});
      places_.push_back({.stored = &stored, .matrix = &matrix, .first_row = row});
    }
  }

  const StoredExpert& stored_;
  ExpertWeights& target_;
  std::function<void(Status)> done_;
  std::vector<TensorPiece> pieces_;
  std::vector<Place> places_;  // [pieces]
  std::once_flag has_room_;
  std::atomic<std::size_t> left_ = 0;
  std::mutex mutex_;
  Status first_error_;  // under mutex_ until the last piece
};

}  // namespace

checkpoint::TensorReads::Ticket load_expert(checkpoint::TensorReads& reads,
                                            const StoredExpert& stored, ExpertWeights& target,
                                            std::function<void(Status)> done,
                                            checkpoint::TensorReads::Turn turn) {
  const auto load = std::make_shared<Load>(stored, target, std::move(done));
  return reads.read(
      load->pieces(),
      [load](std::size_t piece, const Result<std::span<const std::byte>>& bytes) {
        load->take(piece, bytes);
      },
      turn);
}

}  // namespace locket::model
