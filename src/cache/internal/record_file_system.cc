#include "cache/internal/record_file_system.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace locket::cache {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// RocksDB makes files that all may read; the folder keeps others out, this does so twice.
void make_private(const std::string& path) {
  using std::filesystem::perms;
  std::error_code ignored;
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write, ignored);
}

IOStatus status_of(const StorageFault& fault, const std::string& name) {
  if (fault.error == ENOSPC) return IOStatus::NoSpace(name, std::strerror(fault.error));
  return IOStatus::IOError(name, std::strerror(fault.error));
}

class FaultyWritableFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWritableFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name,
                     std::shared_ptr<StorageFaults> faults)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        faults_(std::move(faults)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const StorageFault fault = faults_->hook(StorageOperation::kAppend, name_, data.size());
    if (fault.error == 0) return FSWritableFileOwnerWrapper::Append(data, options, debug);
    const Slice part(data.data(), std::min<std::size_t>(data.size(), fault.bytes_done));
    FSWritableFileOwnerWrapper::Append(part, options, debug).PermitUncheckedError();
    return status_of(fault, name_);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const StorageFault fault = faults_->hook(StorageOperation::kSync, name_, 0);
    if (fault.error != 0) return status_of(fault, name_);
    return FSWritableFileOwnerWrapper::Sync(options, debug);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  std::string name_;
  std::shared_ptr<StorageFaults> faults_;
};

class FaultyRandomAccessFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyRandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string name,
                         std::shared_ptr<StorageFaults> faults)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        faults_(std::move(faults)) {}

  IOStatus Read(std::uint64_t offset, std::size_t bytes, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    const StorageFault fault = faults_->hook(StorageOperation::kRead, name_, bytes);
    if (fault.error != 0) return status_of(fault, name_);
    return FSRandomAccessFileOwnerWrapper::Read(offset, bytes, options, result, scratch, debug);
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    for (std::size_t i = 0; i < count; ++i) {
      rocksdb::FSReadRequest& request = requests[i];
      request.status =
          Read(request.offset, request.len, options, &request.result, request.scratch, debug);
    }
    return IOStatus::OK();
  }

 private:
  std::string name_;
  std::shared_ptr<StorageFaults> faults_;
};

class RecordFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit RecordFileSystem(std::shared_ptr<StorageFaults> faults)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), faults_(std::move(faults)) {}

  const char* Name() const override { return "LocketRecordFileSystem"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    const StorageFault fault = ask(StorageOperation::kCreate, path);
    if (fault.error != 0) return status_of(fault, name_of(path));
    IOStatus status = FileSystemWrapper::NewWritableFile(path, options, result, debug);
    if (!status.ok()) return status;
    make_private(path);
    if (faults_ == nullptr) return status;
    *result = std::make_unique<FaultyWritableFile>(std::move(*result), name_of(path), faults_);
    return status;
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* debug) override {
    IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, result, debug);
    if (!status.ok() || faults_ == nullptr) return status;
    *result = std::make_unique<FaultyRandomAccessFile>(std::move(*result), name_of(path), faults_);
    return status;
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    const StorageFault fault = ask(StorageOperation::kRemove, path);
    if (fault.error != 0) return status_of(fault, name_of(path));
    return FileSystemWrapper::DeleteFile(path, options, debug);
  }
  IOStatus LockFile(const std::string& path, const IOOptions& options, rocksdb::FileLock** lock,
                    IODebugContext* debug) override {
    IOStatus status = FileSystemWrapper::LockFile(path, options, lock, debug);
    if (status.ok()) make_private(path);
    return status;
  }

 private:
  StorageFault ask(StorageOperation operation, const std::string& path) const {
    if (faults_ == nullptr) return {};
    return faults_->hook(operation, name_of(path), 0);
  }

  std::shared_ptr<StorageFaults> faults_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_record_file_system(
    std::shared_ptr<StorageFaults> faults) {
  return std::make_shared<RecordFileSystem>(std::move(faults));
}

}  // namespace locket::cache
