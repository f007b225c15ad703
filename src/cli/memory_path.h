// Where a command finds the memory on disk: --memory, else LOCKET_MEMORY, else the user's cache
// directory; "off" instead of a folder means that nothing is kept on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace locket::cli {

// What decides; empty: not set.
struct MemorySearch {
  std::string option = {};       // --memory
  std::string environment = {};  // LOCKET_MEMORY
  std::string cache_home = {};   // XDG_CACHE_HOME; counts if it is an absolute path
  std::string home = {};         // HOME; likewise
};

struct MemoryChoice {
  // Who chose: what was asked for must work, the default may be done without.
  enum class Source { kOption, kEnvironment, kDefault } source = Source::kDefault;
  bool is_off = false;
  std::filesystem::path directory = {};  // empty if off
  std::string why_off = {};              // for people; empty unless off
};

MemoryChoice find_memory(const MemorySearch& search);

// find_memory() with this process's environment. `option`: the value of --memory; empty: not given.
// Makes nothing and looks at no folder.
[[nodiscard]] Result<MemoryChoice> choose_memory(const std::string& option);

// The folder is there afterwards, and is ours. Errors as make_private_folder() and
// check_private_folder(), with where the name comes from. REQUIRES: not off.
[[nodiscard]] Status prepare_memory_folder(const MemoryChoice& choice);

// Bytes that the memory in `directory` may take if nobody says: a tenth of what is free on its
// disk, counting what the memory takes now as free; at most 64 GiB.
std::uint64_t default_memory_quota(const std::filesystem::path& directory);

}  // namespace locket::cli
