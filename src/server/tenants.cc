#include "server/tenants.h"

#include <fmt/format.h>
#include <span>

#include "base/hash.h"

namespace locket::server {

std::string tenant_of(const TenantParts& parts) {
  if (parts.key_name.empty() && parts.user_id.empty() && parts.cache_salt.empty()) return "";
  // Every part after its length: no two sets of parts make the same text.
  const std::string text = fmt::format("locket tenant 1\nkey {}:{}\nuser {}:{}\nsalt {}:{}\n",
                                       parts.key_name.size(), parts.key_name, parts.user_id.size(),
                                       parts.user_id, parts.cache_salt.size(), parts.cache_salt);
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

}  // namespace locket::server
