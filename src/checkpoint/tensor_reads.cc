#include "checkpoint/tensor_reads.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/direct_file.h"
#include "base/task_pool.h"
#include "checkpoint/internal/error_text.h"

namespace locket::checkpoint {
namespace {

struct Numbered {
  TensorPiece piece;
  std::size_t number = 0;  // as the caller counts

  std::uint64_t offset() const { return piece.tensor->entry->offset + piece.first_byte; }
  std::uint64_t end() const { return offset() + piece.bytes; }
};

// Pieces of one file that one read brings.
struct Block {
  const SafetensorsFile* file = nullptr;
  std::uint64_t offset = 0;  // aligned
  std::uint64_t end = 0;
  std::vector<Numbered> pieces;
};

std::uint64_t round_down(std::uint64_t value) {
  return value / kDirectReadAlignment * kDirectReadAlignment;
}

std::uint64_t round_up(std::uint64_t value) { return round_down(value + kDirectReadAlignment - 1); }

// Whether a read that ends at block.end may go on to the piece.
bool continues(const Block& block, const Numbered& next) {
  return next.piece.tensor->file == block.file &&
         next.offset() <= block.end + kDirectReadAlignment &&
         block.end - block.offset < TensorReads::kBlockBytes;
}

std::vector<Block> group(std::span<const TensorPiece> pieces) {
  std::vector<Numbered> numbered;
  for (std::size_t i = 0; i < pieces.size(); ++i) numbered.push_back({pieces[i], i});
  std::ranges::stable_sort(numbered, [](const Numbered& a, const Numbered& b) {
    if (a.piece.tensor->file != b.piece.tensor->file) {
      return std::less<>()(a.piece.tensor->file, b.piece.tensor->file);
    }
    return a.offset() < b.offset();
  });
  std::vector<Block> blocks;
  for (Numbered& one : numbered) {
    if (blocks.empty() || !continues(blocks.back(), one)) {
      blocks.push_back({.file = one.piece.tensor->file,
                        .offset = round_down(one.offset()),
                        .end = one.end(),
                        .pieces = {}});
    }
    blocks.back().end = std::max(blocks.back().end, one.end());
    blocks.back().pieces.push_back(one);
  }
  return blocks;
}

}  // namespace

struct TensorReads::State {
  std::map<const SafetensorsFile*, DirectFile> files;
  std::vector<DirectBuffer> buffers;  // [threads]
  std::atomic<std::uint64_t> bytes_read = 0;
  std::unique_ptr<TaskPool> pool;  // last: its threads use the others

  void run(const Block& block, const Sink& sink, std::size_t thread) {
    const std::size_t length = static_cast<std::size_t>(round_up(block.end) - block.offset);
    if (buffers[thread].bytes().size() < length) buffers[thread] = DirectBuffer(length);
    const std::span<std::byte> bytes = buffers[thread].bytes().first(length);
    const Result<std::size_t> got = files.at(block.file).read(block.offset, bytes);
    bytes_read += length;
    for (const Numbered& one : block.pieces) {
      const auto first = static_cast<std::size_t>(one.offset() - block.offset);
      if (got && first + one.piece.bytes <= *got) {
        sink(one.number, std::span<const std::byte>(bytes.subspan(first, one.piece.bytes)));
        continue;
      }
      sink(one.number, failed(block, one, got));
    }
  }

  static tl::unexpected<Error> failed(const Block& block, const Numbered& one,
                                      const Result<std::size_t>& got) {
    const std::string name =
        fmt::format("tensor {}: ", internal::printable(one.piece.tensor->name()));
    if (!got) return internal::with_prefix(name, got.error());
    return fail(ErrorCode::kIo, fmt::format("{}{} ends at byte {}, bytes {} to {} are wanted", name,
                                            block.file->path().string(), block.offset + *got,
                                            one.offset(), one.end() - 1));
  }
};

TensorReads::TensorReads(std::unique_ptr<State> state) : state_(std::move(state)) {}

TensorReads::~TensorReads() = default;

Result<std::unique_ptr<TensorReads>> TensorReads::open(std::span<const StoredTensor* const> tensors,
                                                       std::size_t threads) {
  LOCKET_CHECK(threads >= 1);
  auto state = std::make_unique<State>();
  for (const StoredTensor* tensor : tensors) {
    if (state->files.contains(tensor->file)) continue;
    LOCKET_TRY(DirectFile file,
               DirectFile::open(tensor->file->path(), DirectFile::Links::kFollowed));
    state->files.emplace(tensor->file, std::move(file));
  }
  for (std::size_t thread = 0; thread < threads; ++thread) {
    state->buffers.emplace_back(2 * kBlockBytes);
  }
  state->pool = std::make_unique<TaskPool>(threads);
  return std::make_unique<TensorReads>(std::move(state));
}

void TensorReads::read(std::span<const TensorPiece> pieces, Sink sink) {
  const auto shared = std::make_shared<const Sink>(std::move(sink));
  for (Block& block : group(pieces)) {
    state_->pool->post([state = state_.get(), shared, block = std::move(block)](
                           std::size_t thread) { state->run(block, *shared, thread); });
  }
}

std::uint64_t TensorReads::bytes_read() const { return state_->bytes_read; }

}  // namespace locket::checkpoint
