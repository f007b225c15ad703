// A JSON schema validator that shares nothing with the program, for tests.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace locket::chat {

struct Row {
  std::string schema;
  std::string text;
};

// One character a row, see validate_json_rows.py; nothing where the validator is not installed.
inline std::optional<std::string> validate(const std::vector<Row>& rows, const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("locket_rows_" + name + ".jsonl");
  std::ofstream file(path);
  for (const Row& row : rows) {
    file << nlohmann::json{{"schema", nlohmann::json::parse(row.schema)}, {"text", row.text}}.dump()
         << "\n";
  }
  file.close();
  const std::string command = std::string("/usr/bin/python3 -B ") + LOCKET_TEST_DATA +
                              "/../support/validate_json_rows.py " + path.string();
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  std::filesystem::remove(path);
  if (status != 0) return std::nullopt;
  EXPECT_EQ(output.size(), rows.size());
  return output;
}

#define SKIP_WITHOUT(verdicts) \
  if (!(verdicts)) GTEST_SKIP() << "python3-jsonschema is not installed"

}  // namespace locket::chat
