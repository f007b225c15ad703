#include "server/ui_page.h"

#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/hash.h"
#include "server/ui_parts.h"

namespace locket::server {
namespace {

constexpr std::string_view kStyleMarker = "/* the style */";
constexpr std::string_view kScriptMarker = "/* the script */";

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = at; i < at + 3; ++i) {
      group = group << 8 | (i < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i]) : 0);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_padding = at + digit > bytes.size();
      out.push_back(is_padding ? '=' : kDigits[group >> (18 - 6 * digit) & 63]);
    }
  }
  return out;
}

std::string source_of(std::string_view text) {
  return fmt::format("'sha256-{}'", base64(sha256(std::as_bytes(std::span(text)))));
}

void put_in(std::string_view marker, std::string_view text, std::string& page) {
  const std::size_t at = page.find(marker);
  LOCKET_CHECK(at != std::string::npos && page.find(marker, at + 1) == std::string::npos);
  page.replace(at, marker.size(), text);
}

// Trusted types: the script cannot turn text into markup even by mistake.
std::string policy() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
      "require-trusted-types-for 'script'; trusted-types 'none'",
      source_of(kUiScript), source_of(kUiStyle));
}

HttpResponse make_page() {
  HttpResponse response = {.content_type = "text/html; charset=utf-8",
                           .body = std::string(kUiHtml)};
  put_in(kStyleMarker, kUiStyle, response.body);
  put_in(kScriptMarker, kUiScript, response.body);
  response.headers = {{"Content-Security-Policy", policy()},
                      {"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
                      {"Cache-Control", "no-cache"}};
  return response;
}

}  // namespace

HttpResponse ui_page() {
  static const HttpResponse kPage = make_page();
  return kPage;
}

}  // namespace locket::server
