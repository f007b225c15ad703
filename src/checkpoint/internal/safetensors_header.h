// Reads and checks the header of a safetensors file: eight bytes of length, then JSON, then data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace locket::checkpoint::internal {

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of the data, offsets from the start of the file
  std::map<std::string, std::string> metadata;
};

// Memory is bounded by what the file really holds: the text is read in small pieces and parsing
// stops at the first thing that is wrong.
[[nodiscard]] Result<SafetensorsHeader> read_safetensors_header(const File& file);

}  // namespace locket::checkpoint::internal
