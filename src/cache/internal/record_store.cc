#include "cache/internal/record_store.h"

#include <fmt/format.h>
#include <mutex>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <shared_mutex>
#include <utility>

#include "base/folder.h"
#include "base/worker_pool.h"
#include "cache/internal/record_file_system.h"

namespace locket::cache {
namespace {

// Fewer look-ups are not worth another thread.
constexpr std::size_t kKeysPerThread = 128;
constexpr std::size_t kWriteBufferBytes = std::size_t{2} << 20;
constexpr std::size_t kBlockCacheBytes = std::size_t{16} << 20;
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;
constexpr double kFilterBitsPerKey = 10;
constexpr int kFilesBeforeCompaction = 4;
// A table with a bad block is given up as a whole: small ones lose less.
constexpr std::uint64_t kTableBytes = std::uint64_t{4} << 20;
// Beyond this the system reads what is asked for.
constexpr std::uint64_t kPrefetchBytes = std::uint64_t{64} << 20;

class SilentLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

rocksdb::Options rocksdb_options(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = true;
  options.info_log = std::make_shared<SilentLogger>();
  options.max_open_files = -1;
  options.write_buffer_size = kWriteBufferBytes;
  options.max_write_buffer_number = 2;
  options.level0_file_num_compaction_trigger = kFilesBeforeCompaction;
  options.target_file_size_base = kTableBytes;
  options.max_background_jobs = 2;
  // Space that is reserved ahead would count for the quota and shrink only at the next start.
  options.allow_fallocate = false;
  options.max_manifest_file_size = std::uint64_t{1} << 20;
  options.recycle_log_file_num = 0;
  options.max_total_wal_size = 2 * kWriteBufferBytes;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.paranoid_checks = true;
  options.dump_malloc_stats = false;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.compression = rocksdb::kLZ4Compression;
  options.max_bgerror_resume_count = 0;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = kBlockBytes;
  // Tables that have not been merged yet overlap: without filters each would be searched.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Status status_of(const rocksdb::Status& status, const std::filesystem::path& folder,
                 const char* what) {
  if (status.ok()) return {};
  return fail(ErrorCode::kIo, fmt::format("cannot {} the records in {}: {}", what, folder.string(),
                                          status.ToString()));
}

rocksdb::Slice slice_of(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace

struct RecordStore::State {
  RecordStoreOptions options;
  std::unique_ptr<rocksdb::Env> env;
  rocksdb::Options rocksdb;
  std::unique_ptr<rocksdb::DB> db;
  mutable std::shared_mutex database_mutex;  // exclusive: `db` is replaced
  std::atomic<bool> was_rebuilt = false;
  std::atomic<bool> needs_reopen = false;
  mutable std::atomic<bool> is_damaged = false;  // a table or the log; one bad block hides others
  mutable std::atomic<std::uint64_t> read_errors = 0;

  rocksdb::Status open_database();
  Status open_for_writing();
  rocksdb::ReadOptions read_options() const;
  void count(const rocksdb::Status& status) const;
  void get_all(std::span<const std::string> keys,
               std::span<std::optional<std::string>> found) const;

  std::mutex pool_mutex;  // a pool takes one caller at a time
  std::unique_ptr<WorkerPool> pool;
};

rocksdb::Status RecordStore::State::open_database() {
  db.reset();
  if (!check_private_folder(options.folder)) {
    return rocksdb::Status::IOError(options.folder.string(), "is not a private folder");
  }
  rocksdb::DB* opened = nullptr;
  const std::string folder = options.folder.string();
  const bool is_reading = options.access == RecordStoreOptions::Access::kRead;
  rocksdb::Status status = is_reading
                               ? rocksdb::DB::OpenAsSecondary(rocksdb, folder, folder, &opened)
                               : rocksdb::DB::Open(rocksdb, folder, &opened);
  db.reset(opened);
  return status;
}

// Damage is repaired as far as RocksDB can; what it cannot read is given up: records can be made
// again, and payloads without records are found and freed.
Status RecordStore::State::open_for_writing() {
  LOCKET_TRY_STATUS(make_private_folder(options.folder));
  LOCKET_TRY_STATUS(check_private_folder(options.folder));
  rocksdb::Status status;
  if (!is_damaged) {
    status = open_database();
    if (status.ok() || status.IsNoSpace() || (status.IsIOError() && !status.IsPathNotFound())) {
      return status_of(status, options.folder, "open");
    }
  }
  db.reset();
  was_rebuilt = true;
  is_damaged = false;
  const std::string folder = options.folder.string();
  status = rocksdb::RepairDB(folder, rocksdb);
  if (status.ok()) status = open_database();
  std::error_code ignored;
  std::filesystem::remove_all(options.folder / "lost", ignored);
  if (status.ok()) return {};
  std::filesystem::remove_all(options.folder, ignored);
  LOCKET_TRY_STATUS(make_private_folder(options.folder));
  return status_of(open_database(), options.folder, "make");
}

rocksdb::ReadOptions RecordStore::State::read_options() const {
  rocksdb::ReadOptions read;
  read.verify_checksums = true;
  return read;
}

void RecordStore::State::get_all(std::span<const std::string> keys,
                                 std::span<std::optional<std::string>> found) const {
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db->MultiGet(read_options(), db->DefaultColumnFamily(), keys.size(), slices.data(), values.data(),
               statuses.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    count(statuses[i]);
    if (statuses[i].ok()) found[i] = values[i].ToString();
  }
}

void RecordStore::State::count(const rocksdb::Status& status) const {
  if (status.ok() || status.IsNotFound()) return;
  ++read_errors;
  if (status.IsCorruption()) is_damaged = true;
}

RecordStore::RecordStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordStore::~RecordStore() = default;

Result<std::unique_ptr<RecordStore>> RecordStore::open(const RecordStoreOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->env = rocksdb::NewCompositeEnv(make_record_file_system(options.faults));
  state->rocksdb = rocksdb_options(state->env.get());
  if (options.access == RecordStoreOptions::Access::kWrite) {
    LOCKET_TRY_STATUS(state->open_for_writing());
  } else {
    state->open_database().PermitUncheckedError();  // what is not there yet may come
  }
  prefetch_files(options.folder, kPrefetchBytes);
  return std::make_unique<RecordStore>(std::move(state));
}

std::optional<std::string> RecordStore::get(std::string_view key) const {
  std::string value;
  const std::shared_lock lock(state_->database_mutex);
  if (state_->db == nullptr) return std::nullopt;
  const rocksdb::Status status = state_->db->Get(state_->read_options(), slice_of(key), &value);
  state_->count(status);
  if (!status.ok()) return std::nullopt;
  return value;
}

std::vector<std::optional<std::string>> RecordStore::get_all(
    std::span<const std::string> keys) const {
  std::vector<std::optional<std::string>> found(keys.size());
  const std::shared_lock lock(state_->database_mutex);
  if (state_->db == nullptr) return found;
  const auto get_range = [&](std::size_t begin, std::size_t end) {
    state_->get_all(keys.subspan(begin, end - begin), std::span(found).subspan(begin, end - begin));
  };
  std::unique_lock pool_lock(state_->pool_mutex, std::try_to_lock);
  if (keys.size() < 2 * kKeysPerThread || !pool_lock.owns_lock()) {
    get_range(0, keys.size());
    return found;
  }
  if (state_->pool == nullptr) {
    state_->pool = std::make_unique<WorkerPool>(WorkerPool::hardware_threads());
  }
  state_->pool->parallel_for(keys.size(), kKeysPerThread, get_range);
  return found;
}

void RecordStore::scan(std::string_view prefix, const Visit& visit) const {
  const std::shared_lock lock(state_->database_mutex);
  if (state_->db == nullptr) return;
  rocksdb::ReadOptions read = state_->read_options();
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at(state_->db->NewIterator(read));
  for (at->Seek(slice_of(prefix)); at->Valid(); at->Next()) {
    if (!view_of(at->key()).starts_with(prefix)) break;
    if (!visit(view_of(at->key()), view_of(at->value()))) break;
  }
  state_->count(at->status());
}

Status RecordStore::write(const RecordBatch& batch) {
  if (state_->db == nullptr || needs_reopen()) LOCKET_TRY_STATUS(reopen());
  rocksdb::WriteBatch writes;
  for (const RecordBatch::Change& change : batch.changes) {
    const rocksdb::Status status =
        change.value ? writes.Put(change.key, *change.value) : writes.Delete(change.key);
    LOCKET_TRY_STATUS(status_of(status, state_->options.folder, "prepare"));
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Status status = state_->db->Write(options, &writes);
  state_->needs_reopen = !status.ok();
  state_->count(status);
  return status_of(status, state_->options.folder, "write");
}

bool RecordStore::needs_reopen() const { return state_->needs_reopen || state_->is_damaged; }

Status RecordStore::reopen() {
  const std::unique_lock lock(state_->database_mutex);
  state_->db.reset();
  state_->needs_reopen = true;
  LOCKET_TRY_STATUS(state_->open_for_writing());
  state_->needs_reopen = false;
  return {};
}

void RecordStore::catch_up() {
  if (state_->options.access != RecordStoreOptions::Access::kRead) return;
  {
    const std::shared_lock lock(state_->database_mutex);
    if (state_->db != nullptr && state_->db->TryCatchUpWithPrimary().ok()) return;
  }
  // The writer has made its files only now, or has made them anew.
  const std::unique_lock lock(state_->database_mutex);
  state_->open_database().PermitUncheckedError();
}

bool RecordStore::was_rebuilt() const { return state_->was_rebuilt; }
std::uint64_t RecordStore::read_errors() const { return state_->read_errors; }

}  // namespace locket::cache
