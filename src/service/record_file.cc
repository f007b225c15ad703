#include "service/record_file.h"

#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/hash.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie");

constexpr std::size_t kHeaderBytes = 16;
// The name of the format, and its version.
constexpr std::string_view kFileHeader("LOCKETRECORDS\x01\0\0", kHeaderBytes);

struct Frame {
  std::uint32_t payload_bytes = 0;
  std::uint32_t seal = 0;  // over the place in the file and payload_bytes
  Checksum128 checksum;    // of the payload
};
static_assert(sizeof(Frame) == RecordFile::kFrameBytes);

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A length can be trusted only where it was written.
std::uint32_t seal_of(std::uint64_t offset, std::uint32_t payload_bytes) {
  const std::array<std::uint64_t, 2> sealed = {offset, payload_bytes};
  return static_cast<std::uint32_t>(xxh3_128(std::as_bytes(std::span(sealed))).low);
}

void append_record(std::string_view payload, std::uint64_t offset, std::string& out) {
  const auto payload_bytes = static_cast<std::uint32_t>(payload.size());
  const Frame frame = {.payload_bytes = payload_bytes,
                       .seal = seal_of(offset, payload_bytes),
                       .checksum = xxh3_128(bytes_of(payload))};
  out.append(reinterpret_cast<const char*>(&frame), sizeof(frame));
  out.append(payload);
}

struct Scan {
  std::uint64_t end = 0;  // of the last record whose length can be trusted; 0: not such a file
  std::size_t dropped = 0;
};

Scan scan_records(std::string_view content,
                  const std::function<void(std::string_view)>& on_record) {
  Scan scan;
  if (!content.starts_with(kFileHeader)) return {.end = 0, .dropped = 1};
  scan.end = kHeaderBytes;
  while (content.size() - scan.end >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, content.data() + scan.end, sizeof(frame));
    if (frame.seal != seal_of(scan.end, frame.payload_bytes)) break;
    const std::string_view rest = content.substr(scan.end + sizeof(frame));
    if (frame.payload_bytes > rest.size()) break;
    const std::string_view payload = rest.substr(0, frame.payload_bytes);
    if (xxh3_128(bytes_of(payload)) == frame.checksum) {
      on_record(payload);
    } else {
      ++scan.dropped;
    }
    scan.end += sizeof(frame) + payload.size();
  }
  if (scan.end < content.size()) ++scan.dropped;
  return scan;
}

}  // namespace

Result<RecordFile> RecordFile::open(const fs::path& path,
                                    const std::function<void(std::string_view)>& on_record) {
  LOCKET_TRY(FolderLock lock, FolderLock::take(path.string() + ".lock"));
  Result<std::string> content = read_private_file(path, kMostBytes);
  if (!content && content.error().code == ErrorCode::kNotFound) {
    LOCKET_TRY(const bool is_made, create_file_once(path, std::string(kFileHeader)));
    static_cast<void>(is_made);
    content = std::string(kFileHeader);
  }
  if (!content) return tl::make_unexpected(std::move(content.error()));
  const Scan scan = scan_records(*content, on_record);
  if (scan.end == 0) LOCKET_TRY_STATUS(replace_private_file(path, std::string(kFileHeader)));
  LOCKET_TRY(AppendFile file, AppendFile::open(path));
  if (scan.end != 0 && scan.end < file.size()) LOCKET_TRY_STATUS(file.truncate(scan.end));
  RecordFile opened(std::move(lock), std::move(file));
  opened.dropped_ = scan.dropped;
  return opened;
}

Status RecordFile::append(std::string_view payload) {
  if (payload.size() > kMostBytes - kFrameBytes ||
      size_bytes() > kMostBytes - kFrameBytes - payload.size()) {
    return fail(ErrorCode::kOverBudget,
                fmt::format("{} has {} bytes, and {} more are too many; {} is the most",
                            file_.path().string(), size_bytes(), payload.size(), kMostBytes));
  }
  std::string record;
  record.reserve(kFrameBytes + payload.size());
  append_record(payload, size_bytes(), record);
  return file_.append(bytes_of(record));
}

Status RecordFile::rewrite(const std::vector<std::string_view>& payloads) {
  std::string content(kFileHeader);
  for (const std::string_view payload : payloads) append_record(payload, content.size(), content);
  const fs::path path = file_.path();
  LOCKET_TRY_STATUS(replace_private_file(path, content));
  LOCKET_TRY(file_, AppendFile::open(path));
  return {};
}

}  // namespace locket::service
