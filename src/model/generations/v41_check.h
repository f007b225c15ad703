// Whether a checkpoint is what its config says, without reading its weights: every tensor is there,
// with the type and the shape that the model needs, and nothing else is.
#pragma once

#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace locket::model {

struct CheckedV41Checkpoint {
  std::int64_t layers = 0;
  std::string skipped;  // one line about tensors that are known and not used; may be empty
};

// Errors as V41Model::load(), but for those about values.
[[nodiscard]] Result<CheckedV41Checkpoint> check_v41_checkpoint(checkpoint::Checkpoint& checkpoint);

}  // namespace locket::model
