#include "model/generations/v41_check.h"

#include <utility>

#include "model/generations/v41_config.h"
#include "model/generations/v41_weights.h"
#include "model/generations/weight_reader.h"

namespace locket::model {

Result<CheckedV41Checkpoint> check_v41_checkpoint(checkpoint::Checkpoint& checkpoint) {
  LOCKET_TRY(const V41Config config, read_v41_config(checkpoint.config().root()));
  WeightReader reader(checkpoint, {}, WeightReader::Reads::kNothing);
  LOCKET_TRY(LoadedV41Weights loaded, load_v41_weights(config, reader));
  return CheckedV41Checkpoint{.layers = config.layer_count, .skipped = std::move(loaded.skipped)};
}

}  // namespace locket::model
