// What a sequence carries besides its memory: groups of tokens that no row holds yet. Empty at
// every multiple of the layout's largest tokens_per_row.
#pragma once

#include <vector>

#include "model/compressor.h"

namespace locket::model {

struct SequenceState {
  // One for every writer of rows, as the model counts them; unused where a token is a row.
  std::vector<PendingGroup> pending;
};

}  // namespace locket::model
