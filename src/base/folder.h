// Folders that hold somebody's private data: made for the owner only, refused if others can reach
// them, never followed through links. Errors are kIo with the path and the reason unless said
// otherwise. Thread-safe: no state, except FolderLock, which belongs to one owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace locket {

// Makes the folder (0700) and what is missing above it. Nothing is changed if it exists.
[[nodiscard]] Status make_private_folder(const std::filesystem::path& path);

// kBadMemory if `path` is not a folder (a link is none), belongs to another user, or is open to
// group or others; the message says what would be right.
[[nodiscard]] Status check_private_folder(const std::filesystem::path& path);

struct FolderEntry {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::uint64_t allocated_bytes = 0;  // as the file system counts them
};

// The regular files of a folder, by name.
[[nodiscard]] Result<std::vector<FolderEntry>> list_files(const std::filesystem::path& path);

// Bytes that the files of the folder and of folders below it take; 0 for what cannot be read.
std::uint64_t allocated_bytes_below(const std::filesystem::path& path);

// Makes created, renamed and removed names of the folder survive a power cut.
[[nodiscard]] Status sync_folder(const std::filesystem::path& path);

// Not an error if there is no such file.
[[nodiscard]] Status remove_file(const std::filesystem::path& path);

// Makes a file (0600) with this content unless there is one already; whole, or not at all. True if
// it was made.
[[nodiscard]] Result<bool> create_file_once(const std::filesystem::path& path,
                                            const std::string& content);

// Puts a file (0600) with this content in the place of the one that is there, if one is: whole, or
// not at all, also at a power cut. REQUIRES: one writer of this path at a time.
[[nodiscard]] Status replace_private_file(const std::filesystem::path& path,
                                          const std::string& content);

// A small private file. kNotFound; kBadMemory if it is a link, not a file, somebody else's or open
// to others.
[[nodiscard]] Result<std::string> read_private_file(const std::filesystem::path& path,
                                                    std::uint64_t max_bytes);

// Asks the system to have the folder's files in memory soon, at most `max_bytes` of them.
void prefetch_files(const std::filesystem::path& path, std::uint64_t max_bytes);

// Takes the file out of the system's page cache, as after a restart of the machine; for
// measurements.
void drop_cached_file(const std::filesystem::path& path);

// Which folder a path leads to, to notice that it was removed or replaced. {0, 0}: none.
struct FolderIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FolderIdentity&, const FolderIdentity&) = default;
};
FolderIdentity folder_identity(const std::filesystem::path& path);

// A lock that one owner can hold at a time, among all processes; given back with the object or the
// process.
class FolderLock {
 public:
  // kOverloaded with the other process if one holds it; kIo if the file cannot be made. The file
  // holds the owner's process id, for people.
  [[nodiscard]] static Result<FolderLock> take(const std::filesystem::path& file);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace locket
