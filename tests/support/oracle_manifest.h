// Manifests of recorded vectors as JSON. Apart from the other headers, because the JSON library is
// slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "base/file.h"
#include "tests/support/oracle_data.h"

namespace locket::test_support {

inline nlohmann::json read_oracle_manifest(const std::string& name) {
  const auto text = read_whole_file(oracle_path(name));
  if (!text) throw std::runtime_error(text.error().message);
  return nlohmann::json::parse(*text);
}

}  // namespace locket::test_support
