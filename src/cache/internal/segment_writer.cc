#include "cache/internal/segment_writer.h"

#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "base/direct_file.h"
#include "base/file.h"
#include "base/folder.h"

namespace locket::cache {
namespace {

Status failed(const std::string& what, const std::filesystem::path& path, int error) {
  return fail(ErrorCode::kIo,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error)));
}

bool has_whole_header(const std::filesystem::path& path, const SegmentName& name) {
  auto file = File::open_for_reading(path);
  SegmentHeader header = {};
  return file && file->read_at(0, header).has_value() && is_segment_header(header, name);
}

}  // namespace

SegmentWriter::SegmentWriter(std::filesystem::path folder, std::shared_ptr<StorageFaults> faults)
    : folder_(std::move(folder)), faults_(std::move(faults)) {}

StorageFault SegmentWriter::ask(StorageOperation operation, const SegmentName& name,
                                std::uint64_t bytes) const {
  if (faults_ == nullptr) return {};
  return faults_->hook(operation, segment_file_name(name), bytes);
}

Status SegmentWriter::start(std::uint32_t next_id) {
  next_id_ = next_id;
  for (auto& open : open_) open.reset();
  LOCKET_TRY(const auto entries, list_files(folder_));
  std::array<std::optional<SegmentName>, kSegmentKinds> newest;
  for (const FolderEntry& entry : entries) {
    const auto name = parse_segment_file_name(entry.name);
    if (!name) continue;
    next_id_ = std::max(next_id_, name->id + 1);
    auto& best = newest[static_cast<std::size_t>(name->kind)];
    if (!best || name->id > best->id) best = name;
  }
  for (const auto& name : newest) {
    if (!name) continue;
    const std::filesystem::path path = folder_ / segment_file_name(*name);
    if (!has_whole_header(path, *name)) continue;
    auto file = AppendFile::open(path);
    if (!file || file->size() >= kSegmentBytes) continue;
    open_[static_cast<std::size_t>(name->kind)] =
        Open{.name = *name, .file = std::move(*file), .turn_begin = 0, .is_touched = false};
  }
  begin_turn();
  return {};
}

void SegmentWriter::begin_turn() {
  for (auto& open : open_) {
    if (!open) continue;
    open->turn_begin = open->file.size();
    open->is_touched = false;
  }
}

Status SegmentWriter::create(SegmentKind kind) {
  const SegmentName name = {.kind = kind, .id = next_id_};
  const std::filesystem::path path = folder_ / segment_file_name(name);
  const StorageFault fault = ask(StorageOperation::kCreate, name, 0);
  if (fault.error != 0) return failed("create", path, fault.error);
  LOCKET_TRY(AppendFile file, AppendFile::create(path));
  ++next_id_;
  made_files_ = true;
  auto& open = open_[static_cast<std::size_t>(kind)];
  open = Open{.name = name, .file = std::move(file), .turn_begin = 0, .is_touched = true};
  const SegmentHeader header = make_segment_header(name);
  Status status = append_bytes(*open, header);
  if (!status) {
    open.reset();
    static_cast<void>(remove_file(path));
    return status;
  }
  open->turn_begin = open->file.size();
  return {};
}

Result<SegmentWriter::Open*> SegmentWriter::file_for(SegmentKind kind, std::uint64_t bytes) {
  auto& open = open_[static_cast<std::size_t>(kind)];
  const bool has_room = open && open->file.size() + bytes <= kSegmentBytes;
  const bool is_empty = open && open->file.size() <= kSegmentHeaderBytes;
  if (!has_room && !is_empty) {
    if (open && open->is_touched) LOCKET_TRY_STATUS(open->file.sync());
    LOCKET_TRY_STATUS(create(kind));
  }
  return &*open;
}

Status SegmentWriter::append_bytes(Open& open, std::span<const std::byte> bytes) {
  const StorageFault fault = ask(StorageOperation::kAppend, open.name, bytes.size());
  if (fault.error == 0) return open.file.append(bytes);
  static_cast<void>(
      open.file.append(bytes.first(std::min<std::size_t>(bytes.size(), fault.bytes_done))));
  return failed("append to", open.file.path(), fault.error);
}

Result<StoredValue> SegmentWriter::append(SegmentKind kind, std::span<const std::byte> payload) {
  LOCKET_TRY(Open * open, file_for(kind, payload.size() + kSectorBytes));
  open->is_touched = true;
  // Where a sector begins, so that it can be read to where it is needed without a copy.
  static constexpr std::array<std::byte, kSectorBytes> kZeros = {};
  const std::size_t over = open->file.size() % kSectorBytes;
  if (over > 0) {
    LOCKET_TRY_STATUS(append_bytes(*open, std::span(kZeros).first(kSectorBytes - over)));
  }
  const StoredValue value = {.segment = open->name.id,
                             .offset = open->file.size(),
                             .bytes = payload.size(),
                             .checksum = xxh3_128(payload)};
  LOCKET_TRY_STATUS(append_bytes(*open, payload));
  return value;
}

Status SegmentWriter::sync() {
  for (auto& open : open_) {
    if (!open || !open->is_touched) continue;
    const StorageFault fault = ask(StorageOperation::kSync, open->name, 0);
    if (fault.error != 0) return failed("sync", open->file.path(), fault.error);
    LOCKET_TRY_STATUS(open->file.sync());
  }
  if (made_files_) LOCKET_TRY_STATUS(sync_folder(folder_));
  made_files_ = false;
  return {};
}

void SegmentWriter::rollback() {
  for (auto& open : open_) {
    if (!open || !open->is_touched) continue;
    // A file that cannot be cut is left alone: what nobody refers to is found at the next start.
    if (!open->file.truncate(open->turn_begin)) open.reset();
  }
  begin_turn();
}

template <class Work>
void SegmentWriter::with_file(const SegmentName& name, const Work& work) {
  auto& open = open_[static_cast<std::size_t>(name.kind)];
  if (open && open->name.id == name.id) {
    work(open->file);
    return;
  }
  auto file = AppendFile::open(folder_ / segment_file_name(name));
  if (file) work(*file);
}

void SegmentWriter::punch(const SegmentName& name, std::uint64_t offset, std::uint64_t bytes) {
  if (ask(StorageOperation::kPunch, name, bytes).error != 0) return;
  with_file(name, [&](AppendFile& file) { static_cast<void>(file.punch(offset, bytes)); });
}

void SegmentWriter::truncate(const SegmentName& name, std::uint64_t bytes) {
  with_file(name, [&](AppendFile& file) {
    if (bytes < file.size()) static_cast<void>(file.truncate(bytes));
  });
  begin_turn();
}

void SegmentWriter::remove(const SegmentName& name) {
  auto& open = open_[static_cast<std::size_t>(name.kind)];
  if (open && open->name.id == name.id) open.reset();
  if (ask(StorageOperation::kRemove, name, 0).error != 0) return;
  static_cast<void>(remove_file(folder_ / segment_file_name(name)));
}

}  // namespace locket::cache
