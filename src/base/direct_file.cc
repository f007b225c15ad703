#include "base/direct_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"

namespace locket {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

tl::unexpected<Error> io_error(const char* what, const std::filesystem::path& path, int error) {
  return fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error)));
}

}  // namespace

DirectBuffer::DirectBuffer(std::size_t bytes) : size_(round_up(bytes, kDirectReadAlignment)) {
  if (size_ == 0) return;
  const bool is_large = size_ >= kHugePageBytes / 2;
  const std::size_t alignment = is_large ? kHugePageBytes : kDirectReadAlignment;
  const std::size_t allocated = round_up(size_, alignment);
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, allocated)));
  LOCKET_CHECK(data_ != nullptr);
  if (is_large) ::madvise(data_.get(), allocated, MADV_HUGEPAGE);
}

void DirectBuffer::Free::operator()(std::byte* pointer) const { std::free(pointer); }

DirectFile::DirectFile(int descriptor, std::filesystem::path path)
    : descriptor_(descriptor), path_(std::move(path)) {}

DirectFile::DirectFile(DirectFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      is_direct_(other.is_direct_),
      path_(std::move(other.path_)) {}

DirectFile& DirectFile::operator=(DirectFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_direct_, other.is_direct_);
  std::swap(path_, other.path_);
  return *this;
}

DirectFile::~DirectFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<DirectFile> DirectFile::open(const std::filesystem::path& path, Links links) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::kRefused ? O_NOFOLLOW : 0);
  int descriptor = ::open(path.c_str(), flags | O_DIRECT);
  const bool is_direct = descriptor >= 0;
  if (descriptor < 0 && errno == EINVAL) descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return io_error("open", path, errno);
  DirectFile file(descriptor, path);
  file.is_direct_ = is_direct;
  struct stat info = {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kIo, fmt::format("{} is not a regular file", path.string()));
  }
  return file;
}

Status DirectFile::read_scattered(std::uint64_t offset,
                                  std::span<const std::span<std::byte>> targets) const {
  LOCKET_CHECK(is_direct_ && offset % kSectorBytes == 0);
  std::vector<iovec> parts;
  std::size_t wanted = 0;
  for (const std::span<std::byte> target : targets) {
    LOCKET_CHECK(reinterpret_cast<std::uintptr_t>(target.data()) % kSectorBytes == 0);
    LOCKET_CHECK(target.size() % kSectorBytes == 0);
    parts.push_back({.iov_base = target.data(), .iov_len = target.size()});
    wanted += target.size();
  }
  ssize_t got = -1;
  do {
    got = ::preadv(descriptor_, parts.data(), static_cast<int>(parts.size()),
                   static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return io_error("read", path_, errno);
  if (static_cast<std::size_t>(got) == wanted) return {};
  return fail(ErrorCode::kIo, fmt::format("{} gave {} of {} bytes from byte {} on", path_.string(),
                                          got, wanted, offset));
}

Result<std::size_t> DirectFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  LOCKET_CHECK(offset % kDirectReadAlignment == 0 && target.size() % kDirectReadAlignment == 0);
  LOCKET_CHECK(reinterpret_cast<std::uintptr_t>(target.data()) % kDirectReadAlignment == 0);
  std::size_t done = 0;
  while (done < target.size()) {
    const ssize_t got = ::pread(descriptor_, target.data() + done, target.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path_, errno);
    done += static_cast<std::size_t>(got);
    // A read that ends off the alignment has reached the end of the file.
    if (got == 0 || done % kDirectReadAlignment != 0) break;
  }
  return done;
}

}  // namespace locket
