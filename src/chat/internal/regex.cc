#include "chat/internal/regex.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"
#include "chat/internal/regex_tree.h"

namespace locket::chat {
namespace {

class RegexBuilder {
 public:
  RegexBuilder() {
    out_.start = add_state();
    out_.end = add_state();
  }

  void add_branch(const RegexBranch& branch) {
    RegexNode anything;
    anything.kind = RegexNode::Kind::kSet;
    anything.set = CharSet::all();
    std::uint32_t at = add_state();
    out_.states[out_.start].jumps.push_back(at);
    if (!branch.begins_text) add(anything, at, at);
    at = add(branch.node, at);
    if (!branch.ends_text) add(anything, at, at);
    out_.states[at].jumps.push_back(out_.end);
  }

  bool is_full() const { return out_.states.size() > kMaxPatternStates; }
  CharAutomaton take() { return std::move(out_); }

 private:
  std::uint32_t add_state() {
    out_.states.emplace_back();
    return static_cast<std::uint32_t>(out_.states.size() - 1);
  }

  std::uint32_t add(const RegexNode& node, std::uint32_t from) {
    const std::uint32_t to = add_state();
    add(node, from, to);
    return to;
  }

  // Depth is bounded by the reader's. When it is full the rest is left out; the caller refuses.
  void add(const RegexNode& node, std::uint32_t from, std::uint32_t to) {
    if (is_full()) return;
    switch (node.kind) {
      case RegexNode::Kind::kSet:
        out_.states[from].edges.push_back({set_index(node.set), to});
        return;
      case RegexNode::Kind::kSequence:
        for (const RegexNode& part : node.parts) from = add(part, from);
        out_.states[from].jumps.push_back(to);
        return;
      case RegexNode::Kind::kChoice:
        for (const RegexNode& part : node.parts) add(part, from, to);
        return;
      case RegexNode::Kind::kRepeat:
        add_repeat(node, from, to);
        return;
      case RegexNode::Kind::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  void add_repeat(const RegexNode& node, std::uint32_t from, std::uint32_t to) {
    const RegexNode& part = node.parts[0];
    for (std::size_t count = 0; count < node.min && !is_full(); ++count) from = add(part, from);
    if (node.max == kWithoutEnd) {
      const std::uint32_t loop = add_state();
      out_.states[from].jumps.push_back(loop);
      const std::uint32_t behind = add(part, loop);
      out_.states[behind].jumps.push_back(loop);
      out_.states[loop].jumps.push_back(to);
      return;
    }
    for (std::size_t count = node.min; count < node.max && !is_full(); ++count) {
      out_.states[from].jumps.push_back(to);
      from = add(part, from);
    }
    out_.states[from].jumps.push_back(to);
  }

  std::uint32_t set_index(const CharSet& set) {
    const auto found = std::find(out_.sets.begin(), out_.sets.end(), set);
    const auto index = static_cast<std::size_t>(found - out_.sets.begin());
    if (index == out_.sets.size()) out_.sets.push_back(set);
    return static_cast<std::uint32_t>(index);
  }

  CharAutomaton out_;
};

}  // namespace

Result<CharAutomaton> compile_regex(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail(ErrorCode::kBadRequest, fmt::format("has {} bytes; at most {} are allowed",
                                                    pattern.size(), kMaxPatternBytes));
  }
  LOCKET_TRY(const std::vector<RegexBranch> branches, parse_regex(pattern));
  RegexBuilder builder;
  for (const RegexBranch& branch : branches) builder.add_branch(branch);
  if (builder.is_full()) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("repeats its parts to more than {} states", kMaxPatternStates));
  }
  return builder.take();
}

}  // namespace locket::chat
