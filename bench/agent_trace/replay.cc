#include "agent_trace/replay.h"

#include <algorithm>
#include <cmath>

#include "cache/kv_layout.h"
#include "cache/snapshot_policy.h"

namespace locket::agent_trace {
namespace {

using cache::kNoNode;
using cache::kTokensPerPage;
using cache::NodeId;

constexpr auto kPage = static_cast<std::size_t>(kTokensPerPage);
// Asked for beside a page: more than what its node takes.
constexpr std::uint64_t kNodeRoom = 2048;

// V4-Flash: 43 windows of 128 rows of 584 bytes. At a page boundary no block is open, but each of
// 21 compressors still needs the first halves of its last four rows, values and scores, of 512
// floats for the rows and 128 for the index keys.
constexpr std::uint64_t kFlashSnapshot =
    std::uint64_t{43} * 128 * 584 + std::uint64_t{21} * 4 * 2 * (512 + 128) * sizeof(float);
// V4.1: 20 windows of 128 rows of 528 bytes.
constexpr std::uint64_t kV41Snapshot = std::uint64_t{20} * 128 * 528;

}  // namespace

std::uint64_t RowKind::page_bytes() const {
  return static_cast<std::uint64_t>(std::llround(bytes_per_token * kTokensPerPage));
}

// V4-Flash goes on only at whole pages (a row of 128 tokens is formed at once), through all 43
// layers. V1 needs the last token of the prompt again for its logits, as V4-Flash does.
std::vector<RowKind> row_kinds() {
  return {{.name = "V4.1",
           .bytes_per_token = 890,
           .snapshot_bytes = kV41Snapshot,
           .geometry = {.window = 128, .encoder_layers = 20, .group = 2},
           .replayed_tail = 128},
          {.name = "V4-Flash",
           .bytes_per_token = 21 * (584 + 68) / 4.0 + 20 * 584 / 128.0,
           .snapshot_bytes = kFlashSnapshot,
           .geometry = {.window = 128, .encoder_layers = 43, .group = 128},
           .replayed_tail = 1},
          {.name = "V1",
           .bytes_per_token = 95 * 2 * 8 * 128 * 2,
           .snapshot_bytes = 0,
           .geometry = {.window = 1, .encoder_layers = 0, .group = 1},
           .replayed_tail = 1}};
}

Replay::Replay(const Trace& trace, const RowKind& kind, std::optional<std::uint64_t> budget)
    : trace_(trace),
      kind_(kind),
      budget_(budget),
      tree_({.page_bytes = kind.page_bytes(),
             .snapshot_bytes = kind.snapshot_bytes,
             .restart_tokens = kind.geometry.encoder_reach()}),
      snapshot_(std::make_shared<const tensor::AlignedBuffer>()) {
  root_ = tree_.root(cache::root_point({}));
}

std::int64_t Replay::serve(const Request& request) {
  tokens_.clear();
  append_tokens(trace_.options.seed, request.prompt, tokens_);
  Found found = look_up();
  const std::size_t found_pages = found.match.pages.size();
  append_tokens(trace_.options.seed, request.answer, tokens_);
  tokens_.pop_back();  // the last token of an answer is never read
  drop_grown_tail(found);
  const std::vector<NodeId> pages = keep_pages(found, found_pages);
  keep_snapshots(request, found, pages);
  for (const NodeId node : found.pinned) tree_.unpin(node);
  count(request, found);
  return found.plan.write_from;
}

Replay::Found Replay::look_up() {
  Found found = {.match = tree_.find(root_, tokens_), .plan = {}, .pinned = {}};
  std::vector<std::int64_t> snapshots;
  for (const NodeId page : found.match.pages) {
    if (tree_.node(page).snapshot) snapshots.push_back(tree_.node(page).end.position);
  }
  const auto prompt_tokens = static_cast<std::int64_t>(tokens_.size());
  found.plan =
      cache::make_replay_plan({.prompt_tokens = prompt_tokens,
                               .stored_tokens = found.match.tokens,
                               .decoder_tokens = std::min(prompt_tokens, kind_.replayed_tail),
                               .snapshots = snapshots},
                              kind_.geometry);
  if (!found.match.pages.empty()) pin(found, found.match.pages.back());
  if (found.match.parting != kNoNode) pin(found, found.match.parting);
  if (found.plan.uses_snapshot) {
    pin(found, found.match.pages[static_cast<std::size_t>(found.plan.start) / kPage - 1]);
  }
  for (const NodeId node : found.pinned) tree_.touch(node, ++now_);
  return found;
}

void Replay::pin(Found& found, NodeId node) {
  tree_.pin(node);
  found.pinned.push_back(node);
}

// A tail that goes on in this sequence is part of its new page.
void Replay::drop_grown_tail(Found& found) {
  const NodeId tail = found.match.parting;
  if (tail == kNoNode) return;
  const auto& held = tree_.node(tail).tokens;
  const bool is_grown = held.size() < kPage &&
                        static_cast<std::size_t>(found.match.parting_tokens) == held.size() &&
                        found.match.tokens < static_cast<std::int64_t>(tokens_.size());
  if (!is_grown) return;
  tree_.unpin(tail);
  std::erase(found.pinned, tail);
  remove_page(tail);
}

std::vector<NodeId> Replay::keep_pages(Found& found, std::size_t prompt_pages) {
  std::vector<NodeId> pages = found.match.pages;
  std::span<const std::int32_t> rest = std::span(tokens_).subspan(prompt_pages * kPage);
  NodeId at = pages.empty() ? root_ : pages.back();
  while (rest.size() >= kPage) {
    const std::span<const std::int32_t> page = rest.first(kPage);
    const NodeId known = tree_.find_child(at, page);
    at = known == kNoNode ? add_page(at, page) : known;
    if (at == kNoNode) {
      tally_.left_out_pages += static_cast<std::int64_t>(rest.size() / kPage);
      return pages;
    }
    pin(found, at);
    tree_.touch(at, ++now_);
    pages.push_back(at);
    rest = rest.subspan(kPage);
  }
  const auto group = static_cast<std::size_t>(kind_.geometry.group);
  keep_tail(at, rest.first(rest.size() / group * group));
  return pages;
}

void Replay::keep_tail(NodeId parent, std::span<const std::int32_t> tokens) {
  if (tokens.empty()) return;
  for (const auto& [name, child] : tree_.node(parent).children) {
    const auto& held = tree_.node(child).tokens;
    if (held.size() >= tokens.size() &&
        std::ranges::equal(tokens, std::span(held).first(tokens.size()))) {
      return;
    }
  }
  const NodeId tail = add_page(parent, tokens);
  if (tail != kNoNode) tree_.touch(tail, ++now_);
}

void Replay::keep_snapshots(const Request& request, const Found& found,
                            const std::vector<NodeId>& pages) {
  if (kind_.snapshot_bytes == 0) return;
  const std::set<std::int64_t> wanted =
      cache::stored_boundaries({.prompt_tokens = count_tokens(request.prompt),
                                .system_tokens = request.system_tokens,
                                .total_tokens = static_cast<std::int64_t>(tokens_.size()),
                                .window = kind_.geometry.window});
  trim_snapshots(pages, wanted);
  for (const std::int64_t boundary : wanted) {
    const auto page = static_cast<std::size_t>(boundary / kTokensPerPage);
    if (boundary < found.plan.exact_from || page > pages.size()) continue;
    const NodeId node = pages[page - 1];
    if (tree_.node(node).snapshot || !make_room(kind_.snapshot_bytes)) continue;
    tree_.set_snapshot(node, snapshot_);
    snapshots_ += 1;
  }
}

// Of those that this turn does not ask for, the newest few stay, and the spaced ones.
void Replay::trim_snapshots(const std::vector<NodeId>& pages,
                            const std::set<std::int64_t>& wanted) {
  constexpr std::int64_t kSpacing = cache::kPagesPerSpacedSnapshot * kTokensPerPage;
  std::int64_t newest = 0;
  for (std::size_t i = pages.size(); i-- > 0;) {
    const cache::TreeNode& node = tree_.node(pages[i]);
    const std::int64_t position = node.end.position;
    if (!node.snapshot || wanted.contains(position) || position % kSpacing == 0) continue;
    if (++newest > cache::kNewestSnapshots) remove_snapshot(pages[i]);
  }
}

NodeId Replay::add_page(NodeId parent, std::span<const std::int32_t> tokens) {
  if (!make_room(kind_.page_bytes() + kNodeRoom)) return kNoNode;
  const NodeId page = tree_.add(parent, tokens, static_cast<cache::PageId>(pages_));
  if (page == kNoNode) return kNoNode;
  pages_ += 1;
  held_tokens_ += static_cast<std::int64_t>(tokens.size());
  if (budget_ && used_bytes() > *budget_) tally_.times_over_budget += 1;
  return page;
}

bool Replay::make_room(std::uint64_t bytes) {
  if (!budget_) return true;
  while (used_bytes() + bytes > *budget_) {
    const std::optional<cache::TreeVictim> victim = tree_.choose_victim(now_);
    if (!victim) return false;
    if (victim->what == cache::TreeVictim::What::kSnapshot) {
      remove_snapshot(victim->node);
      tally_.evicted_snapshots += 1;
    } else {
      remove_page(victim->node);
      tally_.evicted_pages += 1;
    }
  }
  return true;
}

void Replay::remove_page(NodeId node) {
  const cache::TreeNode removed = tree_.remove(node);
  pages_ -= 1;
  if (removed.snapshot) snapshots_ -= 1;
  held_tokens_ -= static_cast<std::int64_t>(removed.tokens.size());
}

void Replay::remove_snapshot(NodeId node) {
  tree_.take_snapshot(node);
  snapshots_ -= 1;
}

std::uint64_t Replay::used_bytes() const {
  return pages_ * kind_.page_bytes() + snapshots_ * kind_.snapshot_bytes + tree_.node_bytes();
}

void Replay::count(const Request& request, const Found& found) {
  const BilledTokens tokens = {.prompt = count_tokens(request.prompt),
                               .hit = found.plan.write_from,
                               .replayed = found.plan.replayed_tokens(),
                               .answer = count_tokens(request.answer)};
  tally_.requests += 1;
  tally_.prompt_tokens += tokens.prompt;
  tally_.hit_tokens += tokens.hit;
  tally_.replayed_tokens += tokens.replayed;
  tally_.answer_tokens += tokens.answer;
  tally_.bill.add(request.time, tokens);
  tally_.end_tokens = held_tokens_;
  if (budget_ && used_bytes() > *budget_) tally_.times_over_budget += 1;
  if (tally_.evicted_pages + tally_.left_out_pages == 0) return;
  full_requests_ += 1;
  full_token_sum_ += static_cast<double>(held_tokens_);
  tally_.full_tokens = full_token_sum_ / static_cast<double>(full_requests_);
}

Tally replay_trace(const Trace& trace, const RowKind& kind, std::optional<std::uint64_t> budget,
                   const std::vector<std::int64_t>& ideal) {
  Replay replay(trace, kind, budget);
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const std::int64_t hit = replay.serve(trace.requests[i]);
    const std::int64_t group = kind.geometry.group;
    if (hit >= ideal[i] / group * group) replay.tally().whole_hits += 1;
  }
  return replay.tally();
}

std::vector<std::int64_t> ideal_hits(const Trace& trace) {
  const RowKind to_the_token = {.name = "ideal",
                                .bytes_per_token = 1,
                                .geometry = {.window = 1, .encoder_layers = 0, .group = 1},
                                .replayed_tail = 1};
  std::vector<std::int64_t> hits;
  Replay replay(trace, to_the_token, std::nullopt);
  for (const Request& request : trace.requests) hits.push_back(replay.serve(request));
  return hits;
}

}  // namespace locket::agent_trace
