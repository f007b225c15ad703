#include "cache/page_name.h"

#include <array>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace locket::cache {
namespace {

constexpr std::array<std::byte, 32> kSecret = {std::byte{7}};

PageName name_of(const std::string& mode, const std::string& tenant) {
  return root_name(kSecret, {.model = {}, .numerics_mode = mode, .tenant = tenant});
}

// B21: fields never run together.
TEST(PageNameTest, B21_FieldsAreSeparatedByTagAndLength) {
  const std::set<PageName> names = {name_of("X", ""),  name_of("", "X"),  name_of("X", "X"),
                                    name_of("XX", ""), name_of("", "XX"), name_of("", "")};
  EXPECT_EQ(names.size(), 6U);
  // A tenant that spells the beginning of another field.
  EXPECT_NE(name_of("a", std::string("t\1\0\0\0\0\0\0\0b", 10)), name_of("a", "b"));
}

TEST(PageNameTest, EveryTokenAndTheParentCount) {
  const PageName root = name_of("reference", "");
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  std::set<PageName> names = {page_name(root, tokens)};
  EXPECT_TRUE(names.insert(page_name(root, std::vector<std::int32_t>{1, 2})).second);
  EXPECT_TRUE(names.insert(page_name(root, std::vector<std::int32_t>{1, 2, 3, 0})).second);
  EXPECT_TRUE(names.insert(page_name(root, std::vector<std::int32_t>{1, 2, 4})).second);
  EXPECT_TRUE(names.insert(page_name(root, std::vector<std::int32_t>{3, 2, 1})).second);
  EXPECT_TRUE(names.insert(page_name(root, std::vector<std::int32_t>{257, 2, 3})).second);
  EXPECT_TRUE(names.insert(page_name(*names.begin(), tokens)).second);
}

// The bytes of a name are part of the format: they must not depend on machine or build.
TEST(PageNameTest, NamesStayTheSameForEver) {
  const PageName root = {};
  const std::string bytes =
      std::string(32, '\0') + std::string("\3\0\0\0\0\0\0\0\1\0\0\0\xff\xf8\1\0", 16);
  EXPECT_EQ(page_name(root, std::vector<std::int32_t>{0, 1, 129'279}),
            sha256(std::as_bytes(std::span(bytes))));
}

TEST(PageNameTest, PointsChainNameIdsAndPosition) {
  const PrefixPoint root = root_point(name_of("reference", ""));
  const std::vector<std::int32_t> first(128, 5);
  const std::vector<std::int32_t> second(40, 6);
  const PrefixPoint a = next_point(root, first);
  const PrefixPoint b = next_point(a, second);
  EXPECT_EQ(a.position, 128);
  EXPECT_EQ(b.position, 168);
  EXPECT_EQ(b.name, page_name(a.name, second));
  EXPECT_NE(b.ids, a.ids);
  EXPECT_NE(next_point(root, second).ids, b.ids) << "ids count from the start";
}

TEST(PageNameTest, ShortNamesKeepTheirFirstBits) {
  const PrefixPoint whole = root_point(name_of("reference", ""));
  PrefixPoint cut = whole;
  cut.name_bits = 8;
  const std::vector<std::int32_t> tokens = {4, 5};
  const PrefixPoint a = next_point(whole, tokens);
  const PrefixPoint b = next_point(cut, tokens);
  EXPECT_EQ(b.name[0], a.name[0]);
  for (std::size_t i = 1; i < b.name.size(); ++i) EXPECT_EQ(b.name[i], std::byte{0});
  EXPECT_EQ(b.ids, a.ids) << "which do not depend on names";
}

}  // namespace
}  // namespace locket::cache
