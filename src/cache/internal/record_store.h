// Small records, key to value, in order of their keys, in RocksDB: batches are atomic and synced.
// The only place, with record_file_system, that knows RocksDB. Keys and values are opaque bytes.
//
// One process opens it for writing; others open it for reading and see what is written as of the
// last catch_up(). A record that cannot be read counts as absent and is counted. Thread-safe, with
// one writer at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/storage_faults.h"

namespace locket::cache {

// Changes that take effect together.
struct RecordBatch {
  struct Change {
    std::string key;
    std::optional<std::string> value;  // absent: removed
  };
  std::vector<Change> changes;

  void put(std::string key, std::string value) {
    changes.push_back({std::move(key), std::move(value)});
  }
  void remove(std::string key) { changes.push_back({std::move(key), std::nullopt}); }
  bool is_empty() const { return changes.empty(); }
};

struct RecordStoreOptions {
  std::filesystem::path folder;
  enum class Access { kWrite, kRead } access = Access::kWrite;
  std::shared_ptr<StorageFaults> faults;
};

class RecordStore {
 public:
  // Writing: makes the folder's content if it is missing; records that are damaged beyond reading
  // are given up (was_rebuilt()); kIo if it cannot be written. Reading: never an error; what is not
  // there yet may come with catch_up().
  [[nodiscard]] static Result<std::unique_ptr<RecordStore>> open(const RecordStoreOptions& options);
  ~RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  std::optional<std::string> get(std::string_view key) const;
  // One entry per key.
  std::vector<std::optional<std::string>> get_all(std::span<const std::string> keys) const;
  // Calls visit(key, value) for all keys that begin with `prefix`, in order, until it returns
  // false. `visit` must not call the store.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  void scan(std::string_view prefix, const Visit& visit) const;

  // All of the batch, synced, or nothing that a look-up would see. After a failure the store wants
  // to be opened anew: what it holds then is as before the call or, rarely, as after it.
  [[nodiscard]] Status write(const RecordBatch& batch);
  // After a failed write, and when damage was met.
  bool needs_reopen() const;
  // For writing: closes and opens; look-ups wait.
  [[nodiscard]] Status reopen();
  // For reading: sees what has been written since.
  void catch_up();

  bool was_rebuilt() const;
  // Records that could not be read because their files are damaged or refuse.
  std::uint64_t read_errors() const;

  struct State;
  explicit RecordStore(std::unique_ptr<State> state);  // use open()

 private:
  std::unique_ptr<State> state_;
};

}  // namespace locket::cache
