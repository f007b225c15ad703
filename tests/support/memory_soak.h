// Random traffic against the memory, compared with runs that have none: conversations that grow,
// branch, are cut short and edited, share their beginnings, run beside each other, under tiny
// budgets, with restarts, and with damaged and removed values on disk. Every logit that a session
// gives must be the same bits as a cold session's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/language_model.h"

namespace locket::test_support {

struct SoakOptions {
  std::uint64_t seed = 1;
  std::int64_t operations = 300;
  std::int64_t longest = 420;            // tokens of a conversation
  std::filesystem::path directory = {};  // empty: memory only
};

struct SoakReport {
  std::int64_t operations = 0;
  std::int64_t requests = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t hit_tokens = 0;
  std::int64_t disk_tokens = 0;
  std::int64_t replayed_tokens = 0;
  std::int64_t compared_positions = 0;
  std::int64_t restarts = 0;
  std::int64_t damaged_bytes = 0;
  std::int64_t removed_prefixes = 0;
  std::int64_t retries = 0;
  std::int64_t over_budget = 0;
  std::uint64_t evicted_pages = 0;
  std::uint64_t values_dropped = 0;
  std::int64_t differences = 0;
  std::vector<std::string> failures;  // the first few

  std::string text() const;
};

SoakReport run_soak(const model::LanguageModel& model, const SoakOptions& options);

}  // namespace locket::test_support
