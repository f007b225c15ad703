#include "chat/stop_scanner.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace locket::chat {
namespace {

struct Found {
  std::string text;  // before the match, or all
  std::optional<std::size_t> match;

  friend bool operator==(const Found&, const Found&) = default;
};

Found scan(std::vector<std::string> patterns, const std::string& text) {
  StopScanner scanner(std::move(patterns));
  Found found;
  for (const char byte : text) {
    const StopScanner::Step step = scanner.push(byte);
    found.text.append(step.released);
    if (step.match) {
      found.match = step.match;
      return found;
    }
  }
  found.text += scanner.take_rest();
  return found;
}

TEST(StopScannerTest, EndsBeforeAStopString) {
  EXPECT_EQ(scan({"O P Q"}, "M N O P Q R"), (Found{"M N ", 0}));
  EXPECT_EQ(scan({"STOP"}, "abST"), (Found{"abST", std::nullopt}));
}

TEST(StopScannerTest, TakesTheMatchThatEndsFirst) {
  EXPECT_EQ(scan({"def", "XY"}, "abcXYdef"), (Found{"abc", 1}));
  EXPECT_EQ(scan({"bcd", "bc"}, "abcd"), (Found{"a", 1}));
}

TEST(StopScannerTest, TakesTheFirstInTheListOfThoseThatEndTogether) {
  EXPECT_EQ(scan({"XY", "XXY"}, "aXXY"), (Found{"aX", 0}));
  EXPECT_EQ(scan({"XXY", "XY"}, "aXXY"), (Found{"a", 0}));
}

TEST(StopScannerTest, FindsAMatchThatBeginsInsideAFailedOne) {
  EXPECT_EQ(scan({"abac"}, "ababac"), (Found{"ab", 0}));
  EXPECT_EQ(scan({"aab"}, "aaaab"), (Found{"aa", 0}));
}

TEST(StopScannerTest, ReleasesTextAsSoonAsItIsCertain) {
  StopScanner scanner({"abc"});
  EXPECT_EQ(scanner.push('x').released, "x");
  EXPECT_EQ(scanner.push('a').released, "");
  EXPECT_EQ(scanner.push('b').released, "");
  EXPECT_EQ(scanner.push('a').released, "ab");
  EXPECT_EQ(scanner.take_rest(), "a");
}

TEST(StopScannerTest, StartsAfreshBehindAMatch) {
  StopScanner scanner({"aa"});
  scanner.push('a');
  EXPECT_TRUE(scanner.push('a').match.has_value());
  EXPECT_FALSE(scanner.push('a').match.has_value());
  EXPECT_TRUE(scanner.push('a').match.has_value());
}

TEST(StopScannerTest, WithoutPatternsLetsEverythingThrough) {
  EXPECT_EQ(scan({}, "abc"), (Found{"abc", std::nullopt}));
}

}  // namespace
}  // namespace locket::chat
