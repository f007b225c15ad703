#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "checkpoint/internal/error_text.h"

namespace locket::checkpoint {
namespace {

namespace fs = std::filesystem;
using numerics::Dtype;
using tensor::Shape;

std::string describe(Dtype dtype, const Shape& shape) {
  return fmt::format("{} {}", numerics::dtype_name(dtype), tensor::to_string(shape));
}

// [n, k] values as [n, k / 2] bytes.
Shape packed_shape(Shape shape) {
  shape.back() /= 2;
  return shape;
}

bool can_be(const TensorEntry& entry, Dtype dtype, const Shape& shape) {
  if (entry.dtype == dtype && entry.shape == shape) return true;
  return dtype == Dtype::kFp4E2m1 && entry.dtype == Dtype::kI8 &&
         entry.shape == packed_shape(shape);
}

std::string describe_wanted(std::initializer_list<Dtype> dtypes, const Shape& shape) {
  std::string text;
  for (const Dtype dtype : dtypes) {
    if (!text.empty()) text += " or ";
    text += describe(dtype, shape);
    if (dtype == Dtype::kFp4E2m1) text += " or " + describe(Dtype::kI8, packed_shape(shape));
  }
  return text;
}

// Two codes share a byte, so a row of FP4 has an even number of them.
Status check_wanted(std::string_view name, std::initializer_list<Dtype> dtypes,
                    const Shape& shape) {
  const bool wants_fp4 = std::ranges::find(dtypes, Dtype::kFp4E2m1) != dtypes.end();
  if (!wants_fp4 || (!shape.empty() && shape.back() % 2 == 0)) return {};
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("tensor {} cannot be {}: the last extent of FP4 must be even", name,
                          describe(Dtype::kFp4E2m1, shape)));
}

bool starts_with_one_of(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Checkpoint::Checkpoint(fs::path folder, ConfigFile config)
    : folder_(std::move(folder)), config_(std::move(config)) {}

Result<Checkpoint> Checkpoint::open(const fs::path& folder) {
  if (is_gguf_file(folder)) return open_gguf(folder);
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} is not a folder, nor a file *.gguf", folder.string()));
  }
  LOCKET_TRY(ConfigFile config, ConfigFile::open(folder / "config.json"));
  LOCKET_TRY(const ShardIndex index, read_shard_index(folder));
  Checkpoint checkpoint(folder, std::move(config));
  checkpoint.source_ = index.source;
  for (const std::string& shard : index.shards) {
    LOCKET_TRY(SafetensorsFile file, SafetensorsFile::open(folder / shard));
    checkpoint.files_.push_back(std::move(file));
  }
  LOCKET_TRY_STATUS(check_against_index(index, checkpoint.files_));
  for (const SafetensorsFile& file : checkpoint.files_) checkpoint.locate_tensors(file);
  checkpoint.sort_tensors();
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open_gguf(const fs::path& path) {
  LOCKET_TRY(GgufFile file, GgufFile::open(path));
  LOCKET_TRY(ConfigFile config, ConfigFile::parse(file.config_text(), path.string()));
  Checkpoint checkpoint(path, std::move(config));
  checkpoint.source_ = path;
  checkpoint.gguf_.push_back(std::move(file));
  checkpoint.locate_tensors(checkpoint.gguf_.front());
  checkpoint.sort_tensors();
  return checkpoint;
}

void Checkpoint::locate_tensors(const TensorFile& file) {
  for (const TensorEntry& entry : file.tensors()) {
    located_.push_back({.file = &file, .entry = &entry});
  }
}

void Checkpoint::sort_tensors() {
  std::ranges::sort(located_, {}, [](const Located& located) -> const std::string& {
    return located.entry->name;
  });
}

std::optional<std::size_t> Checkpoint::locate(std::string_view name) const {
  const auto name_of = [](const Located& located) -> std::string_view {
    return located.entry->name;
  };
  const auto found = std::ranges::lower_bound(located_, name, {}, name_of);
  if (found == located_.end() || name_of(*found) != name) return std::nullopt;
  return static_cast<std::size_t>(found - located_.begin());
}

StoredTensor Checkpoint::as_declared(const Located& located) {
  return {.file = located.file,
          .entry = located.entry,
          .dtype = located.entry->dtype,
          .shape = located.entry->shape};
}

std::vector<StoredTensor> Checkpoint::tensors() const {
  std::vector<StoredTensor> tensors;
  tensors.reserve(located_.size());
  for (const Located& located : located_) tensors.push_back(as_declared(located));
  return tensors;
}

std::optional<StoredTensor> Checkpoint::find(std::string_view name) const {
  const std::optional<std::size_t> place = locate(name);
  if (!place) return std::nullopt;
  return as_declared(located_[*place]);
}

Result<StoredTensor> Checkpoint::require(std::string_view name, Dtype dtype, const Shape& shape) {
  return require(name, {dtype}, shape);
}

Result<StoredTensor> Checkpoint::require(std::string_view name, std::initializer_list<Dtype> dtypes,
                                         const Shape& shape) {
  LOCKET_TRY_STATUS(check_wanted(name, dtypes, shape));
  const std::optional<std::size_t> place = locate(name);
  if (!place) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{}: tensor {} is missing ({} is needed)", source_.string(), name,
                            describe_wanted(dtypes, shape)));
  }
  Located& located = located_[*place];
  const TensorEntry& entry = *located.entry;
  for (const Dtype dtype : dtypes) {
    if (!can_be(entry, dtype, shape)) continue;
    located.is_claimed = true;
    return StoredTensor{.file = located.file, .entry = &entry, .dtype = dtype, .shape = shape};
  }
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("{}: tensor {} is {} ({} is needed)", located.file->path().string(), name,
                          describe(entry.dtype, entry.shape), describe_wanted(dtypes, shape)));
}

std::vector<std::string> Checkpoint::unclaimed(
    std::span<const std::string_view> skipped_prefixes) const {
  std::vector<std::string> names;
  for (const Located& located : located_) {
    if (located.is_claimed || starts_with_one_of(located.entry->name, skipped_prefixes)) continue;
    names.push_back(located.entry->name);
  }
  return names;
}

Status Checkpoint::check_all_claimed(std::span<const std::string_view> skipped_prefixes) const {
  const std::vector<std::string> names = unclaimed(skipped_prefixes);
  if (names.empty()) return {};
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("{}: {} tensors have no place in the model: {}", source_.string(),
                          names.size(), internal::join_names(names)));
}

std::string Checkpoint::describe_skipped(std::span<const std::string_view> prefixes) const {
  std::string text;
  for (const std::string_view prefix : prefixes) {
    std::size_t tensor_count = 0;
    std::uint64_t byte_count = 0;
    for (const Located& located : located_) {
      if (located.is_claimed || !located.entry->name.starts_with(prefix)) continue;
      ++tensor_count;
      byte_count += located.entry->byte_count;
    }
    if (tensor_count == 0) continue;
    text += fmt::format("{}{}* {} tensors, {} bytes", text.empty() ? "skipped: " : "; ", prefix,
                        tensor_count, byte_count);
  }
  return text;
}

}  // namespace locket::checkpoint
