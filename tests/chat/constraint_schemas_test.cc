// Random schemas against a validator that shares nothing with the program: what a constraint lets a
// model write fits the schema, what fits is let through, and what does not fit is not.
#include <filesystem>

#include "tests/chat/constraint_rows.h"
#include "tests/chat/json_validator.h"
#include "tests/chat/random_schemas.h"

namespace locket::chat {
namespace {

using Json = SchemaMaker::Json;

// A schema that contradicts itself is refused; then there is nothing to write.
std::shared_ptr<const ConstraintGrammar> compile_or_contradiction(const std::string& schema) {
  const auto grammar = compile(schema_request(schema));
  if (grammar) return *grammar;
  EXPECT_NE(grammar.error().message.find("contradicts itself"), std::string::npos)
      << schema << "\n"
      << grammar.error().message;
  return nullptr;
}

void expect_walks_fit(const tokenizer::Tokenizer& tokenizer, std::uint64_t seed,
                      const std::string& name) {
  SchemaMaker maker(seed);
  RandomWriter writer(tokenizer, seed);
  std::vector<Row> rows;
  for (int round = 0; round < 200; ++round) {
    const std::string schema = maker.document().dump();
    const auto grammar = compile_or_contradiction(schema);
    if (grammar == nullptr) continue;
    for (int walk = 0; walk < 3; ++walk) {
      const std::optional<std::string> text = writer.write(grammar);
      ASSERT_TRUE(text.has_value()) << schema;
      EXPECT_TRUE(nlohmann::json::accept(*text)) << schema << "\n" << *text;
      rows.push_back({schema, *text});
    }
  }
  EXPECT_GT(rows.size(), 400U);
  const std::optional<std::string> verdicts = validate(rows, name);
  SKIP_WITHOUT(verdicts);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    EXPECT_EQ((*verdicts)[at], '1') << rows[at].schema << "\n" << rows[at].text;
  }
}

TEST(ConstraintSchemasTest, TheValidatorTellsRightFromWrong) {
  const std::string schema = R"({"type":"integer","minimum":3})";
  const auto verdicts = validate({{schema, "3"}, {schema, "2"}, {schema, "3x"}}, "known");
  SKIP_WITHOUT(verdicts);
  EXPECT_EQ(*verdicts, "10x");
}

TEST(ConstraintSchemasTest, RandomWalksOverTheSmallVocabularyFit) {
  expect_walks_fit(test_support::small_tokenizer(), 20261130, "small");
}

TEST(ConstraintSchemasTest, RandomWalksOverTheMiniVocabularyFit) {
  const Result<tokenizer::Tokenizer> mini =
      tokenizer::Tokenizer::load(std::filesystem::path(LOCKET_MODELS) / "mini/tokenizer.json");
  ASSERT_TRUE(mini.has_value());
  expect_walks_fit(*mini, 20261201, "mini");
}

TEST(ConstraintSchemasTest, ValuesThatFitAreLetThroughInEveryLayout) {
  SchemaMaker maker(20261202);
  std::size_t tried = 0;
  for (int round = 0; round < 400; ++round) {
    const Json schema = maker.document();
    if (compile_or_contradiction(schema.dump()) == nullptr) continue;
    TextProbe probe(schema_request(schema.dump()));
    for (int count = 0; count < 5; ++count) {
      const Json value = maker.value(schema, schema);
      for (const int indent : {-1, 0, 1, 4}) {
        ++tried;
        EXPECT_EQ(probe.fit(value.dump(indent)), Fit::kWhole) << schema.dump() << "\n"
                                                              << value.dump(indent);
      }
    }
  }
  EXPECT_GT(tried, 5000U);
}

std::string mutate(std::string text, SchemaMaker& maker) {
  constexpr std::string_view kInserts[] = {"\"", ",", "}", "1", "null", " ", "-", ".", "0", "a"};
  for (std::size_t edits = 1 + maker.below(3); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = maker.below(text.size());
    switch (maker.below(3)) {
      case 0:
        text.erase(at, 1 + maker.below(3));
        break;
      case 1:
        text.insert(at, kInserts[maker.below(std::size(kInserts))]);
        break;
      default:
        text[at] = static_cast<char>('0' + maker.below(10));
        break;
    }
  }
  return text;
}

TEST(ConstraintSchemasTest, WhatIsLetThroughFitsAlsoAfterMutation) {
  SchemaMaker maker(20261203);
  std::vector<Row> rows;
  std::size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    const Json schema = maker.document();
    if (compile_or_contradiction(schema.dump()) == nullptr) continue;
    TextProbe probe(schema_request(schema.dump()));
    for (int count = 0; count < 60; ++count) {
      const std::string text = mutate(maker.value(schema, schema).dump(), maker);
      if (tokenizer::repair_utf8(text) != text) continue;
      if (probe.fit(text) == Fit::kWhole) {
        rows.push_back({schema.dump(), text});
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(rows.size(), 500U);
  EXPECT_GT(refused, 5000U);
  const std::optional<std::string> verdicts = validate(rows, "mutated");
  SKIP_WITHOUT(verdicts);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    EXPECT_EQ((*verdicts)[at], '1') << rows[at].schema << "\n" << rows[at].text;
  }
}

}  // namespace
}  // namespace locket::chat
