// Which rows of the compressed memory the positions of one step read. An index source makes it, the
// layers after it use it again.
#pragma once

#include <cstdint>
#include <vector>

namespace locket::model {

struct RowSelection {
  // Per position: row numbers, ascending.
  std::vector<std::vector<std::int32_t>> rows;
};

// The candidate pool of one step: blocks of consecutive rows that later index sources may choose
// from.
struct CandidatePool {
  struct Blocks {
    bool holds_all = true;             // every visible row is in the pool
    std::vector<std::int32_t> chosen;  // ascending; used if !holds_all
  };
  std::vector<Blocks> positions;  // per position
};

}  // namespace locket::model
