#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/tokenizer_files.h"
#include "tokenizer/regex_dialect.h"

namespace locket::tokenizer {
namespace {

using nlohmann::json;
using Pieces = std::vector<std::string>;

Pretokenizer build(const std::vector<std::string>& patterns) {
  std::vector<SplitPattern> steps;
  for (const std::string& pattern : patterns) steps.push_back({PatternKind::kRegex, pattern});
  return Pretokenizer::build(steps).value();
}

Pieces pieces_of(const Pretokenizer& pretokenizer, std::string_view text) {
  Pieces pieces;
  for (const std::string_view piece : pretokenizer.split(text)) pieces.emplace_back(piece);
  return pieces;
}

TEST(PretokenizerTest, CutsEveryVectorAsTheReferenceDoes) {
  const TokenizerFile file =
      parse_tokenizer_file(test_support::read_text_file("small_tokenizer.json")).value();
  const Pretokenizer pretokenizer = Pretokenizer::build(file.splits).value();
  const std::vector<json> rows = test_support::read_text_rows("pretokenizer_vectors.jsonl");
  EXPECT_EQ(rows.size(), 245U);
  for (const json& row : rows) {
    EXPECT_EQ(pieces_of(pretokenizer, row.at("text").get<std::string>()),
              row.at("pieces").get<Pieces>())
        << row.dump();
  }
}

TEST(PretokenizerTest, IsolatesMatchesAndKeepsTheTextBetween) {
  const Pretokenizer digits = build({"\\p{N}"});
  EXPECT_EQ(pieces_of(digits, "ab12c"), (Pieces{"ab", "1", "2", "c"}));
  EXPECT_EQ(pieces_of(digits, "ab"), (Pieces{"ab"}));
  EXPECT_EQ(pieces_of(digits, ""), Pieces{});
  EXPECT_EQ(pieces_of(build({}), "ab 12"), (Pieces{"ab 12"}));
}

TEST(PretokenizerTest, LetsALaterStepSeeNothingBeyondItsPiece) {
  // After the cut at the digit, the spaces end their piece.
  const Pretokenizer pretokenizer = build({"\\p{N}+", "\\s+(?!\\S)"});
  EXPECT_EQ(pieces_of(pretokenizer, "a  1"), (Pieces{"a", "  ", "1"}));
  EXPECT_EQ(pieces_of(pretokenizer, "a  b"), (Pieces{"a", " ", " b"}));
}

TEST(PretokenizerTest, TakesADollarAsTheEndOfALine) {
  EXPECT_EQ(pieces_of(build({"\\s+$"}), "a \n b  "), (Pieces{"a", " ", "\n b", "  "}));
  EXPECT_EQ(pieces_of(build({"a$"}), "a\ra\n"), (Pieces{"a\r", "a", "\n"}));
}

TEST(PretokenizerTest, TakesALiteralPatternAsItIs) {
  const Pretokenizer dots = Pretokenizer::build({{PatternKind::kLiteral, ".+"}}).value();
  EXPECT_EQ(pieces_of(dots, "ab.+c"), (Pieces{"ab", ".+", "c"}));
}

TEST(PretokenizerTest, StaysFastAndRightOnLongRuns) {
  const Pretokenizer pretokenizer = build({"\\s+$", "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"});
  const std::string spaces(200000, ' ');
  EXPECT_EQ(pieces_of(pretokenizer, spaces + "中"), (Pieces{spaces.substr(1), " ", "中"}));
  EXPECT_EQ(pieces_of(pretokenizer, spaces), (Pieces{spaces}));
}

TEST(PretokenizerTest, RefusesPatternsItCannotHonour) {
  for (const std::string pattern : {"a*", "", "(a", "x{3,2}"}) {
    const auto built =
        Pretokenizer::build({{PatternKind::kRegex, "b"}, {PatternKind::kRegex, pattern}});
    ASSERT_FALSE(built.has_value()) << pattern;
    EXPECT_EQ(built.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_NE(built.error().message.find("step 1"), std::string::npos) << built.error().message;
  }
}

TEST(RegexDialectTest, RefusesSyntaxThatMeansSomethingElseToTheLibrary) {
  for (const std::string pattern :
       {"\\h",      "\\d",         "\\w",    "\\v",     "\\x41",     "\\1",   "\\P",   "\\p{Lu}",
        "\\p{Han}", "[[:alpha:]]", "[a[b]]", "[a&&b]",  "[]a]",      "[^]a]", "[\\S]", "[\\P{L}]",
        "^a",       "a{1,2}+",     "(?i:a)", "(?<n>a)", "(*SKIP)(?", "a\\"}) {
    const auto translated = to_pcre2_pattern(pattern);
    ASSERT_FALSE(translated.has_value()) << pattern;
    EXPECT_EQ(translated.error().code, ErrorCode::kBadCheckpoint);
  }
}

TEST(RegexDialectTest, LeavesEqualSyntaxAlone) {
  for (const std::string pattern :
       {"[一-龥\u3040-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
        "a|b?[^\r\n]{1,3}", "(?:a)(?!b)(?=c)(?<!d)(?<=c)", "[-~！-／]"}) {
    EXPECT_EQ(to_pcre2_pattern(pattern).value(), pattern);
  }
}

}  // namespace
}  // namespace locket::tokenizer
