// Which pages are remembered, in memory (PrefixMemory::survey) or on disk, for people who look at
// the whole: names and sizes, never tokens. Plain data and a free function; survey_disk() may run
// beside everything else that a DiskStore does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/disk_store.h"
#include "cache/page_name.h"

namespace locket::cache {

struct SurveyedPage {
  PageName name = {};
  PageName parent = {};         // a root if begin is 0
  std::int64_t begin = 0;       // position of its first token
  std::int64_t tokens = 0;      // of its own
  std::uint64_t bytes = 0;      // with the snapshot at its end
  double last_use_seconds = 0;  // wall clock; 0: only what hangs below it has been used
  bool is_pinned = false;       // on disk, by a user
  bool is_in_use = false;       // in memory, by a sequence that runs
};

struct MemorySurvey {
  std::vector<SurveyedPage> pages;  // in no order
  bool is_complete = true;          // false: there are more pages than were wanted
};

// Reads all records of the store, in proportion to what is stored.
MemorySurvey survey_disk(DiskStore& store, std::size_t most_pages);

}  // namespace locket::cache
