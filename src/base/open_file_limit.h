// How many files and sockets this process may have open at a time. Thread-safe.
#pragma once

#include <cstdint>

namespace locket {

struct OpenFileLimit {
  std::uint64_t before = 0;
  std::uint64_t now = 0;  // 0: it cannot be read
};

// Raises the limit as far as the system lets this process.
OpenFileLimit raise_open_file_limit();

}  // namespace locket
