#include "server/api_keys.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <span>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace locket::server {
namespace {

constexpr std::size_t kMostKeyBytes = 1024;
constexpr std::size_t kMostNameBytes = 64;
constexpr std::size_t kNameDigits = 12;  // of a digest that names its key
constexpr std::uint64_t kMostFileBytes = std::uint64_t{4} << 20;
constexpr std::string_view kDigestMark = "sha256:";

constexpr const char* kMissingText =
    "You didn't provide an API key. Send it in a header: Authorization: Bearer KEY, or "
    "x-api-key: KEY.";
constexpr const char* kWrongText = "Incorrect API key provided.";
constexpr const char* kOffText =
    "This action needs the admin key, and the server was started without one.";

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_name_letter(char letter) {
  const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
  return is_letter || is_digit(letter) || letter == '-' || letter == '_' || letter == '.';
}

// What a header can carry, without spaces.
bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kMostKeyBytes &&
         std::ranges::all_of(text, [](char letter) { return letter > ' ' && letter < '\x7F'; });
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostNameBytes &&
         std::ranges::all_of(text, is_name_letter);
}

std::optional<unsigned> hex_digit(char letter) {
  if (is_digit(letter)) return static_cast<unsigned>(letter - '0');
  if (letter >= 'a' && letter <= 'f') return static_cast<unsigned>(letter - 'a' + 10);
  if (letter >= 'A' && letter <= 'F') return static_cast<unsigned>(letter - 'A' + 10);
  return std::nullopt;
}

std::optional<Sha256Digest> read_digest(std::string_view hex) {
  Sha256Digest digest = {};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t index = 0; index < digest.size(); ++index) {
    const auto high = hex_digit(hex[2 * index]);
    const auto low = hex_digit(hex[2 * index + 1]);
    if (!high || !low) return std::nullopt;
    digest[index] = static_cast<std::byte>(*high << 4 | *low);
  }
  return digest;
}

Sha256Digest digest_of(std::string_view key) { return sha256(std::as_bytes(std::span(key))); }

std::string name_after(const Sha256Digest& digest) {
  return "key-" + to_hex(digest).substr(0, kNameDigits);
}

// Looks at every byte whatever the first ones are.
bool is_equal(const Sha256Digest& a, const Sha256Digest& b) {
  unsigned difference = 0;
  for (std::size_t index = 0; index < a.size(); ++index) {
    difference |= std::to_integer<unsigned>(a[index] ^ b[index]);
  }
  return difference == 0;
}

// The token of "Bearer TOKEN"; empty for any other scheme.
std::string_view bearer_token(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  value = trimmed(value);
  if (value.size() <= kScheme.size()) return {};
  const bool is_bearer = std::ranges::equal(
      value.substr(0, kScheme.size()), kScheme,
      [](char found, char wanted) { return found == wanted || found + 'a' - 'A' == wanted; });
  return is_bearer ? trimmed(value.substr(kScheme.size())) : std::string_view{};
}

std::string_view presented_key(const HttpRequest& request) {
  const std::string_view token = bearer_token(request.header("authorization"));
  return token.empty() ? trimmed(request.header("x-api-key")) : token;
}

std::optional<std::string> permission_warning(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::perms permissions = fs::status(path, error).permissions();
  const fs::perms others = permissions & (fs::perms::group_all | fs::perms::others_all);
  if (error || others == fs::perms::none) return std::nullopt;
  return fmt::format("others can reach the keys in {} (mode {:04o}); chmod 600 closes it",
                     path.string(), static_cast<unsigned>(permissions & fs::perms::mask));
}

struct Entry {
  std::string_view text;
  std::size_t number;  // of the place between separators, from 1
};

std::vector<Entry> entries_of(std::string_view text, char separator) {
  std::vector<Entry> entries;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view entry = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_comment = separator == '\n' && entry.starts_with('#');
    if (!entry.empty() && !is_comment) entries.push_back({entry, number});
  }
  return entries;
}

}  // namespace

ApiKeys::ApiKeys() { random_bytes(secret_); }

Sha256Digest ApiKeys::keyed(const Sha256Digest& digest) const {
  return hmac_sha256(secret_, digest);
}

const ApiKeys::Key* ApiKeys::find(const std::vector<Key>& keys, const Sha256Digest& digest) const {
  const Key* found = nullptr;
  for (const Key& key : keys) {
    if (is_equal(key.digest, digest)) found = &key;
  }
  return found;
}

Result<ApiKeys::Key> ApiKeys::read_entry(std::string_view entry, std::string_view where) const {
  const std::size_t colon = entry.find(':');
  if (colon == std::string_view::npos) {
    if (!is_key(entry)) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{}: a key must have 1 to {} visible ASCII characters, no spaces",
                              where, kMostKeyBytes));
    }
    const Sha256Digest digest = digest_of(entry);
    return Key{.name = name_after(digest), .digest = keyed(digest)};
  }
  const std::string_view name = entry.substr(0, colon);
  const std::string_view key = entry.substr(colon + 1);
  if (!is_name(name)) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{}: what stands before \":\" is a key's name; it must have 1 to {} of "
                            "A-Z a-z 0-9 - _ .",
                            where, kMostNameBytes));
  }
  if (!key.starts_with(kDigestMark)) {
    if (!is_key(key)) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{}: the key of \"{}\" must have 1 to {} visible ASCII characters, "
                              "no spaces",
                              where, name, kMostKeyBytes));
    }
    return Key{.name = std::string(name), .digest = keyed(digest_of(key))};
  }
  const auto digest = read_digest(key.substr(kDigestMark.size()));
  if (!digest) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("{}: the SHA-256 of \"{}\" must be 64 hexadecimal digits", where, name));
  }
  return Key{.name = std::string(name), .digest = keyed(*digest)};
}

Status ApiKeys::add_client(Key key, std::string_view where) {
  if (find(admin_keys_, key.digest) != nullptr) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("{}: the key of \"{}\" is the admin key; it must be another", where, key.name));
  }
  const Key* const same = find(client_keys_, key.digest);
  if (same == nullptr) {
    client_keys_.push_back(std::move(key));
    return {};
  }
  if (same->name == key.name) return {};
  return fail(ErrorCode::kBadRequest,
              fmt::format("{}: \"{}\" and \"{}\" have the same key; each name needs its own", where,
                          same->name, key.name));
}

Status ApiKeys::add_admin(Key key, std::string_view where) {
  if (find(client_keys_, key.digest) != nullptr) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("{}: the admin key is also a key of requests; it must be another", where));
  }
  admin_keys_ = {std::move(key)};
  return {};
}

Status ApiKeys::add_list(std::string_view text, std::string_view where) {
  for (const Entry& entry : entries_of(text, ',')) {
    LOCKET_TRY(Key key, read_entry(entry.text, where));
    LOCKET_TRY_STATUS(add_client(std::move(key), where));
  }
  return {};
}

Status ApiKeys::add_lines(std::string_view text, std::string_view where) {
  for (const Entry& entry : entries_of(text, '\n')) {
    const std::string place = fmt::format("{}, line {}", where, entry.number);
    LOCKET_TRY(Key key, read_entry(entry.text, place));
    LOCKET_TRY_STATUS(add_client(std::move(key), place));
  }
  return {};
}

Result<std::optional<std::string>> ApiKeys::add_file(const std::filesystem::path& path) {
  LOCKET_TRY(const std::string text, read_whole_file(path, kMostFileBytes));
  LOCKET_TRY_STATUS(add_lines(text, path.string()));
  if (entries_of(text, '\n').empty()) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} has no keys; it must have one per line", path.string()));
  }
  return permission_warning(path);
}

Status ApiKeys::set_admin(std::string_view key, std::string_view where) {
  LOCKET_TRY(Key entry, read_entry(trimmed(key), where));
  return add_admin(std::move(entry), where);
}

Result<std::optional<std::string>> ApiKeys::set_admin_file(const std::filesystem::path& path) {
  LOCKET_TRY(const std::string text, read_whole_file(path, kMostFileBytes));
  const std::vector<Entry> entries = entries_of(text, '\n');
  if (entries.size() != 1) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} has {} keys; it must have one, the admin key", path.string(),
                            entries.size()));
  }
  LOCKET_TRY_STATUS(set_admin(entries.front().text, path.string()));
  return permission_warning(path);
}

KeyCheck ApiKeys::check(const std::vector<Key>& keys, const HttpRequest& request) const {
  using Outcome = KeyCheck::Outcome;
  const std::string_view presented = presented_key(request);
  if (presented.empty()) return {.outcome = Outcome::kMissing, .message = kMissingText};
  const Key* const key = find(keys, keyed(digest_of(presented)));
  if (key == nullptr) return {.outcome = Outcome::kWrong, .message = kWrongText};
  return {.outcome = Outcome::kAllowed, .name = key->name};
}

KeyCheck ApiKeys::check_client(const HttpRequest& request) const {
  return client_keys_.empty() ? KeyCheck{} : check(client_keys_, request);
}

KeyCheck ApiKeys::check_admin(const HttpRequest& request) const {
  if (admin_keys_.empty()) return {.outcome = KeyCheck::Outcome::kOff, .message = kOffText};
  return check(admin_keys_, request);
}

}  // namespace locket::server
