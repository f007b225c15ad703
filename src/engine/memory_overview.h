// The tree of remembered prefixes for people: what is in memory and what is on disk put together,
// pages between two forks drawn together into one node, and only as many nodes as a page can show.
// Holds names (digests) and sizes, never tokens. A MemoryWatch looks again from time to time on a
// thread of its own, so that who asks never waits; it is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/task_thread.h"
#include "cache/memory_survey.h"
#include "cache/prefix_memory.h"

namespace locket::engine {

inline constexpr std::size_t kMostOverviewNodes = 500;

// Pages of one prefix that lie in the same place and have no fork between them.
struct OverviewNode {
  std::string name;              // the first digits of its last page's name
  std::int64_t parent = -1;      // index of a node before it; -1: its first token is a prompt's
  std::int64_t tokens = 0;       // of its own
  std::uint64_t ram_bytes = 0;   // of its own
  std::uint64_t disk_bytes = 0;  // of its own
  bool is_pinned = false;        // by a user: its last page is never evicted from disk
  bool is_in_use = false;        // it, or what hangs below, by a sequence that runs
  double last_use_seconds = 0;   // wall clock, of all below it, too; 0: unknown
};

struct MemoryOverview {
  std::uint64_t version = 0;        // grows with every look
  std::vector<OverviewNode> nodes;  // those with the most bytes in and below them, largest first
  std::size_t nodes_left_out = 0;   // smaller ones
  bool is_complete = true;          // false: there are more pages than were looked at
};

// Pure. Pages whose way to the root is not there are left out.
MemoryOverview draw_overview(const cache::MemorySurvey& ram, const cache::MemorySurvey& disk,
                             std::size_t most_nodes = kMostOverviewNodes);

class MemoryWatch {
 public:
  // `memory` may be null (nothing is kept) and must outlive the watch.
  explicit MemoryWatch(cache::PrefixMemory* memory) : memory_(memory) {}

  // The last picture, at once; empty, version 0, before the first one is there. Starts a new look
  // if that picture has become old.
  std::shared_ptr<const MemoryOverview> latest();
  // Returns when no look is under way.
  void wait() { thread_.drain(); }

 private:
  void look();

  cache::PrefixMemory* memory_;
  std::mutex mutex_;
  std::shared_ptr<const MemoryOverview> latest_ = std::make_shared<MemoryOverview>();
  double next_look_ = 0;  // monotonic
  bool is_looking_ = false;
  TaskThread thread_;  // must go first
};

}  // namespace locket::engine
