// Appends payloads to segment files, and gives the space of dead ones back. What one turn appends
// can be taken back until the next one begins. Errors are kIo with path and reason; afterwards
// rollback() leaves the files as they were. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/append_file.h"
#include "cache/disk_store.h"
#include "cache/internal/segment_format.h"
#include "cache/storage_faults.h"

namespace locket::cache {

class SegmentWriter {
 public:
  // A file is closed for appending once it has this many bytes.
  static constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 30;

  SegmentWriter(std::filesystem::path folder, std::shared_ptr<StorageFaults> faults);

  // REQUIRES: called before the first append, with an id above all that were ever used. Appending
  // goes on in the newest file of each kind that is whole and has room.
  [[nodiscard]] Status start(std::uint32_t next_id);
  std::uint32_t next_id() const { return next_id_; }

  void begin_turn();
  [[nodiscard]] Result<StoredValue> append(SegmentKind kind, std::span<const std::byte> payload);
  // What the turn appended survives a power cut.
  [[nodiscard]] Status sync();
  // Cuts off what the turn appended.
  void rollback();

  // Gives whole blocks back; quietly nothing where the file system cannot.
  void punch(const SegmentName& name, std::uint64_t offset, std::uint64_t bytes);
  void truncate(const SegmentName& name, std::uint64_t bytes);
  void remove(const SegmentName& name);

 private:
  // The file that is being appended to.
  struct Open {
    SegmentName name;
    AppendFile file;
    std::uint64_t turn_begin = 0;  // its size when the turn began
    bool is_touched = false;
  };

  StorageFault ask(StorageOperation operation, const SegmentName& name, std::uint64_t bytes) const;
  [[nodiscard]] Result<Open*> file_for(SegmentKind kind, std::uint64_t bytes);
  [[nodiscard]] Status create(SegmentKind kind);
  [[nodiscard]] Status append_bytes(Open& open, std::span<const std::byte> bytes);
  // Does something with the file of that name, whether it is open or not.
  template <class Work>
  void with_file(const SegmentName& name, const Work& work);

  const std::filesystem::path folder_;
  const std::shared_ptr<StorageFaults> faults_;
  std::uint32_t next_id_ = 1;
  std::array<std::optional<Open>, kSegmentKinds> open_;
  bool made_files_ = false;  // since the folder was synced
};

}  // namespace locket::cache
