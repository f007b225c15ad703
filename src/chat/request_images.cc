#include "chat/request_images.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <optional>

#include "chat/json_fields.h"

namespace locket::chat {
namespace {

constexpr std::size_t kMaxLinkCharacters = 8192;

int base64_digit(char byte) {
  if (byte >= 'A' && byte <= 'Z') return byte - 'A';
  if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
  if (byte >= '0' && byte <= '9') return byte - '0' + 52;
  if (byte == '+') return 62;
  return byte == '/' ? 63 : -1;
}

// None unless the text is whole base64 with its padding.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : (text.ends_with("=") ? 1 : 0);
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int bit_count = 0;
  for (const char byte : text) {
    const int digit = base64_digit(byte);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes.push_back(static_cast<char>((bits >> static_cast<unsigned>(bit_count)) & 0xFFU));
  }
  return bytes;
}

std::uint32_t byte_at(std::string_view bytes, std::size_t place) {
  return static_cast<unsigned char>(bytes[place]);
}

std::uint32_t big_endian(std::string_view bytes, std::size_t place, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = (value << 8U) | byte_at(bytes, place + i);
  return value;
}

constexpr std::string_view kPngStart = "\x89PNG\r\n\x1A\n";

bool is_whole_png(std::string_view bytes) {
  constexpr std::size_t kChunkFrame = 12;  // length, type and checksum
  bool has_data = false;
  std::size_t place = kPngStart.size();
  while (place + kChunkFrame <= bytes.size()) {
    const std::size_t length = big_endian(bytes, place, 4);
    const std::string_view type = bytes.substr(place + 4, 4);
    if (length > bytes.size() - place - kChunkFrame) return false;
    if (type == "IEND") return has_data;
    if (type == "IDAT") has_data = true;
    place += kChunkFrame + length;
  }
  return false;
}

constexpr std::string_view kJpegStart = "\xFF\xD8\xFF";

// The end mark counts behind the headers only: they may hold a small JPEG of their own.
bool is_whole_jpeg(std::string_view bytes) {
  constexpr std::uint32_t kScan = 0xDA;
  std::size_t place = 2;
  while (place + 4 <= bytes.size() && byte_at(bytes, place) == 0xFF) {
    const std::uint32_t marker = byte_at(bytes, place + 1);
    if (marker == kScan) return bytes.find("\xFF\xD9", place) != std::string_view::npos;
    place += 2 + big_endian(bytes, place + 2, 2);
  }
  return false;
}

bool is_whole_webp(std::string_view bytes) {
  if (bytes.size() < 20 || bytes.substr(8, 4) != "WEBP") return false;
  std::size_t length = 0;
  for (std::size_t i = 4; i > 0; --i) length = (length << 8U) | byte_at(bytes, 3 + i);
  return length <= bytes.size() - 8;
}

bool is_whole_gif(std::string_view bytes) {
  constexpr std::size_t kHeader = 13;
  return bytes.size() > kHeader && bytes.back() == ';';
}

struct PictureKind {
  std::string_view name;
  std::string_view start;
  bool (*is_whole)(std::string_view bytes);
};

constexpr std::array<PictureKind, 5> kPictureKinds = {{{"PNG", kPngStart, is_whole_png},
                                                       {"JPEG", kJpegStart, is_whole_jpeg},
                                                       {"WebP", "RIFF", is_whole_webp},
                                                       {"GIF", "GIF87a", is_whole_gif},
                                                       {"GIF", "GIF89a", is_whole_gif}}};

tl::unexpected<Error> bad_data(std::string_view path, std::string_view problem) {
  return fail(ErrorCode::kBadRequest,
              fmt::format("{} {}; it must be a whole JPEG, PNG, GIF or WebP in base64 with its "
                          "padding",
                          path, problem));
}

Status check_data_url(std::string_view path, std::string_view url) {
  constexpr std::string_view kMark = ";base64,";
  const std::size_t mark = url.find(kMark);
  if (mark == std::string_view::npos) return bad_data(path, "is a data URL without base64");
  const std::optional<std::string> bytes = decode_base64(url.substr(mark + kMark.size()));
  if (!bytes) return bad_data(path, "holds text that is not base64");
  for (const PictureKind& kind : kPictureKinds) {
    if (!bytes->starts_with(kind.start)) continue;
    if (kind.is_whole(*bytes)) return {};
    return bad_data(
        path, fmt::format("holds a {} of {} bytes that is cut off", kind.name, bytes->size()));
  }
  return bad_data(path, fmt::format("holds {} bytes of another kind", bytes->size()));
}

}  // namespace

Status check_image(std::string_view path, const ImageSource& image) {
  constexpr std::array<std::string_view, 3> kSchemes = {"data:image/", "http://", "https://"};
  const std::string url_path = field_path(path, "url");
  const std::string_view url = image.url;
  const auto fits = [url](std::string_view scheme) { return url.starts_with(scheme); };
  if (std::none_of(kSchemes.begin(), kSchemes.end(), fits)) {
    return wrong_value(url_path, json_string(image.url),
                       "a URL that begins with data:image/, http:// or https://");
  }
  if (fits(kSchemes.front())) return check_data_url(url_path, url);
  if (url.size() <= kMaxLinkCharacters) return {};
  return fail(ErrorCode::kBadRequest, fmt::format("{} has {} characters; at most {} are allowed",
                                                  url_path, url.size(), kMaxLinkCharacters));
}

Result<std::string> parse_image_detail(const JsonValue& image, std::string_view path) {
  const Fields fields(image, path);
  LOCKET_TRY(const auto detail, fields.optional_string("detail"));
  if (!detail) return std::string();
  for (const std::string_view known : {"low", "high", "original", "auto"}) {
    if (*detail == known) return *detail;
  }
  return wrong_value(fields.path_of("detail"), json_string(*detail),
                     "\"low\", \"high\", \"original\" or \"auto\"");
}

}  // namespace locket::chat
