// A private file of records, one behind the other, each under a checksum; docs/formats/answers.md
// is its format. A record is whole or not there: what a crash left half written, and what was
// damaged later, is dropped and counted when the file is opened, and is never an error. Records
// survive the end of the process in any form; the last ones may be lost with the power.
//
// One process has a file open at a time. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/append_file.h"
#include "base/folder.h"
#include "base/result.h"

namespace locket::service {

class RecordFile {
 public:
  // Opens the file, or makes it, and hands each whole record to `on_record`, oldest first.
  // kOverloaded if another process has it open; kBadMemory if it is a link, somebody else's, open
  // to others or above kMostBytes; kIo. REQUIRES: the folder is there, and private.
  [[nodiscard]] static Result<RecordFile> open(
      const std::filesystem::path& path, const std::function<void(std::string_view)>& on_record);

  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  // What a record takes beside its payload.
  static constexpr std::size_t kFrameBytes = 24;

  // Upon an error the file is what it was.
  [[nodiscard]] Status append(std::string_view payload);
  // Puts these records in place of all, at once.
  [[nodiscard]] Status rewrite(const std::vector<std::string_view>& payloads);

  std::uint64_t size_bytes() const { return file_.size(); }
  // Records dropped when it was opened; a tail that cannot be told into records is one.
  std::size_t dropped() const { return dropped_; }

 private:
  RecordFile(FolderLock lock, AppendFile file) : lock_(std::move(lock)), file_(std::move(file)) {}

  FolderLock lock_;
  AppendFile file_;
  std::size_t dropped_ = 0;
};

}  // namespace locket::service
