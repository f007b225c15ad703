#include "checkpoint/shard_index.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <system_error>

#include "base/check.h"
#include "base/file.h"
#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/json_tree.h"

namespace locket::checkpoint {
namespace {

namespace fs = std::filesystem;
using internal::JsonMember;
using internal::JsonValue;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSingleName = "model.safetensors";

// A link whose target is gone counts as there: it must not be passed over silently.
bool is_in_folder(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

bool is_readable_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

// The safetensors files of the folder that the index does not name, sorted.
std::vector<std::string> stray_files(const fs::path& folder, const ShardIndex& index) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (entry->path().extension() != ".safetensors") continue;
    if (!std::ranges::binary_search(index.shards, name)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

Status check_files_exist(const fs::path& folder, const ShardIndex& index) {
  std::vector<std::string> missing;
  for (const std::string& shard : index.shards) {
    if (!is_readable_file(folder / shard)) missing.push_back(shard);
  }
  if (missing.empty()) return {};
  std::string message =
      fmt::format("{} names {} files, {} of them missing: {}", index.source.string(),
                  index.shards.size(), missing.size(), internal::join_names(missing));
  const std::vector<std::string> strays = stray_files(folder, index);
  if (!strays.empty()) {
    message += fmt::format("; the folder holds {} files that it does not name: {}", strays.size(),
                           internal::join_names(strays));
  }
  return fail(ErrorCode::kNotFound, std::move(message));
}

// The members of "weight_map": tensor name to file name.
Result<const JsonValue::Object*> weight_map_of(const JsonValue& root, const std::string& source) {
  const JsonMember* member = internal::find_member(root, "weight_map");
  const auto* map =
      member == nullptr ? nullptr : std::get_if<JsonValue::Object>(&member->value.content);
  if (map == nullptr) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{}: weight_map is missing or no object", source));
  }
  if (map->empty()) {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: weight_map is empty", source));
  }
  for (const JsonMember& tensor : *map) {
    const auto* shard = std::get_if<std::string>(&tensor.value.content);
    if (shard != nullptr && is_plain_name(*shard)) continue;
    return fail(
        ErrorCode::kBadCheckpoint,
        fmt::format("{}: tensor {} is mapped to {} (the name of a file in the same folder "
                    "is needed)",
                    source, internal::printable(tensor.key), internal::describe(tensor.value)));
  }
  return map;
}

Result<ShardIndex> parse_index(const fs::path& source) {
  LOCKET_TRY(const std::string text, read_whole_file(source));
  LOCKET_TRY(const JsonValue root, internal::parse_json(text, source.string()));
  LOCKET_TRY(const JsonValue::Object* map, weight_map_of(root, source.string()));
  std::set<std::string> shards;
  for (const JsonMember& tensor : *map) shards.insert(std::get<std::string>(tensor.value.content));
  ShardIndex index{.source = source, .shards = {shards.begin(), shards.end()}, .tensors = {}};
  for (const JsonMember& tensor : *map) {
    const auto shard =
        std::ranges::lower_bound(index.shards, std::get<std::string>(tensor.value.content));
    index.tensors.push_back(
        {.name = tensor.key, .shard = static_cast<std::size_t>(shard - index.shards.begin())});
  }
  std::ranges::sort(index.tensors, {}, &IndexedTensor::name);
  return index;
}

}  // namespace

Result<ShardIndex> read_shard_index(const fs::path& folder) {
  const fs::path index_path = folder / kIndexName;
  if (is_in_folder(index_path)) {
    LOCKET_TRY(ShardIndex index, parse_index(index_path));
    LOCKET_TRY_STATUS(check_files_exist(folder, index));
    return index;
  }
  const fs::path single_path = folder / kSingleName;
  if (is_in_folder(single_path)) {
    return ShardIndex{.source = single_path,
                      .shards = {std::string(kSingleName)},
                      .tensors = {},
                      .is_single_file = true};
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("{} holds no checkpoint: neither {} nor {} is there", folder.string(),
                          kIndexName, kSingleName));
}

Status check_against_index(const ShardIndex& index, std::span<const SafetensorsFile> files) {
  LOCKET_CHECK(files.size() == index.shards.size());
  if (index.is_single_file) return {};
  std::vector<std::string> absent;
  for (const IndexedTensor& tensor : index.tensors) {
    if (files[tensor.shard].find(tensor.name) != nullptr) continue;
    absent.push_back(fmt::format("{} in {}", tensor.name, index.shards[tensor.shard]));
  }
  std::vector<std::string> unlisted;
  for (std::size_t shard = 0; shard < files.size(); ++shard) {
    for (const TensorEntry& entry : files[shard].tensors()) {
      const auto found =
          std::ranges::lower_bound(index.tensors, entry.name, {}, &IndexedTensor::name);
      const bool is_listed =
          found != index.tensors.end() && found->name == entry.name && found->shard == shard;
      if (!is_listed) unlisted.push_back(fmt::format("{} in {}", entry.name, index.shards[shard]));
    }
  }
  if (absent.empty() && unlisted.empty()) return {};
  std::string message = fmt::format("{} does not match its files", index.source.string());
  if (!absent.empty()) {
    message += fmt::format("; {} listed tensors are not there: {}", absent.size(),
                           internal::join_names(absent));
  }
  if (!unlisted.empty()) {
    message += fmt::format("; {} tensors are there and not listed: {}", unlisted.size(),
                           internal::join_names(unlisted));
  }
  return fail(ErrorCode::kBadCheckpoint, std::move(message));
}

}  // namespace locket::checkpoint
