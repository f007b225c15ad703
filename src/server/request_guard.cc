#include "server/request_guard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace locket::server {
namespace {

constexpr const char* kMethods = "GET, HEAD, POST, OPTIONS";
// What a page may read of an answer besides its body.
constexpr const char* kExposedHeaders = "x-request-id, retry-after, retry-after-ms";
constexpr const char* kPreflightSeconds = "600";
constexpr std::size_t kMostShown = 80;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return out;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// "name:8000" and "[::1]:8000" without the port, in lower case, without a dot at the end.
std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(0, host.find(']') + 1));
  const std::size_t colon = host.find(':');
  // A second colon: an address of version 6 without its brackets.
  const bool has_port = colon != std::string_view::npos && host.rfind(':') == colon;
  std::string_view name = has_port ? host.substr(0, colon) : host;
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower(name);
}

using Address4 = std::array<unsigned, 4>;

std::optional<Address4> read_address4(std::string_view text) {
  Address4 address = {};
  const char* const end = text.data() + text.size();
  const char* next = text.data();
  for (std::size_t index = 0; index < address.size(); ++index) {
    if (index > 0 && (next == end || *next++ != '.')) return std::nullopt;
    if (next == end || !is_digit(*next)) return std::nullopt;
    const auto [after, error] = std::from_chars(next, end, address[index]);
    if (error != std::errc{} || address[index] > 255) return std::nullopt;
    next = after;
  }
  return next == end ? std::optional(address) : std::nullopt;
}

std::string_view without_brackets(std::string_view host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

// No name can hold a colon.
bool is_address6(std::string_view host) {
  const std::string_view text = without_brackets(host);
  return text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

bool is_localhost(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost");
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, kMostShown));
  std::ranges::replace_if(
      out, [](char letter) { return letter < ' ' || letter > '~' || letter == '"'; }, '?');
  return out;
}

// A list of header names as a browser writes it, to be sent back; empty if it is none.
std::string_view header_names(std::string_view text) {
  const auto is_fit = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           is_digit(letter) || letter == '-' || letter == '_' || letter == ',' || letter == ' ';
  };
  return std::ranges::all_of(text, is_fit) ? text : std::string_view{};
}

// Scheme, host and port behind "://".
std::string_view authority(std::string_view origin) {
  const std::size_t mark = origin.find("://");
  return mark == std::string_view::npos ? std::string_view{} : origin.substr(mark + 3);
}

bool is_preflight(const HttpRequest& head) {
  return head.method == "OPTIONS" && !head.header("access-control-request-method").empty();
}

HttpHeaders preflight_headers(const HttpRequest& head) {
  HttpHeaders headers = {{"Access-Control-Allow-Methods", kMethods},
                         {"Access-Control-Max-Age", kPreflightSeconds}};
  const std::string_view names = header_names(head.header("access-control-request-headers"));
  if (!names.empty()) headers.emplace_back("Access-Control-Allow-Headers", names);
  // Pages on the internet that want to reach a private address are asked about separately.
  if (lower(head.header("access-control-request-private-network")) == "true") {
    headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  return headers;
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  const std::string name = lower(without_brackets(host));
  if (is_localhost(name) || name == "::1") return true;
  constexpr std::string_view kMapped = "::ffff:";
  std::string_view text = name;
  if (text.starts_with(kMapped)) text.remove_prefix(kMapped.size());
  const auto address = read_address4(text);
  return address && address->front() == 127;
}

Status check_bind(std::string_view host, const ApiKeys& keys) {
  if (is_loopback_host(host) || keys.size() > 0) return {};
  return fail(ErrorCode::kBadRequest,
              fmt::format("the host \"{}\" can be reached by other machines, and there is no API "
                          "key; give one (--api-key-file or LOCKET_API_KEY), or listen at "
                          "127.0.0.1",
                          host));
}

Status check_origin(std::string_view text) {
  const std::string_view rest = authority(text);
  const std::size_t scheme = text.size() - rest.size();
  const bool has_scheme =
      scheme > 3 &&
      lower(text.substr(0, scheme - 3))
              .find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") == std::string::npos;
  const bool is_host = !rest.empty() && rest.find_first_of("/?#@* \t\"") == std::string_view::npos;
  if (text == "*" || (has_scheme && is_host)) return {};
  return fail(ErrorCode::kBadRequest,
              fmt::format("\"{}\" is no origin; write scheme, host and port as in "
                          "https://app.example or http://localhost:3000, or * for every page",
                          shown(text)));
}

RequestGuard::RequestGuard(GuardOptions options) : options_(std::move(options)) {
  is_open_ = !is_loopback_host(options_.bind_host);
  for (std::string& name : options_.allowed_hosts) name = host_name(name);
  for (std::string& origin : options_.cors_origins) origin = lower(origin);
}

bool RequestGuard::is_host_allowed(std::string_view host) const {
  if (host.empty() || is_open_) return true;
  const std::string name = host_name(host);
  return is_localhost(name) || read_address4(name) || is_address6(name) ||
         name == host_name(options_.bind_host) ||
         std::ranges::find(options_.allowed_hosts, name) != options_.allowed_hosts.end();
}

bool RequestGuard::is_origin_allowed(std::string_view origin, std::string_view host) const {
  if (!host.empty() && lower(authority(origin)) == lower(host)) return true;
  return std::ranges::any_of(options_.cors_origins, [&](const std::string& allowed) {
    return allowed == "*" || allowed == lower(origin);
  });
}

HttpHeaders RequestGuard::cors_headers(std::string_view origin) const {
  if (options_.cors_origins.empty()) return {};
  // Answers that were cached for one page must not be given to another.
  HttpHeaders headers = {{"Vary", "Origin"}};
  if (origin.empty()) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", origin);
  headers.emplace_back("Access-Control-Expose-Headers", kExposedHeaders);
  return headers;
}

RequestGuard::Verdict RequestGuard::check(const HttpRequest& head) const {
  const std::string_view host = head.header("host");
  const std::string_view origin = head.header("origin");
  if (!is_host_allowed(host)) {
    return {.kind = Verdict::Kind::kRefused,
            .message = fmt::format("The Host \"{}\" is not a name of this server. If it should be, "
                                   "start it with --allowed-host {}",
                                   shown(host), shown(host_name(host)))};
  }
  if (!origin.empty() && !is_origin_allowed(origin, host)) {
    return {.kind = Verdict::Kind::kRefused,
            .message = fmt::format("Pages of the origin \"{}\" may not ask this server. If they "
                                   "should, start it with --cors {}",
                                   shown(origin), shown(origin))};
  }
  Verdict verdict = {.headers = cors_headers(origin)};
  if (origin.empty() || !is_preflight(head)) return verdict;
  verdict.kind = Verdict::Kind::kPreflight;
  for (auto& header : preflight_headers(head)) verdict.headers.push_back(std::move(header));
  return verdict;
}

}  // namespace locket::server
