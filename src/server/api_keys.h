// Who may ask. Keys come from files and lists; a request is allowed by `Authorization: Bearer KEY`
// or by `x-api-key: KEY` (Authorization wins if both are there). The name of a key is the caller:
// its memory, its limits and its bill. Several keys may share a name, so that keys can be changed
// without losing the memory.
//
// An entry is KEY, NAME:KEY or NAME:sha256:HEX (the digest of a key that is not to stand in a
// file). A key alone is named after its digest, so the order of keys means nothing. Only keyed
// digests are kept; comparing looks at every byte of every one, so that time tells nothing.
// Filled once at start; checking is thread-safe afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "server/http_exchange.h"

namespace locket::server {

// The answer to "who is it?".
struct KeyCheck {
  enum class Outcome { kAllowed, kMissing, kWrong, kOff, kCount } outcome = Outcome::kAllowed;
  std::string name = {};     // of the key; empty if none is needed
  std::string message = {};  // for the client; empty if allowed
};

class ApiKeys {
 public:
  ApiKeys();

  // Entries separated by commas, as in an option or a variable. `where` names it in errors, which
  // never show a key. kBadRequest: an entry that is none; a key that is there under another name.
  [[nodiscard]] Status add_list(std::string_view text, std::string_view where);
  // One entry per line; empty lines and lines that begin with "#" are skipped.
  [[nodiscard]] Status add_lines(std::string_view text, std::string_view where);
  // The lines of a file. A warning if others can read it.
  [[nodiscard]] Result<std::optional<std::string>> add_file(const std::filesystem::path& path);

  // The key of the actions that change the server. It is no key of requests, and must be none.
  [[nodiscard]] Status set_admin(std::string_view key, std::string_view where);
  // From a file that holds this one entry; a warning if others can read it.
  [[nodiscard]] Result<std::optional<std::string>> set_admin_file(
      const std::filesystem::path& path);

  // Without keys everybody is allowed.
  std::size_t size() const { return client_keys_.size(); }
  bool has_admin() const { return !admin_keys_.empty(); }

  KeyCheck check_client(const HttpRequest& request) const;
  // kOff if there is no admin key.
  KeyCheck check_admin(const HttpRequest& request) const;

 private:
  struct Key {
    std::string name;
    Sha256Digest digest;  // keyed with secret_
  };
  Sha256Digest keyed(const Sha256Digest& digest) const;
  // The key with this digest.
  const Key* find(const std::vector<Key>& keys, const Sha256Digest& digest) const;
  [[nodiscard]] Result<Key> read_entry(std::string_view entry, std::string_view where) const;
  [[nodiscard]] Status add_client(Key key, std::string_view where);
  [[nodiscard]] Status add_admin(Key key, std::string_view where);
  KeyCheck check(const std::vector<Key>& keys, const HttpRequest& request) const;

  std::array<std::byte, 32> secret_ = {};
  std::vector<Key> client_keys_;
  std::vector<Key> admin_keys_;  // one, or none
};

}  // namespace locket::server
