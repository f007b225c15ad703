// The Engram token map: which class of look-alike tokens each id belongs to. Engram hashes classes,
// not ids, so that "The", " the" and "THE" find the same row. Pure function of the vocabulary.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace locket::tokenizer {

// [vocabulary_size]: class of each id. Two ids share a class if their keys are equal; classes are
// numbered from 0 in the order in which the ids first show them, so their count is the maximum + 1.
//
// The key of an id is its text after: NFKC, NFD, without combining marks, lower case, every run of
// spaces, tabs, CR and LF as one space, trimmed (a text that is then exactly one space stays); if
// nothing is left, the text as it is. An id that is not whole UTF-8 has its vocabulary entry as
// key.
[[nodiscard]] Result<std::vector<std::int32_t>> make_engram_token_map(const Tokenizer& tokenizer);

}  // namespace locket::tokenizer
