// A fork-join pool with a fixed number of threads. parallel_for() splits an index range into fixed
// contiguous parts, so which thread computes what never changes a result; the caller takes part.
// One caller at a time. Exceptions must not leave the function.
#pragma once

#include <cstddef>
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

  // Calls run(begin, end) for disjoint ranges that cover [0, count), each a multiple of `grain`
  // long except the last; returns when all are done.
  void parallel_for(std::size_t count, std::size_t grain,
                    const std::function<void(std::size_t begin, std::size_t end)>& run);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
