// The heat map of `locket lens`: one HTML file that needs no other, in light and dark, for mouse,
// keyboard and small screens. Pure function of the reading; texts of tokens never become markup.
#pragma once

#include <string>

#include "cli/lens_guesses.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {

// `title` says what was read, for people. REQUIRES: at least two positions.
std::string lens_page(const LensReading& reading, const tokenizer::Tokenizer& tokenizer,
                      const std::string& title);

// The text of one token, as a table shows it: blanks and line ends are made visible, broken
// characters are U+FFFD.
std::string visible_token(const tokenizer::Tokenizer& tokenizer, engine::TokenId id);

}  // namespace locket::cli
