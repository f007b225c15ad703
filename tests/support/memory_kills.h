// kill -9, again and again, while a process writes its memory: every next process must open the
// folder, find every turn that was said to be on disk, and give the same bits as a run without
// memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/generations/v41.h"

namespace locket::test_support {

struct KillOptions {
  std::uint64_t seed = 1;
  std::int64_t kills = 50;
  std::filesystem::path directory;
};

struct KillReport {
  std::int64_t kills = 0;
  std::int64_t turns = 0;    // that were on disk when their process was killed
  std::int64_t checks = 0;   // turns read again and compared
  std::int64_t crashes = 0;  // processes that ended otherwise than by the kill
  std::int64_t lost = 0;     // turns that should have been there
  std::int64_t wrong = 0;    // logits that differ

  bool is_good() const { return crashes == 0 && lost == 0 && wrong == 0; }
  std::string text() const;
};

// REQUIRES: the calling process has one thread.
KillReport run_kills(const model::V41Model& model, const KillOptions& options);

}  // namespace locket::test_support
