#include "base/open_file_limit.h"

#include <sys/resource.h>

namespace locket {

OpenFileLimit raise_open_file_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::uint64_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before == limit.rlim_max || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {.before = before, .now = before};
  }
  return {.before = before, .now = limit.rlim_max};
}

}  // namespace locket
