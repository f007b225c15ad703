// Folders and files for tests that run the program.
#pragma once

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/run_program.h"

namespace locket::cli {

inline std::string mini_folder() {
  return (std::filesystem::path(LOCKET_MODELS) / "mini").string();
}
inline std::string tiny_folder(std::string_view name) {
  return (std::filesystem::path(LOCKET_TEST_DATA) / "checkpoints" / name).string();
}

inline void copy_checkpoint(const std::filesystem::path& from, const test_support::TempFolder& to) {
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    std::filesystem::copy_file(entry.path(), to / entry.path().filename().string());
  }
}

// Takes the row of the end token out of the head, so that it is never the likeliest: the model
// talks until it is stopped.
inline void make_endless(const test_support::TempFolder& folder) {
  constexpr std::int64_t kEndToken = 1;
  const auto checkpoint = checkpoint::Checkpoint::open(folder.path()).value();
  const auto head = checkpoint.find("head.weight").value();
  const std::size_t row_bytes = head.byte_count() / static_cast<std::size_t>(head.shape[0]);
  std::string bytes = read_whole_file(head.file->path()).value();
  const auto row = bytes.begin() + static_cast<std::ptrdiff_t>(head.entry->offset) +
                   static_cast<std::ptrdiff_t>(row_bytes) * kEndToken;
  std::fill(row, row + static_cast<std::ptrdiff_t>(row_bytes), '\0');
  ASSERT_TRUE(write_whole_file(head.file->path(), std::as_bytes(std::span(bytes))));
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << text;
  }
}

// A run that must fail with exit code 1 and one line that holds `parts`; lines of the log may come
// before it.
inline void expect_failure(const test_support::ProgramResult& result,
                           const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, 1) << result.errors;
  EXPECT_EQ(result.output, "");
  std::vector<std::string> lines = lines_of(result.errors);
  std::erase_if(lines,
                [](const std::string& line) { return line.find(" info ") != std::string::npos; });
  ASSERT_EQ(lines.size(), 1U) << result.errors;
  EXPECT_TRUE(lines[0].starts_with("locket: ")) << result.errors;
  expect_parts(lines[0], parts);
}

}  // namespace locket::cli
