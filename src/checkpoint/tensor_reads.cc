#include "checkpoint/tensor_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
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
  const TensorFile* file = nullptr;
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

// A block that nobody has begun to read.
struct Job {
  Block block;
  std::shared_ptr<const TensorReads::Sink> sink;
  TensorReads::Ticket ticket = 0;
};

std::size_t number_of(TensorReads::Turn turn) { return static_cast<std::size_t>(turn); }

}  // namespace

struct TensorReads::State {
  std::map<const TensorFile*, DirectFile> files;
  std::vector<DirectBuffer> buffers;  // [threads]
  std::atomic<std::uint64_t> bytes_read = 0;
  std::mutex mutex;                                                            // of the next two
  std::array<std::deque<Job>, static_cast<std::size_t>(Turn::kCount)> queues;  // by turn
  Ticket last_ticket = 0;
  std::unique_ptr<TaskPool> pool;  // last: its threads use the others

  // One for each job that was queued; the one whose job was given up finds none.
  void run_next(std::size_t thread) {
    if (const std::optional<Job> job = take_next()) run(job->block, *job->sink, thread);
  }

  std::optional<Job> take_next() {
    const std::lock_guard lock(mutex);
    for (std::deque<Job>& queue : queues) {
      if (queue.empty()) continue;
      Job job = std::move(queue.front());
      queue.pop_front();
      return job;
    }
    return std::nullopt;
  }

  // Takes the jobs of a ticket out of a queue. Under mutex.
  std::vector<Job> take(Turn turn, Ticket ticket) {
    std::deque<Job>& queue = queues[number_of(turn)];
    const auto others = std::stable_partition(queue.begin(), queue.end(),
                                              [&](const Job& job) { return job.ticket != ticket; });
    std::vector<Job> taken;
    std::move(others, queue.end(), std::back_inserter(taken));
    queue.erase(others, queue.end());
    return taken;
  }

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

TensorReads::Ticket TensorReads::read(std::span<const TensorPiece> pieces, Sink sink, Turn turn) {
  const auto shared = std::make_shared<const Sink>(std::move(sink));
  std::vector<Block> blocks = group(pieces);
  Ticket ticket = 0;
  {
    const std::lock_guard lock(state_->mutex);
    ticket = ++state_->last_ticket;
    for (Block& block : blocks) {
      state_->queues[number_of(turn)].push_back({std::move(block), shared, ticket});
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    state_->pool->post([state = state_.get()](std::size_t thread) { state->run_next(thread); });
  }
  return ticket;
}

void TensorReads::hurry(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  std::ranges::move(state_->take(Turn::kAhead, ticket),
                    std::back_inserter(state_->queues[number_of(Turn::kNow)]));
}

void TensorReads::cancel(Ticket ticket) {
  std::vector<Job> given_up;
  {
    const std::lock_guard lock(state_->mutex);
    for (const Turn turn : {Turn::kNow, Turn::kAhead}) {
      std::ranges::move(state_->take(turn, ticket), std::back_inserter(given_up));
    }
  }
  for (const Job& job : given_up) {
    for (const Numbered& one : job.block.pieces) {
      (*job.sink)(one.number, fail(ErrorCode::kCancelled, "the read was given up"));
    }
  }
}

std::uint64_t TensorReads::bytes_read() const { return state_->bytes_read; }

}  // namespace locket::checkpoint
