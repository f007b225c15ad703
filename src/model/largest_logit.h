// What greedy decoding needs of the logits of a row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace locket::model {

struct LargestLogit {
  std::int32_t token = -1;  // of the largest logit, the lowest of equal ones; -1: none is finite
  std::size_t broken_count = 0;  // logits that are NaN or plus infinity: they are left out
};

}  // namespace locket::model
