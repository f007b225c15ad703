// Settings from a file, one on a line, in a subset of TOML:
//
//     # who may ask
//     api-key-file = "/etc/locket/keys"
//     port = 8000
//     metrics = true
//     cors = ["https://app.example", "http://localhost:3000"]
//
// Names are those of the flags without their dashes, underscores count as dashes. Strings stand in
// quotes: in double ones \" \\ \n \t are escapes, in single ones nothing is. No tables. Which names
// there are, and what they mean, is for the caller to know. Pure function, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace locket::server {

struct ConfigSetting {
  std::string name;                 // with dashes
  std::vector<std::string> values;  // as one would type them; one, unless it is a list
  std::size_t line = 0;             // counted from 1
};

// kBadRequest names `where`, the line and what would be right: a line that is no setting, a name
// that stands there twice.
[[nodiscard]] Result<std::vector<ConfigSetting>> read_config(std::string_view text,
                                                             std::string_view where);

}  // namespace locket::server
