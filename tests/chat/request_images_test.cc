// Case D21: broken pictures are refused, whole ones are not.
#include "chat/request_images.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace locket::chat {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits <<= 8U;
      if (at + i < bytes.size()) bits |= static_cast<unsigned char>(bytes[at + i]);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const bool is_padding = at + i > bytes.size();
      text.push_back(is_padding ? '=' : kDigits[(bits >> (18U - 6U * i)) & 63U]);
    }
  }
  return text;
}

std::string refusal(const std::string& url) {
  const Status status = check_image("p", {url, ""});
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kBadRequest);
  return status.error().message;
}

std::string of_bytes(std::string_view bytes) {
  return refusal("data:image/png;base64," + base64(bytes));
}

constexpr std::string_view kPixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg==";

// Headers, a small picture among them, a scan and its end.
std::string jpeg() {
  std::string bytes("\xFF\xD8\xFF\xE1\x00\x08\xFF\xD8\xFF\xD9\x00\x00", 12);
  bytes += std::string("\xFF\xDA\x00\x02", 4) + std::string(200, 'x') + "\xFF\xD9";
  return bytes;
}

std::string webp() {
  return std::string("RIFF\x0C\x00\x00\x00WEBPVP8 ", 16) + std::string(4, '\0');
}

TEST(RequestImagesTest, TakesWholePictures) {
  EXPECT_EQ(refusal("data:image/png;base64," + std::string(kPixel)), "");
  EXPECT_EQ(of_bytes(jpeg()), "");
  EXPECT_EQ(of_bytes(webp()), "");
  EXPECT_EQ(of_bytes("GIF89a" + std::string(20, '\0') + ";"), "");
  EXPECT_EQ(refusal("https://h/x.png"), "");
}

TEST(RequestImagesTest, D21RefusesPicturesThatAreCutOff) {
  const std::string whole = jpeg();
  for (std::size_t size = 3; size < whole.size(); ++size) {
    EXPECT_NE(of_bytes(whole.substr(0, size)), "") << size;
  }
  EXPECT_NE(
      of_bytes(whole.substr(0, whole.size() - 128)).find("a JPEG of 90 bytes that is cut off"),
      std::string::npos);
  EXPECT_NE(of_bytes("\x89PNG\r\n\x1A\n"), "");
  EXPECT_NE(of_bytes(webp().substr(0, 19)), "");
}

TEST(RequestImagesTest, D21RefusesWhatIsNoPicture) {
  EXPECT_NE(of_bytes("just text").find("holds 9 bytes of another kind"), std::string::npos);
  const std::string unpadded(kPixel.substr(0, kPixel.size() - 2));
  EXPECT_NE(refusal("data:image/png;base64," + unpadded).find("not base64"), std::string::npos);
  for (const std::string url : {"data:;base64,", "", "data:image/png;base64,", "data:image/png,x",
                                "data:image/png;base64,iVB\nRw0=", "file:///x.png", "ftp://h/x"}) {
    EXPECT_NE(refusal(url), "") << url;
  }
  EXPECT_NE(refusal("https://h/" + std::string(8192, 'x')), "");
}

}  // namespace
}  // namespace locket::chat
