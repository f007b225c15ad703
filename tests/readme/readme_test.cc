// What the documents promise to a newcomer: links lead somewhere, make targets and commands of the
// program exist, and whole command lines run.
// g++ 12 with sanitizers warns about members of std::function inside <regex> (a false alarm).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/run_program.h"

namespace locket {
namespace {

namespace fs = std::filesystem;
using test_support::ProgramResult;
using test_support::run_program;

fs::path root() { return fs::path(LOCKET_MODELS).parent_path(); }

std::string read_text(const fs::path& path) { return read_whole_file(path).value(); }

// Every .md of the repository; build folders and hidden ones are none of it.
std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(root());
       entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name.starts_with('.') || name.starts_with("build"))) {
      entry.disable_recursion_pending();
    } else if (name.ends_with(".md")) {
      found.push_back(entry->path());
    }
  }
  return found;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), expression);
       at != std::sregex_iterator(); ++at) {
    found.push_back((*at)[1].str());
  }
  return found;
}

// Lines of code blocks, fenced or indented, and pieces of code inside a line; comments cut off.
std::vector<std::string> code_of(const std::string& text) {
  std::vector<std::string> code = matches(text, "`([^`\n]+)`");
  std::istringstream stream(text);
  bool is_fenced = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("```")) is_fenced = !is_fenced;
    if (is_fenced || line.starts_with("    ")) {
      const std::size_t begin = line.find_first_not_of(' ');
      if (begin != std::string::npos) code.push_back(line.substr(begin, line.find(" #") - begin));
    }
  }
  return code;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> code_of_documents() {
  std::vector<std::string> code;
  for (const char* name : {"README.md", "CONTRIBUTING.md"}) {
    for (std::string& piece : code_of(read_text(root() / name))) code.push_back(std::move(piece));
  }
  return code;
}

TEST(ReadmeTest, EveryLinkLeadsSomewhere) {
  std::size_t count = 0;
  for (const fs::path& document : documents()) {
    for (const std::string& target : matches(read_text(document), R"(\]\(([^)#\s]+))")) {
      if (target.find("://") != std::string::npos) continue;
      EXPECT_TRUE(fs::exists(document.parent_path() / target)) << document << " links " << target;
      ++count;
    }
  }
  EXPECT_GE(count, 10U);
}

TEST(ReadmeTest, EveryMakeTargetExists) {
  const std::string makefile = "\n" + read_text(root() / "Makefile");
  std::size_t count = 0;
  for (const std::string& code : code_of_documents()) {
    const std::vector<std::string> words = words_of(code);
    if (words.size() < 2 || words[0] != "make") continue;
    for (std::size_t i = 1; i < words.size(); ++i) {
      EXPECT_NE(makefile.find("\n" + words[i] + ":"), std::string::npos) << code;
      ++count;
    }
  }
  EXPECT_GE(count, 5U);
}

// A bare command explains itself; a whole command line runs, with nothing on standard input. A
// server would not come back, and only explains its options.
TEST(ReadmeTest, EveryCommandLineRuns) {
  const test_support::TempFolder folder;
  std::size_t count = 0;
  for (const std::string& code : code_of_documents()) {
    std::vector<std::string> words = words_of(code);
    const bool is_path = !words.empty() && words[0].ends_with("/locket");
    if (words.size() < 2 || (words[0] != "locket" && !is_path)) continue;
    words.erase(words.begin());
    if (words.size() == 1 && !is_path && !words[0].starts_with('-')) words.emplace_back("--help");
    if (words[0] == "serve") words.emplace_back("--help");
    const ProgramResult result =
        run_program({.arguments = words,
                     .environment = {{"LOCKET_MODEL", (fs::path(LOCKET_MODELS) / "mini").string()},
                                     {"LOCKET_MEMORY", (folder / "memory").string()}},
                     .folder = root()});
    EXPECT_EQ(result.exit_code, 0) << code << '\n' << result.errors;
    ++count;
  }
  EXPECT_GE(count, 3U);
}

TEST(ReadmeTest, ListsTheCommandsThatTheProgramLists) {
  std::smatch row;
  const std::string readme = read_text(root() / "README.md");
  ASSERT_TRUE(std::regex_search(readme, row, std::regex(R"(\| commands \|([^|]*)\|)")));
  const std::vector<std::string> named = matches(row[1].str(), "`([a-z]+)`");
  const std::string help = run_program({"--help"}).output;
  const std::size_t begin = help.find("\nCommands:\n");
  ASSERT_NE(begin, std::string::npos);
  const std::vector<std::string> listed =
      matches(help.substr(begin, help.find("\n\n", begin) - begin), "\n  ([a-z]+) ");
  EXPECT_EQ(std::set(named.begin(), named.end()), std::set(listed.begin(), listed.end()));
  EXPECT_EQ(named.size(), listed.size());
}

}  // namespace
}  // namespace locket
