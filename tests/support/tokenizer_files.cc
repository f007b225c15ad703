#include "tests/support/tokenizer_files.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/file.h"

namespace locket::test_support {
namespace {

using tokenizer::Tokenizer;

std::unique_ptr<const Tokenizer> load(const std::filesystem::path& path) {
  Result<Tokenizer> loaded = Tokenizer::load(path);
  if (!loaded) ADD_FAILURE() << loaded.error().message;
  return std::make_unique<const Tokenizer>(std::move(loaded).value());
}

std::filesystem::path released_path(const std::string& name) {
  return std::filesystem::path(LOCKET_GENERATED_DATA) / ("tokenizer_" + name + ".json");
}

}  // namespace

std::string read_text_file(const std::string& name) {
  const Result<std::string> text =
      read_whole_file(std::filesystem::path(LOCKET_TEST_DATA) / "text" / name);
  if (!text) ADD_FAILURE() << text.error().message;
  return text.value_or("");
}

nlohmann::json read_text_json(const std::string& name) {
  return nlohmann::json::parse(read_text_file(name));
}

std::vector<nlohmann::json> read_text_rows(const std::string& name) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_text_file(name));
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

const Tokenizer& small_tokenizer() {
  static const auto tokenizer =
      load(std::filesystem::path(LOCKET_TEST_DATA) / "text" / "small_tokenizer.json");
  return *tokenizer;
}

const Tokenizer* released_tokenizer(const std::string& name) {
  static std::map<std::string, std::unique_ptr<const Tokenizer>> loaded;
  if (!loaded.contains(name) && std::filesystem::exists(released_path(name))) {
    loaded[name] = load(released_path(name));
  }
  return loaded.contains(name) ? loaded[name].get() : nullptr;
}

std::string missing_tokenizer_message(const std::string& name) {
  return released_path(name).string() + " is missing; tools/fetch_test_tokenizers.py fetches it";
}

bool must_have_released_tokenizers() {
  const char* value = std::getenv("LOCKET_REQUIRE_TOKENIZERS");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace locket::test_support
