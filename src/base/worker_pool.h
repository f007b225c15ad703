// A fork-join pool with a fixed number of threads. parallel_for() cuts an index range into fixed
// pieces; threads begin with neighbouring ones and take what others have not come to. Which thread
// computes what must not change a result. The caller takes part, and does not wait for threads that
// have not begun. One caller at a time. Exceptions must not leave the function.
//
// A thread without work looks for it for some microseconds, so that calls in quick succession cost
// little, and then sleeps, so that an idle pool costs nothing. Threads run where the system likes:
// kept on one processor each, they only got into the caller's way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace locket {

class WorkerPool {
 public:
  // `thread_count` >= 1 counts the calling thread.
  explicit WorkerPool(std::size_t thread_count);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  std::size_t thread_count() const;

  // Threads that the machine runs at once; at least 1.
  static std::size_t hardware_threads();

  // A grain for items of `item_work` multiply-adds each: parts below it would cost more to hand out
  // than they bring.
  static std::size_t grain_for(std::size_t item_work);

  // Into how many parts work of so many multiply-adds should be cut; 1 to thread_count().
  std::size_t parts_for(std::uint64_t work) const;

  // The same for pieces that threads take as they come free: 1 to some for each thread.
  std::size_t pieces_for(std::uint64_t work) const;

  // Calls run(begin, end) for disjoint ranges that cover [0, count), each a multiple of `grain`
  // long except the last; returns when all are done. A thread may be called for several ranges.
  void parallel_for(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t begin, std::size_t end)>& run);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
