// Path and query from the target of a request line.
#pragma once

#include <string>
#include <string_view>

namespace locket::server {

struct RequestTarget {
  std::string path;   // percent-decoded, valid UTF-8, no control characters
  std::string query;  // as sent
};

// Takes "/path?query" and "http://host/path?query". False for anything else, and for a path that
// decodes to what a path may not hold.
bool split_target(std::string_view target, RequestTarget& out);

}  // namespace locket::server
