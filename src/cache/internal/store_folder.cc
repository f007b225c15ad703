#include "cache/internal/store_folder.h"

#include <cstring>
#include <fmt/format.h>

#include "base/hash.h"

namespace locket::cache {
namespace {

constexpr const char* kSecretFile = "secret";
constexpr const char* kLockFile = "lock";
constexpr int kMostTries = 10;

std::string text_of(const StoreSecret& secret) {
  return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

}  // namespace

Status prepare_store_folder(const std::filesystem::path& folder) {
  LOCKET_TRY_STATUS(make_private_folder(folder));
  return check_private_folder(folder);
}

Result<StoreSecret> load_secret(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kSecretFile;
  Error last;
  for (int i = 0; i < kMostTries; ++i) {
    const auto content = read_private_file(path, sizeof(StoreSecret));
    if (content && content->size() == sizeof(StoreSecret)) {
      StoreSecret secret;
      std::memcpy(secret.data(), content->data(), secret.size());
      return secret;
    }
    if (!content && content.error().code != ErrorCode::kNotFound) {
      return tl::make_unexpected(content.error());
    }
    if (content) LOCKET_TRY_STATUS(remove_file(path));
    StoreSecret fresh;
    random_bytes(fresh);
    const auto made = create_file_once(path, text_of(fresh));
    if (!made) last = made.error();
  }
  return tl::make_unexpected(last);
}

Status restore_secret(const std::filesystem::path& folder, const StoreSecret& secret) {
  LOCKET_TRY(const bool is_made, create_file_once(folder / kSecretFile, text_of(secret)));
  if (is_made) return {};
  LOCKET_TRY(const StoreSecret other, load_secret(folder));
  if (other == secret) return {};
  return fail(
      ErrorCode::kBadMemory,
      fmt::format("{} was replaced by another memory; start again to use it", folder.string()));
}

Result<FolderLock> lock_for_writing(const std::filesystem::path& folder) {
  return FolderLock::take(folder / kLockFile);
}

void remove_temporary_files(const std::filesystem::path& folder) {
  const auto entries = list_files(folder);
  if (!entries) return;
  for (const FolderEntry& entry : *entries) {
    const bool is_ours = entry.name.starts_with(kSecretFile) && entry.name.ends_with(".part");
    if (is_ours) static_cast<void>(remove_file(folder / entry.name));
  }
}

}  // namespace locket::cache
