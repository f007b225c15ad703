// What `locket lens` prints: how good the guesses of each layer are, and the guesses themselves.
// Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "cli/lens_guesses.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {

// A row per layer. REQUIRES: at least two positions.
std::string lens_scores(const LensReading& reading);

// A row per position, the last `most_rows` of them, and as many layers, evenly chosen, as fit into
// 100 columns; the first and the last layer are among them.
std::string lens_guesses(const LensReading& reading, const tokenizer::Tokenizer& tokenizer,
                         std::size_t most_rows);

// Everything, as one object, indented.
std::string lens_json(const LensReading& reading, const tokenizer::Tokenizer& tokenizer);

}  // namespace locket::cli
