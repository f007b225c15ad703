// What `locket claims` prints. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/claims_list.h"

namespace locket::cli {

// At most 100 columns.
std::string claims_text(const std::vector<ClaimGroup>& groups);

// One object, indented.
std::string claims_json(const std::vector<ClaimGroup>& groups);

}  // namespace locket::cli
