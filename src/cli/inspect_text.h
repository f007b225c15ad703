// What `locket inspect` prints: the facts of a model as text for people, or as JSON.
#pragma once

#include <string>

#include "cli/inspect_facts.h"

namespace locket::cli {

// At most 100 columns.
std::string inspect_text(const ModelFacts& facts);

// One object, indented.
std::string inspect_json(const ModelFacts& facts);

}  // namespace locket::cli
