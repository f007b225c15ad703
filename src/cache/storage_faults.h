// Faults for tests of the disk store: a hook that is asked before each operation on a file of the
// store, RocksDB's own files included, and may let it fail. The hook is called by several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>

namespace locket::cache {

enum class StorageOperation { kCreate, kAppend, kSync, kRead, kPunch, kRemove, kCount };

struct StorageFault {
  int error = 0;  // an errno value; 0: go on
  // Of a failing append: how many of its bytes reach the file all the same.
  std::uint64_t bytes_done = 0;
};

struct StorageFaults {
  // `file` is the name without its folder; `bytes` is the length of the operation, 0 if it has
  // none.
  std::function<StorageFault(StorageOperation, std::string_view file, std::uint64_t bytes)> hook;
};

}  // namespace locket::cache
