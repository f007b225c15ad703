#include "base/append_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/check.h"

namespace locket {
namespace {

tl::unexpected<Error> io_error(const char* what, const std::filesystem::path& path, int error) {
  return fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error)));
}

}  // namespace

AppendFile::AppendFile(int descriptor, std::uint64_t size, std::filesystem::path path)
    : descriptor_(descriptor), size_(size), path_(std::move(path)) {}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      path_(std::move(other.path_)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<AppendFile> AppendFile::create(const std::filesystem::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int error = errno == ENOENT ? ENOTDIR : errno;  // the folder is gone: not "not found"
    return io_error("create", path, error);
  }
  return AppendFile(descriptor, 0, path);
}

Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return io_error("open", path, errno);
  AppendFile file(descriptor, 0, path);
  struct stat info = {};
  if (::fstat(descriptor, &info) != 0) return io_error("look at", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kIo, fmt::format("{} is not a regular file", path.string()));
  }
  file.size_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

Status AppendFile::append(std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(size_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      // Nothing better can be done if this fails too: the bytes belong to nobody.
      static_cast<void>(truncate(size_));
      return io_error("append to", path_, error);
    }
    done += static_cast<std::size_t>(wrote);
  }
  size_ += bytes.size();
  return {};
}

Status AppendFile::truncate(std::uint64_t size) {
  LOCKET_CHECK(size <= size_);
  size_ = size;
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
    return io_error("truncate", path_, errno);
  }
  return {};
}

Status AppendFile::sync() {
  if (::fdatasync(descriptor_) != 0) return io_error("sync", path_, errno);
  return {};
}

Status AppendFile::punch(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return {};
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (::fallocate(descriptor_, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) {
    return {};
  }
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("the file system of {} cannot free parts of a file", path_.string()));
  }
  return io_error("free a part of", path_, errno);
}

}  // namespace locket
