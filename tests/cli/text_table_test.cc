#include "cli/text_table.h"

#include <gtest/gtest.h>

namespace locket::cli {
namespace {

TEST(TextTableTest, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(18446744073709551615U), "18,446,744,073,709,551,615");
}

TEST(TextTableTest, GroupsDecimals) {
  EXPECT_EQ(grouped_decimal(389120), "389,120");
  EXPECT_EQ(grouped_decimal(5031.4375), "5,031.4375");
  EXPECT_EQ(grouped_decimal(-123.5), "-123.5");
  EXPECT_EQ(grouped_decimal(-1234567.0), "-1,234,567");
  EXPECT_EQ(grouped_decimal(0), "0");
}

TEST(TextTableTest, AlignsColumnsAndDropsTrailingBlanks) {
  TextTable table({TextTable::Align::kLeft, TextTable::Align::kRight, TextTable::Align::kLeft});
  table.add_row({"name", "bytes", ""});
  table.add_row({"a", "1,000,000", "of rows"});
  EXPECT_EQ(table.text(2),
            "  name      bytes\n"
            "  a     1,000,000  of rows\n");
}

}  // namespace
}  // namespace locket::cli
