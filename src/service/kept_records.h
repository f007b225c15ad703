// Values under names, as many as a byte budget holds: the one whose last use is longest ago goes
// first. In memory, and in a file too if there is to be one, from which they come back after the
// process has ended in any way; those kept first then count as those used first. A file that can no
// longer be written costs only that.
//
// Thread-safe. keep() writes to disk: it is not for the thread that runs the model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace locket::service {

struct KeptOptions {
  std::filesystem::path memory = {};  // the memory's folder, private and there; empty: no file
  // What the values hang on: of another model's there is nothing here. Any text.
  std::string model = {};
  std::size_t max_bytes = std::size_t{64} << 20;  // at most kMostKeptBytes
};

inline constexpr std::size_t kMostKeptBytes = std::size_t{1} << 28;

struct KeptUse {
  std::size_t values = 0;
  std::size_t bytes = 0;
  std::size_t evicted = 0;         // since the start
  std::size_t dropped = 0;         // damaged in the file
  std::size_t write_failures = 0;  // values that are in memory only
};

class KeptRecords {
 public:
  // `kind` is the ending of the file's name. Errors as RecordFile::open(), and kBadRequest for a
  // budget above kMostKeptBytes; without a file there is no other error.
  [[nodiscard]] static Result<KeptRecords> open(const KeptOptions& options, std::string_view kind);
  KeptRecords(KeptRecords&&) noexcept;
  KeptRecords& operator=(KeptRecords&&) noexcept;
  ~KeptRecords();

  // A value that any of `names` had before is forgotten, under all of its names. One that is larger
  // than the whole budget is not kept. REQUIRES: names not empty.
  void keep(const std::vector<std::string>& names, std::string value);
  // Null: there is none. Counts as a use.
  std::shared_ptr<const std::string> find(const std::string& name);

  KeptUse use() const;

 private:
  struct State;
  explicit KeptRecords(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A name for what one tenant has under `id`, which no other tenant's is.
std::string tenant_name(std::string_view tenant, std::string_view id);

}  // namespace locket::service
