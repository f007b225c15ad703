#include "checkpoint/safetensors_writer.h"

#include <fmt/format.h>
#include <set>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/json_tree.h"

namespace locket::checkpoint {
namespace {

// Keeps the data 64-byte aligned in the file.
constexpr std::size_t kHeaderUnit = 64;
constexpr std::size_t kLengthBytes = 8;

Status check_tensor(const NamedTensor& named) {
  const std::uint64_t bits = numerics::bits_of(named.view.dtype);
  const tensor::Shape& shape = named.view.shape;
  LOCKET_TRY(const std::int64_t count, tensor::element_count(shape));
  const bool is_whole = bits >= 8 || (!shape.empty() && shape.back() % 2 == 0);
  const bool fits = static_cast<std::uint64_t>(count) <= UINT64_MAX / bits &&
                    static_cast<std::uint64_t>(count) * bits / 8 == named.view.bytes.size();
  if (is_whole && fits) return {};
  return fail(ErrorCode::kBadRequest,
              fmt::format("tensor {}: {} {} does not fit {} bytes", internal::printable(named.name),
                          numerics::dtype_name(named.view.dtype), tensor::to_string(shape),
                          named.view.bytes.size()));
}

Result<std::string> metadata_text(const std::map<std::string, std::string>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    LOCKET_TRY(const std::string quoted_key, internal::json_quoted(key));
    LOCKET_TRY(const std::string quoted_value, internal::json_quoted(value));
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", quoted_key, quoted_value);
  }
  return fmt::format("\"__metadata__\":{{{}}}", text);
}

// The header with its length in front.
Result<std::string> header_bytes(std::span<const NamedTensor> tensors,
                                 const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> members;
  std::set<std::string_view> names = {"__metadata__"};
  if (!metadata.empty()) {
    LOCKET_TRY(std::string member, metadata_text(metadata));
    members.push_back(std::move(member));
  }
  std::size_t offset = 0;
  for (const NamedTensor& named : tensors) {
    LOCKET_TRY_STATUS(check_tensor(named));
    if (!names.insert(named.name).second) {
      return fail(ErrorCode::kBadRequest, fmt::format("tensor name {} is reserved or occurs twice",
                                                      internal::printable(named.name)));
    }
    LOCKET_TRY(const std::string name, internal::json_quoted(named.name));
    const std::size_t end = offset + named.view.bytes.size();
    members.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                                  name, numerics::dtype_name(named.view.dtype),
                                  tensor::to_string(named.view.shape), offset, end));
    offset = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  text.append((kHeaderUnit - (text.size() + kLengthBytes) % kHeaderUnit) % kHeaderUnit, ' ');
  std::string length;
  for (std::size_t byte = 0; byte < kLengthBytes; ++byte) {
    length.push_back(static_cast<char>(text.size() >> (8 * byte) & 0xff));
  }
  return length + text;
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                         const std::map<std::string, std::string>& metadata) {
  LOCKET_TRY(std::string content, header_bytes(tensors, metadata));
  std::size_t byte_count = content.size();
  for (const NamedTensor& named : tensors) byte_count += named.view.bytes.size();
  content.reserve(byte_count);
  for (const NamedTensor& named : tensors) {
    const std::span<const std::byte> bytes = named.view.bytes;
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return write_whole_file(path, std::as_bytes(std::span(content)));
}

}  // namespace locket::checkpoint
