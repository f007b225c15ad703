#include "checkpoint/safetensors_writer.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/safetensors_layout.h"

namespace locket::checkpoint {
namespace {

Result<PlannedTensor> plan_of(const NamedTensor& named) {
  PlannedTensor planned = {
      .name = named.name, .dtype = named.view.dtype, .shape = named.view.shape};
  LOCKET_TRY_STATUS(tensor::element_count(planned.shape));
  const Result<std::uint64_t> bytes = internal::byte_count_of(planned);
  if (bytes && *bytes == named.view.bytes.size()) return planned;
  return fail(ErrorCode::kBadRequest,
              fmt::format("tensor {}: {} {} does not fit {} bytes", internal::printable(named.name),
                          numerics::dtype_name(named.view.dtype),
                          tensor::to_string(named.view.shape), named.view.bytes.size()));
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<PlannedTensor> planned;
  for (const NamedTensor& named : tensors) {
    LOCKET_TRY(PlannedTensor tensor, plan_of(named));
    planned.push_back(std::move(tensor));
  }
  LOCKET_TRY(std::string content, internal::safetensors_header(planned, metadata));
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
