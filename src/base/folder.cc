#include "base/folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/hash.h"

namespace locket {
namespace {

constexpr std::uint64_t kStatBlockBytes = 512;  // whatever the file system's blocks are

tl::unexpected<Error> io_error(const char* what, const std::filesystem::path& path) {
  const int error = errno;
  return fail(ErrorCode::kIo,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error)));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// What is wrong with a private file or folder; empty if nothing.
std::string privacy_fault(const struct stat& info) {
  if (info.st_uid != ::geteuid()) {
    return fmt::format("belongs to user {}, not to user {}", info.st_uid, ::geteuid());
  }
  if ((info.st_mode & 077) != 0) {
    return fmt::format("is open to others (mode {:o}); chmod go-rwx it", info.st_mode & 07777);
  }
  return {};
}

Status write_and_sync(int descriptor, std::span<const char> content,
                      const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t wrote = ::write(descriptor, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_error("write", path);
    done += static_cast<std::size_t>(wrote);
  }
  if (::fsync(descriptor) != 0) return io_error("sync", path);
  return {};
}

void for_each_entry(const std::filesystem::path& path, const auto& visit) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder.get())) {
    struct stat info = {};
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (::fstatat(::dirfd(folder.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    visit(name, info);
  }
}

}  // namespace

Status make_private_folder(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path parent = path.parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot make folder {}: {}", parent.string(), error.message()));
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_error("make folder", path);
  return {};
}

Status check_private_folder(const std::filesystem::path& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return io_error("look at", path);
  if (S_ISLNK(info.st_mode)) {
    return fail(ErrorCode::kBadMemory,
                fmt::format("{} is a link; name the folder itself", path.string()));
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(ErrorCode::kBadMemory, fmt::format("{} is not a folder", path.string()));
  }
  const std::string fault = privacy_fault(info);
  if (!fault.empty()) {
    return fail(ErrorCode::kBadMemory, fmt::format("{} {}", path.string(), fault));
  }
  return {};
}

Result<std::vector<FolderEntry>> list_files(const std::filesystem::path& path) {
  if (::access(path.c_str(), R_OK | X_OK) != 0) return io_error("list", path);
  std::vector<FolderEntry> entries;
  for_each_entry(path, [&](const std::string& name, const struct stat& info) {
    if (!S_ISREG(info.st_mode)) return;
    entries.push_back(
        {.name = name,
         .size_bytes = static_cast<std::uint64_t>(info.st_size),
         .allocated_bytes = static_cast<std::uint64_t>(info.st_blocks) * kStatBlockBytes});
  });
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

std::uint64_t allocated_bytes_below(const std::filesystem::path& path) {
  std::uint64_t bytes = 0;
  std::vector<std::filesystem::path> folders = {path};
  while (!folders.empty()) {
    const std::filesystem::path folder = folders.back();
    folders.pop_back();
    for_each_entry(folder, [&](const std::string& name, const struct stat& info) {
      if (S_ISDIR(info.st_mode)) folders.push_back(folder / name);
      bytes += static_cast<std::uint64_t>(info.st_blocks) * kStatBlockBytes;
    });
  }
  return bytes;
}

Status sync_folder(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return io_error("open folder", path);
  const int synced = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (synced != 0) return io_error("sync folder", path);
  return {};
}

Status remove_file(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_error("remove", path);
  return {};
}

Result<bool> create_file_once(const std::filesystem::path& path, const std::string& content) {
  std::array<std::byte, 8> unique = {};
  random_bytes(unique);
  const std::filesystem::path temporary = path.string() + "." + to_hex(unique) + ".part";
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return io_error("create", temporary);
  Status status = write_and_sync(descriptor, std::span(content), temporary);
  ::close(descriptor);
  bool is_made = false;
  if (status) {
    is_made = ::link(temporary.c_str(), path.c_str()) == 0;
    if (!is_made && errno != EEXIST) status = io_error("create", path);
  }
  ::unlink(temporary.c_str());
  if (!status) return tl::make_unexpected(std::move(status.error()));
  if (is_made) LOCKET_TRY_STATUS(sync_folder(path.parent_path()));
  return is_made;
}

Status replace_private_file(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path temporary = path.string() + ".part";
  LOCKET_TRY_STATUS(remove_file(temporary));
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return io_error("create", temporary);
  Status status = write_and_sync(descriptor, std::span(content), temporary);
  ::close(descriptor);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) status = io_error("replace", path);
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_folder(path.parent_path());
}

Result<std::string> read_private_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) {
    return fail(ErrorCode::kNotFound, fmt::format("{} does not exist", path.string()));
  }
  if (descriptor < 0 && errno == ELOOP) {
    return fail(ErrorCode::kBadMemory, fmt::format("{} is a link", path.string()));
  }
  if (descriptor < 0) return io_error("open", path);
  struct stat info = {};
  std::string fault;
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) fault = "is not a file";
  if (fault.empty()) fault = privacy_fault(info);
  if (fault.empty() && static_cast<std::uint64_t>(info.st_size) > max_bytes) {
    fault = fmt::format("has {} bytes, more than the {} expected", info.st_size, max_bytes);
  }
  std::string content(fault.empty() ? static_cast<std::size_t>(info.st_size) : 0, '\0');
  const ssize_t got = ::pread(descriptor, content.data(), content.size(), 0);
  ::close(descriptor);
  if (!fault.empty()) {
    return fail(ErrorCode::kBadMemory, fmt::format("{} {}", path.string(), fault));
  }
  if (got < 0) return io_error("read", path);
  content.resize(static_cast<std::size_t>(got));
  return content;
}

void prefetch_files(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const auto entries = list_files(path);
  if (!entries) return;
  std::uint64_t left = max_bytes;
  for (const FolderEntry& entry : *entries) {
    const int descriptor = ::open((path / entry.name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) continue;
    const std::uint64_t bytes = std::min(left, entry.size_bytes);
    if (bytes > 0) ::posix_fadvise(descriptor, 0, static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
    left -= bytes;
    ::close(descriptor);
  }
}

void drop_cached_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
}

FolderIdentity folder_identity(const std::filesystem::path& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {};
  return {.device = info.st_dev, .inode = info.st_ino};
}

Result<FolderLock> FolderLock::take(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return io_error("open", file);
  FolderLock lock(descriptor);
  std::array<char, 24> owner = {};
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    const std::string own = fmt::format("{}\n", static_cast<long>(::getpid()));
    // Only for the message below.
    if (::ftruncate(descriptor, 0) == 0) {
      static_cast<void>(!::pwrite(descriptor, own.data(), own.size(), 0));
    }
    return lock;
  }
  if (errno != EWOULDBLOCK) return io_error("lock", file);
  const ssize_t length = ::pread(descriptor, owner.data(), owner.size(), 0);
  const std::string_view text(owner.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  const std::string_view process = text.substr(0, text.find_first_not_of("0123456789"));
  return fail(
      ErrorCode::kOverloaded,
      fmt::format("{} is locked by {}", file.string(),
                  process.empty() ? "another process" : fmt::format("process {}", process)));
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace locket
