#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace locket {

void check_failed(const char* condition, const std::source_location& where) {
  std::fprintf(stderr, "%s:%u: check failed: %s\n", where.file_name(),
               static_cast<unsigned>(where.line()), condition);
  std::abort();
}

}  // namespace locket
