// Tokenizers and vectors that tests share.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace locket::test_support {

// The rows of tests/data/text/`name`, one JSON object a line.
std::vector<nlohmann::json> read_text_rows(const std::string& name);
// tests/data/text/`name` as one JSON value.
nlohmann::json read_text_json(const std::string& name);
// The bytes of the file tests/data/text/`name`.
std::string read_text_file(const std::string& name);

// The small tokenizer that the repository holds: 1,024 ids, otherwise built like V4.1's.
const tokenizer::Tokenizer& small_tokenizer();

// A released tokenizer ("v41", "v1", "v2", "v3", "v32") from the generated test data; nullptr where
// the file is not there. tools/fetch_test_tokenizers.py puts them there.
const tokenizer::Tokenizer* released_tokenizer(const std::string& name);

// Why a test without released_tokenizer(name) cannot run.
std::string missing_tokenizer_message(const std::string& name);
// Whether that is a failure here (LOCKET_REQUIRE_TOKENIZERS=1), not a skip.
bool must_have_released_tokenizers();

}  // namespace locket::test_support
