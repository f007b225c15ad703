#include "cli/base64.h"

#include <gtest/gtest.h>
#include <string>

namespace locket::cli {
namespace {

TEST(Base64Test, MatchesTheExamplesOfTheStandard) {
  const std::string plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
  const std::string text[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (std::size_t example = 0; example < 7; ++example) {
    EXPECT_EQ(encode_base64(plain[example]), text[example]);
    EXPECT_EQ(decode_base64(text[example]).value(), plain[example]);
  }
}

TEST(Base64Test, CarriesEveryByte) {
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes += static_cast<char>(value);
  for (std::size_t begin = 0; begin < 4; ++begin) {
    EXPECT_EQ(decode_base64(encode_base64(bytes.substr(begin))).value(), bytes.substr(begin));
  }
}

TEST(Base64Test, RefusesWhatIsNotBase64) {
  for (const std::string text :
       {"Zg", "Zg=", "Z===", "====", "=Zm8", "Zm=8", "Zm9v\n", "Zm9-", "Zm 9", "Zg==Zg=="}) {
    EXPECT_FALSE(decode_base64(text).has_value()) << text;
  }
  EXPECT_NE(decode_base64("Zm9-").error().message.find("character 3"), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
