#include "agent_trace/report.h"

#include <algorithm>
#include <fmt/format.h>

namespace locket::agent_trace {
namespace {

double millions(double value) { return value / 1e6; }
double millions(std::int64_t value) { return millions(static_cast<double>(value)); }

double mean_prompt(const Trace& trace) {
  double tokens = 0;
  for (const Request& request : trace.requests) {
    tokens += static_cast<double>(count_tokens(request.prompt));
  }
  return tokens / static_cast<double>(std::max<std::size_t>(1, trace.requests.size()));
}

// Tokens in memory while it is full; as they are at the end if it never was.
double held_tokens(const Tally& tally) {
  return tally.full_tokens > 0 ? tally.full_tokens : static_cast<double>(tally.end_tokens);
}

bool was_full(const Tally& tally) { return tally.full_tokens > 0; }

}  // namespace

std::string budget_text(std::uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double size = static_cast<double>(bytes) / kMiB;
  return size < 1024 ? fmt::format("{:g} MiB", size) : fmt::format("{:g} GiB", size / 1024);
}

std::string describe_traffic(const Trace& trace) {
  const TrafficOptions& options = trace.options;
  double answers = 0;
  std::int64_t longest = 0;
  for (const Request& request : trace.requests) {
    answers += static_cast<double>(count_tokens(request.answer));
    longest = std::max(longest, count_tokens(request.prompt));
  }
  const double prompts = mean_prompt(trace);
  const auto requests = static_cast<double>(std::max<std::size_t>(1, trace.requests.size()));
  return fmt::format(
      "traffic: seed {}, {} days, {} users, {} sessions, {} sub-agents, {} branches, {} summaries, "
      "{} long pauses\n"
      "{} requests: {:.0f} prompt tokens in the mean ({} at most), {:.0f} answer tokens, {:.0f} : "
      "1\n",
      options.seed, options.days, options.users, trace.sessions, trace.sub_agents, trace.branches,
      trace.compactions, trace.long_pauses, trace.requests.size(), prompts, longest,
      answers / requests, prompts * requests / std::max(1.0, answers));
}

std::string describe_kinds(const std::vector<RowKind>& kinds) {
  std::string text;
  for (const RowKind& kind : kinds) {
    text += fmt::format(
        "{:<9} {:>10.2f} bytes a token, {:>10} a page, {:>9} a snapshot, cold start "
        "{} tokens\n",
        kind.name, kind.bytes_per_token, kind.page_bytes(), kind.snapshot_bytes,
        kind.geometry.encoder_reach());
  }
  return text;
}

std::string table(const Results& results) {
  std::string text =
      fmt::format("{:>8}  {:<9} {:>7} {:>7} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "budget",
                  "rows", "hit %", "whole %", "recomputed", "replayed", "evicted", "in memory",
                  "bill $", "strict $", "without $");
  text += fmt::format("{:>8}  {:<9} {:>7} {:>7} {:>11} {:>9} {:>9} {:>9}\n", "", "", "tokens",
                      "requests", "M tokens", "M tokens", "pages", "M tokens");
  for (std::size_t budget = 0; budget < results.budgets.size(); ++budget) {
    for (std::size_t kind = 0; kind < results.kinds.size(); ++kind) {
      const Tally& tally = results.tallies[kind][budget];
      text += fmt::format(
          "{:>8}  {:<9} {:>7.2f} {:>7.2f} {:>11.2f} {:>9.2f} {:>9} {:>9.3f} {:>9.2f} {:>9.2f} "
          "{:>9.2f}\n",
          budget_text(results.budgets[budget]), results.kinds[kind].name, 100 * tally.hit_rate(),
          100 * tally.whole_hit_rate(), millions(tally.recomputed_tokens()),
          millions(tally.replayed_tokens), tally.evicted_pages, millions(held_tokens(tally)),
          tally.bill.dollars, tally.bill.dollars_strict, tally.bill.dollars_without);
    }
  }
  text += fmt::format("a memory without limit: {:.2f} % of the tokens\n", 100 * results.ceiling);
  return text;
}

std::string csv(const Results& results) {
  std::string text =
      "rows,budget_bytes,bytes_per_token,snapshot_bytes,requests,whole_hits,prompt_tokens,"
      "hit_tokens,hit_rate,recomputed_tokens,replayed_tokens,answer_tokens,evicted_pages,"
      "evicted_snapshots,left_out_pages,tokens_in_memory,was_full,dollars,dollars_strict,"
      "dollars_without\n";
  for (std::size_t kind = 0; kind < results.kinds.size(); ++kind) {
    for (std::size_t budget = 0; budget < results.budgets.size(); ++budget) {
      const RowKind& rows = results.kinds[kind];
      const Tally& tally = results.tallies[kind][budget];
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{:.6f},", rows.name, results.budgets[budget],
                      rows.bytes_per_token, rows.snapshot_bytes, tally.requests, tally.whole_hits,
                      tally.prompt_tokens, tally.hit_tokens, tally.hit_rate());
      text += fmt::format("{},{},{},{},{},{},{:.0f},{:d},{:.2f},{:.2f},{:.2f}\n",
                          tally.recomputed_tokens(), tally.replayed_tokens, tally.answer_tokens,
                          tally.evicted_pages, tally.evicted_snapshots, tally.left_out_pages,
                          held_tokens(tally), was_full(tally), tally.bill.dollars,
                          tally.bill.dollars_strict, tally.bill.dollars_without);
    }
  }
  return text;
}

std::string compare_content(const Results& results) {
  std::string text;
  const RowKind& first = results.kinds.front();
  for (std::size_t kind = 1; kind < results.kinds.size(); ++kind) {
    const RowKind& other = results.kinds[kind];
    text += fmt::format("the same memory, {} against {} ({:.2f} times the bytes a token):\n",
                        first.name, other.name, other.bytes_per_token / first.bytes_per_token);
    for (std::size_t budget = 0; budget < results.budgets.size(); ++budget) {
      const Tally& ours = results.tallies[0][budget];
      const Tally& theirs = results.tallies[kind][budget];
      text += fmt::format("{:>8}: {:.2f} times the content{}, hit rate {:.2f} % against {:.2f} %\n",
                          budget_text(results.budgets[budget]),
                          held_tokens(ours) / std::max(1.0, held_tokens(theirs)),
                          was_full(ours) && was_full(theirs) ? "" : " (not both full)",
                          100 * ours.hit_rate(), 100 * theirs.hit_rate());
    }
  }
  return text;
}

}  // namespace locket::agent_trace
