#include "checkpoint/safetensors.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/check.h"
#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/safetensors_header.h"

namespace locket::checkpoint {

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  LOCKET_TRY(File opened, File::open_for_reading(path));
  SafetensorsFile file(std::move(opened));
  LOCKET_TRY(internal::SafetensorsHeader header, internal::read_safetensors_header(file.file_));
  file.tensors_ = std::move(header.tensors);
  file.metadata_ = std::move(header.metadata);
  file.by_name_.resize(file.tensors_.size());
  std::iota(file.by_name_.begin(), file.by_name_.end(), 0U);
  const auto name_of = [&](std::uint32_t index) -> const std::string& {
    return file.tensors_[index].name;
  };
  std::ranges::sort(file.by_name_, {}, name_of);
  const auto twin = std::ranges::adjacent_find(file.by_name_, {}, name_of);
  if (twin != file.by_name_.end()) {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: tensor {} occurs twice", path.string(),
                                                       internal::printable(name_of(*twin))));
  }
  return file;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto name_of = [&](std::uint32_t index) -> std::string_view {
    return tensors_[index].name;
  };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found != by_name_.end() && name_of(*found) == name ? &tensors_[*found] : nullptr;
}

Status SafetensorsFile::read_range(const TensorEntry& entry, std::uint64_t first_byte,
                                   std::span<std::byte> target) const {
  LOCKET_CHECK(first_byte <= entry.byte_count && target.size() <= entry.byte_count - first_byte);
  const Status status = file_.read_at(entry.offset + first_byte, target);
  if (status) return {};
  return internal::with_prefix(fmt::format("tensor {}: ", internal::printable(entry.name)),
                               status.error());
}

}  // namespace locket::checkpoint
