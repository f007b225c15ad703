// RocksDB's file system with StorageFaults asked before each operation. For tests.
#pragma once

#include <memory>
#include <rocksdb/file_system.h>

#include "cache/storage_faults.h"

namespace locket::cache {

std::shared_ptr<rocksdb::FileSystem> make_record_file_system(std::shared_ptr<StorageFaults> faults);

}  // namespace locket::cache
