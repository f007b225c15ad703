// Replays a trace against the prefix tree under a byte budget, as a server with that much memory
// for prefixes would: look up, pin what is found, let others go, keep what is new. Nothing is
// computed and no page is filled: the tree counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent_trace/prices.h"
#include "agent_trace/traffic.h"
#include "cache/prefix_tree.h"
#include "cache/replay_plan.h"

namespace locket::agent_trace {

// What a generation keeps per token, and what going on from it takes.
struct RowKind {
  std::string name;
  double bytes_per_token = 0;
  std::uint64_t snapshot_bytes = 0;  // windows at a page boundary; 0: nothing to restore
  cache::ReplayGeometry geometry;
  std::int64_t replayed_tail = 0;  // prompt tokens that are always computed again, at the end

  std::uint64_t page_bytes() const;
};
// V4.1, V4-Flash, V1.
std::vector<RowKind> row_kinds();

struct Tally {
  std::int64_t requests = 0;
  std::int64_t whole_hits = 0;  // found all that a memory without limit would have found
  std::int64_t prompt_tokens = 0;
  std::int64_t hit_tokens = 0;
  std::int64_t replayed_tokens = 0;  // of the hit tokens, computed again to go on
  std::int64_t answer_tokens = 0;
  std::int64_t evicted_pages = 0;
  std::int64_t evicted_snapshots = 0;
  std::int64_t left_out_pages = 0;  // there was no room for them
  std::int64_t times_over_budget = 0;
  double full_tokens = 0;  // tokens in memory, the mean over the requests since the first eviction
  std::int64_t end_tokens = 0;  // tokens in memory after the last request
  Bill bill;

  std::int64_t recomputed_tokens() const { return prompt_tokens - hit_tokens + replayed_tokens; }
  double hit_rate() const { return ratio(hit_tokens, prompt_tokens); }
  double whole_hit_rate() const { return ratio(whole_hits, requests); }

 private:
  static double ratio(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

class Replay {
 public:
  // No budget: nothing is ever evicted. `trace` must outlive the replay.
  Replay(const Trace& trace, const RowKind& kind, std::optional<std::uint64_t> budget);

  // Serves the next request of the trace; the tokens of its prompt that were found.
  std::int64_t serve(const Request& request);
  Tally& tally() { return tally_; }

 private:
  struct Found {
    cache::TreeMatch match;
    cache::ReplayPlan plan;
    std::vector<cache::NodeId> pinned;
  };

  Found look_up();
  void pin(Found& found, cache::NodeId node);
  void drop_grown_tail(Found& found);
  // Pages of the whole sequence, as many as there is room for.
  std::vector<cache::NodeId> keep_pages(Found& found, std::size_t prompt_pages);
  void keep_tail(cache::NodeId parent, std::span<const std::int32_t> tokens);
  void keep_snapshots(const Request& request, const Found& found,
                      const std::vector<cache::NodeId>& pages);
  void trim_snapshots(const std::vector<cache::NodeId>& pages,
                      const std::set<std::int64_t>& wanted);
  // kNoNode if there is no room.
  cache::NodeId add_page(cache::NodeId parent, std::span<const std::int32_t> tokens);
  bool make_room(std::uint64_t bytes);
  void remove_page(cache::NodeId node);
  void remove_snapshot(cache::NodeId node);
  std::uint64_t used_bytes() const;
  void count(const Request& request, const Found& found);

  const Trace& trace_;
  const RowKind& kind_;
  const std::optional<std::uint64_t> budget_;
  cache::PrefixTree tree_;
  cache::NodeId root_ = cache::kNoNode;
  std::shared_ptr<const tensor::AlignedBuffer> snapshot_;  // stands for all of them
  std::vector<std::int32_t> tokens_;                       // of the request being served
  std::uint64_t pages_ = 0;
  std::uint64_t snapshots_ = 0;
  std::int64_t held_tokens_ = 0;
  std::uint64_t now_ = 0;  // counts uses, as the memory of the engine does
  std::int64_t full_requests_ = 0;
  double full_token_sum_ = 0;
  Tally tally_;
};

// Serves the whole trace. `ideal`: per request, what a memory without limit finds.
Tally replay_trace(const Trace& trace, const RowKind& kind, std::optional<std::uint64_t> budget,
                   const std::vector<std::int64_t>& ideal);
// What a memory without limit finds per request, to the token.
std::vector<std::int64_t> ideal_hits(const Trace& trace);

}  // namespace locket::agent_trace
