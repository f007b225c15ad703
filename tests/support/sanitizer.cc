#include "tests/support/sanitizer.h"

#include <fstream>
#include <string>

namespace locket::test_support {

bool runs_with_sanitizer() {
  static const bool found = [] {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      for (const char* name : {"libasan", "libtsan"}) {
        if (line.find(name) != std::string::npos) return true;
      }
    }
    return false;
  }();
  return found;
}

}  // namespace locket::test_support
