// Reads pieces of tensors in the background: many at once, past the system's page cache, neighbours
// in a file together. For weights that stay on disk and are wanted in large pieces again and again.
// What somebody waits for overtakes what is only read ahead. Thread-safe. The files must outlive
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace locket::checkpoint {

// `bytes` > 0 bytes of `tensor`, from its byte `first_byte` on.
struct TensorPiece {
  const StoredTensor* tensor = nullptr;
  std::uint64_t first_byte = 0;
  std::size_t bytes = 0;
};

class TensorReads {
 public:
  // What one read of the device takes, if so many wanted bytes lie next to each other: less costs
  // speed, more brings none.
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

  // Called by a background thread, once for each piece in any order: the bytes, which live as long
  // as the call, or why there are none; the message names tensor and file. Calls for different
  // pieces come at the same time. Must not throw.
  using Sink = std::function<void(std::size_t piece, Result<std::span<const std::byte>> bytes)>;

  // kNow: somebody waits for it. kAhead: begun only when no read of kNow is queued.
  enum class Turn { kNow, kAhead, kCount };
  // One call of read().
  using Ticket = std::uint64_t;

  // Opens every file that holds one of `tensors`. `threads`: reads that are under way at once.
  [[nodiscard]] static Result<std::unique_ptr<TensorReads>> open(
      std::span<const StoredTensor* const> tensors, std::size_t threads);
  struct State;
  explicit TensorReads(std::unique_ptr<State> state);  // open() makes it
  TensorReads(const TensorReads&) = delete;
  TensorReads& operator=(const TensorReads&) = delete;
  // Everything queued is still read.
  ~TensorReads();

  // Queues the reads of these pieces behind all others of their turn and returns at once. REQUIRES:
  // the tensors' files are open, and the tensors stay where they are until the last piece has come.
  Ticket read(std::span<const TensorPiece> pieces, Sink sink, Turn turn = Turn::kNow);
  // What has not begun of a read of kAhead goes behind the reads of kNow, as one of them.
  void hurry(Ticket ticket);
  // What has not begun is given up: its pieces come as kCancelled, in this call, from this thread.
  void cancel(Ticket ticket);

  // Bytes that have been asked of the disk so far, with what alignment adds.
  std::uint64_t bytes_read() const;
  // What the threads hold to read into.
  static std::size_t buffer_bytes(std::size_t threads) { return threads * 2 * kBlockBytes; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace locket::checkpoint
