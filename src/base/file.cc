#include "base/file.h"

#include <algorithm>
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

// One read() moves at most this much on Linux (0x7ffff000 bytes); stay below.
constexpr std::size_t kMaxReadCallBytes = std::size_t{1} << 30;

std::string reason(int error) { return std::strerror(error); }

Status write_all(int descriptor, std::span<const std::byte> content,
                 const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t wrote = ::write(descriptor, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      return fail(ErrorCode::kIo, fmt::format("cannot write {} at byte {}: {}", path.string(), done,
                                              reason(errno)));
    }
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

}  // namespace

File::File(int descriptor, std::uint64_t size, std::filesystem::path path)
    : descriptor_(descriptor),
      size_(size),
      read_call_limit_(kMaxReadCallBytes),
      path_(std::move(path)) {}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      read_call_limit_(other.read_call_limit_),
      path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    size_ = other.size_;
    read_call_limit_ = other.read_call_limit_;
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<File> File::open_for_reading(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const bool is_absent = errno == ENOENT || errno == ENOTDIR;
    const ErrorCode code = is_absent ? ErrorCode::kNotFound : ErrorCode::kIo;
    return fail(code, fmt::format("cannot open {}: {}", path.string(), reason(errno)));
  }
  struct stat info = {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return fail(ErrorCode::kIo, fmt::format("{} is not a regular file", path.string()));
  }
  return File(descriptor, static_cast<std::uint64_t>(info.st_size), path);
}

Status File::read_at(std::uint64_t offset, std::span<std::byte> target) const {
  LOCKET_CHECK(descriptor_ >= 0);
  std::size_t done = 0;
  while (done < target.size()) {
    const std::size_t want = std::min(target.size() - done, read_call_limit_);
    const ssize_t got =
        ::pread(descriptor_, target.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return fail(ErrorCode::kIo, fmt::format("cannot read {} at byte {}: {}", path_.string(),
                                              offset + done, reason(errno)));
    }
    if (got == 0) {
      return fail(ErrorCode::kIo,
                  fmt::format("{} ends at byte {}: wanted {} bytes from byte {} on, found {}",
                              path_.string(), offset + done, target.size(), offset, done));
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  LOCKET_TRY(const File file, File::open_for_reading(path));
  if (file.size() > max_bytes) {
    return fail(ErrorCode::kIo, fmt::format("{} has {} bytes, more than the {} allowed here",
                                            path.string(), file.size(), max_bytes));
  }
  std::string text(file.size(), '\0');
  LOCKET_TRY_STATUS(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Status write_whole_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  const std::filesystem::path temporary =
      path.string() + fmt::format(".{}.part", static_cast<long>(::getpid()));
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot create {}: {}", temporary.string(), reason(errno)));
  }
  Status status = write_all(descriptor, content, temporary);
  if (::close(descriptor) != 0 && status) {
    status =
        fail(ErrorCode::kIo, fmt::format("cannot close {}: {}", temporary.string(), reason(errno)));
  }
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = fail(ErrorCode::kIo, fmt::format("cannot rename {} to {}: {}", temporary.string(),
                                              path.string(), reason(errno)));
  }
  if (!status) ::unlink(temporary.c_str());
  return status;
}

}  // namespace locket
