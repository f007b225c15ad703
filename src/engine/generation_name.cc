#include "engine/generation_name.h"

#include "model/generations/generation.h"

namespace locket::engine {

Result<std::string_view> generation_name(const checkpoint::ConfigObject& config) {
  LOCKET_TRY(const model::Generation* generation, model::find_generation(config));
  return generation->name;
}

}  // namespace locket::engine
