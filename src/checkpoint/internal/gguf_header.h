// Reads and checks what stands before the data of a GGUF file: keys with values, then the list of
// tensors. Published format, versions 2 and 3, little-endian: magic, version, counts, entries;
// every string and list has its length in front, so nothing is believed before it is compared with
// what the file still holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/result.h"
#include "checkpoint/gguf_blocks.h"

namespace locket::checkpoint::internal {

using GgufStrings = std::vector<std::string>;
using GgufIntegers = std::vector<std::int64_t>;
using GgufNumbers = std::vector<double>;
// Integers of all widths are int64_t; larger ones are refused.
using GgufValue =
    std::variant<std::int64_t, double, bool, std::string, GgufStrings, GgufIntegers, GgufNumbers>;

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::kF32;
  std::uint64_t columns = 0;  // values that lie together
  std::uint64_t rows = 0;     // product of the other extents
  std::size_t rank = 0;
  std::uint64_t offset = 0;  // from the start of the file

  std::uint64_t row_bytes() const {
    const GgufBlock block = gguf_block(type);
    return columns / block.values * block.bytes;
  }
  std::uint64_t byte_count() const { return rows * row_bytes(); }
};

struct GgufHeader {
  std::map<std::string, GgufValue> values;
  std::vector<GgufTensor> tensors;  // by offset
  Sha256Digest digest = {};         // of everything before the data
};

// kBadCheckpoint for a file that breaks the format, kUnsupported for versions and number formats
// that are not read; both name the file and the place. Memory is bounded by what the file holds.
[[nodiscard]] Result<GgufHeader> read_gguf_header(const File& file);

}  // namespace locket::checkpoint::internal
