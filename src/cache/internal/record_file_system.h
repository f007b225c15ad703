// RocksDB's file system: its files are for the owner only, and StorageFaults, if there are any, are
// asked before each operation.
#pragma once

#include <memory>
#include <rocksdb/file_system.h>

#include "cache/storage_faults.h"

namespace locket::cache {

std::shared_ptr<rocksdb::FileSystem> make_record_file_system(std::shared_ptr<StorageFaults> faults);

}  // namespace locket::cache
