// The memory on disk.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "base/direct_file.h"
#include "base/folder.h"
#include "cache/disk_catalog.h"
#include "cli/cache_parts.h"
#include "cli/doctor_checks.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using Level = Finding::Level;

constexpr std::uint64_t kSampleBytes = std::uint64_t{512} << 20;
constexpr std::uint64_t kUsefulFreeBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMostFindings = 8;

Finding finding(Level level, const char* name, std::string text, std::string advice = {}) {
  return {.level = level,
          .area = "memory",
          .name = name,
          .text = std::move(text),
          .advice = std::move(advice)};
}

// The nearest folder upwards that exists.
fs::path existing_folder(fs::path folder) {
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

Finding check_room(const fs::path& folder, std::uint64_t quota_bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(existing_folder(folder), error);
  if (error) return finding(Level::kWarning, "room", "the free room cannot be read");
  const std::uint64_t quota = quota_bytes > 0 ? quota_bytes : default_memory_quota(folder);
  const std::string text = fmt::format("{} free, the memory may take {}",
                                       bytes_text(space.available), bytes_text(quota));
  const std::uint64_t taken = allocated_bytes_below(folder);
  const std::uint64_t more = quota > taken ? quota - taken : 0;
  if (space.available < std::max(kUsefulFreeBytes, std::min(more, space.capacity / 100))) {
    return finding(Level::kWarning, "room", text,
                   "the disk is nearly full: make room, or name another folder with --memory");
  }
  if (more > space.available) {
    return finding(Level::kWarning, "room", text, "the quota is more than the disk can hold");
  }
  return finding(Level::kOk, "room", text);
}

Finding check_direct_reads(const fs::path& folder) {
  const auto files = list_files(folder);
  if (!files || files->empty()) return finding(Level::kOk, "direct reads", "no file yet to try");
  const auto largest = std::ranges::max_element(*files, {}, &FolderEntry::size_bytes);
  const Result<DirectFile> file = DirectFile::open(folder / largest->name);
  if (!file) return finding(Level::kFailure, "direct reads", file.error().message);
  if (file->is_direct()) {
    return finding(Level::kOk, "direct reads", "the file system has them");
  }
  return finding(Level::kWarning, "direct reads", "the file system has none",
                 "restoring is slower: a local disk is better");
}

std::vector<Finding> check_content(cache::DiskStore& store) {
  const auto report = cache::verify_sample(store, kSampleBytes);
  if (!report) return {finding(Level::kFailure, "content", report.error().message)};
  if (report->damaged > 0) {
    std::vector<Finding> findings;
    const std::size_t shown = std::min(report->findings.size(), kMostFindings);
    for (std::size_t i = 0; i < shown; ++i) {
      findings.push_back(finding(Level::kFailure, "content", report->findings[i],
                                 "locket cache verify --repair drops what is damaged"));
    }
    return findings;
  }
  const auto count = [](std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); };
  std::string text =
      fmt::format("{} values, {}: sound", count(report->values), bytes_text(report->bytes));
  if (report->left_out > 0) {
    text += fmt::format("; {} more were not read, locket cache verify reads all",
                        count(report->left_out));
  }
  return {finding(Level::kOk, "content", text)};
}

std::vector<Finding> check_store(const fs::path& folder, std::uint64_t quota_bytes) {
  using Access = cache::DiskOptions::Access;
  const auto store = cache::DiskStore::open(
      {.directory = folder, .quota_bytes = quota_bytes, .access = Access::kReadOnly});
  if (!store) {
    return {finding(Level::kFailure, "format", store.error().message,
                    "what is remembered there cannot be used; another folder can: --memory")};
  }
  const cache::CatalogTotals totals = cache::count_stored(**store);
  std::vector<Finding> findings = {
      finding(Level::kOk, "format",
              fmt::format("{} tokens in {} pages, {} snapshots, {} on disk",
                          grouped(static_cast<std::uint64_t>(totals.tokens)),
                          grouped(static_cast<std::uint64_t>(totals.pages)),
                          grouped(static_cast<std::uint64_t>(totals.snapshots)),
                          bytes_text(totals.folder_bytes)))};
  for (Finding& found : check_content(**store)) findings.push_back(std::move(found));
  return findings;
}

}  // namespace

std::vector<Finding> check_memory(const MemoryChoice& choice, std::uint64_t quota_bytes) {
  if (choice.is_off) {
    const bool was_asked = choice.source != MemoryChoice::Source::kDefault;
    return {finding(was_asked ? Level::kOk : Level::kWarning, "folder",
                    "nothing is kept on disk: " + choice.why_off)};
  }
  const fs::path& folder = choice.directory;
  std::vector<Finding> findings = {check_room(folder, quota_bytes)};
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) {
    findings.push_back(
        finding(Level::kOk, "folder",
                fmt::format("{} is not there yet; the first run makes it", folder.string())));
    return findings;
  }
  if (const Status is_private = check_private_folder(folder); !is_private) {
    findings.push_back(finding(Level::kFailure, "folder", is_private.error().message));
    return findings;
  }
  findings.push_back(finding(Level::kOk, "folder", folder.string() + ", for its owner only"));
  findings.push_back(check_direct_reads(folder));
  for (Finding& found : check_store(folder, quota_bytes)) findings.push_back(std::move(found));
  return findings;
}

}  // namespace locket::cli
