// What attention costs a generated token in each generation: the multiply-adds of its own attention
// and of the search for what it attends to, in all layers, computed from the released shapes. Keys
// and values that are stored as latents are used as such (absorbed form). Pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace locket::cli {

struct AttentionWork {
  double attention = 0;  // query x row and probability x row
  double search = 0;     // index query x index key
  double total() const { return attention + search; }
};

// At `context` tokens, the newest one included. None for a model without a shape here.
std::optional<AttentionWork> attention_work(std::string_view id, std::int64_t context);

}  // namespace locket::cli
