// Where the routed experts of a model are to lie: in memory, or on disk with some of them in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace locket::model {

struct ExpertPlacement {
  std::uint64_t budget_bytes = 0;  // of those held in memory, the others on disk; 0: hold all
  std::size_t readers = 4;         // reads of the disk that are under way at once
};

}  // namespace locket::model
