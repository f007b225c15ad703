// Keeps web pages out that have no business here. A page on the internet can make a browser send
// requests to this machine, and can point a name of its own at it (DNS rebinding); the headers Host
// and Origin, which pages cannot choose, give both away. Also: which pages are let in (CORS), and
// where a server without keys may listen. Immutable, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/api_keys.h"
#include "server/http_exchange.h"

namespace locket::server {

struct GuardOptions {
  std::string bind_host = "127.0.0.1";
  // Names, besides those of the machine itself, under which the server is asked for.
  std::vector<std::string> allowed_hosts = {};
  // Pages that may ask, as "https://app.example" or "http://localhost:3000"; "*": all of them.
  // REQUIRES: each is one (check_origin).
  std::vector<std::string> cors_origins = {};
};

class RequestGuard {
 public:
  explicit RequestGuard(GuardOptions options);

  struct Verdict {
    enum class Kind {
      kPass,
      kPreflight,  // answer 204 at once, without a key: a browser asks before the request itself
      kRefused,    // answer 403
      kCount
    } kind = Kind::kPass;
    std::string message = {};  // of a refusal
    HttpHeaders headers = {};  // for the answer, whatever it is
  };
  // Of a request's head. A Host is allowed if it is an address (no name, so no rebinding), a name
  // of this machine or an allowed one; any, where the server listens to other machines, since it
  // asks for a key then. A request without Origin comes from no page. One from a page is allowed if
  // the page was served under the same Host, or may ask.
  Verdict check(const HttpRequest& head) const;

 private:
  bool is_host_allowed(std::string_view host) const;
  bool is_origin_allowed(std::string_view origin, std::string_view host) const;
  HttpHeaders cors_headers(std::string_view origin) const;

  GuardOptions options_;
  bool is_open_ = false;  // listens to other machines
};

// Whether only this machine can reach a server that listens there.
bool is_loopback_host(std::string_view host);

// kBadRequest if the server would take requests of others without a key.
[[nodiscard]] Status check_bind(std::string_view host, const ApiKeys& keys);

// kBadRequest unless `text` is "*" or scheme, host and port of a page, and nothing more.
[[nodiscard]] Status check_origin(std::string_view text);

}  // namespace locket::server
