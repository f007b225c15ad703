#include "checkpoint/internal/safetensors_layout.h"

#include <fmt/format.h>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/json_tree.h"

namespace locket::checkpoint::internal {
namespace {

// Keeps the data 64-byte aligned in the file.
constexpr std::size_t kHeaderUnit = 64;
constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

Result<std::string> metadata_text(const std::map<std::string, std::string>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    LOCKET_TRY(const std::string quoted_key, json_quoted(key));
    LOCKET_TRY(const std::string quoted_value, json_quoted(value));
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", quoted_key, quoted_value);
  }
  return fmt::format("\"__metadata__\":{{{}}}", text);
}

}  // namespace

Result<std::uint64_t> byte_count_of(const PlannedTensor& tensor) {
  constexpr std::uint64_t kByteBits = 8;
  const std::uint64_t bits = numerics::bits_of(tensor.dtype);
  LOCKET_TRY(const std::int64_t elements, tensor::element_count(tensor.shape));
  const auto count = static_cast<std::uint64_t>(elements);
  if (bits < kByteBits) {
    if (!tensor.shape.empty() && tensor.shape.back() % 2 == 0) return count / (kByteBits / bits);
  } else if (count <= kMostBytes / (bits / kByteBits)) {
    return count * (bits / kByteBits);
  }
  return fail(ErrorCode::kBadRequest,
              fmt::format("tensor {}: {} {} is no whole number of bytes, or too many",
                          printable(tensor.name), numerics::dtype_name(tensor.dtype),
                          tensor::to_string(tensor.shape)));
}

Result<std::string> safetensors_header(std::span<const PlannedTensor> tensors,
                                       const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> members;
  std::set<std::string_view> names = {"__metadata__"};
  if (!metadata.empty()) {
    LOCKET_TRY(std::string member, metadata_text(metadata));
    members.push_back(std::move(member));
  }
  std::uint64_t offset = 0;
  for (const PlannedTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return fail(ErrorCode::kBadRequest, fmt::format("tensor name {} is reserved or occurs twice",
                                                      printable(tensor.name)));
    }
    LOCKET_TRY(const std::uint64_t bytes, byte_count_of(tensor));
    LOCKET_TRY(const std::string name, json_quoted(tensor.name));
    members.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                                  name, numerics::dtype_name(tensor.dtype),
                                  tensor::to_string(tensor.shape), offset, offset + bytes));
    if (bytes > kMostBytes - offset) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("tensor {}: too many bytes for one file", printable(tensor.name)));
    }
    offset += bytes;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  text.append((kHeaderUnit - (text.size() + kLengthBytes) % kHeaderUnit) % kHeaderUnit, ' ');
  std::string length;
  for (std::size_t byte = 0; byte < kLengthBytes; ++byte) {
    length.push_back(static_cast<char>(text.size() >> (8 * byte) & 0xff));
  }
  return length + text;
}

}  // namespace locket::checkpoint::internal
