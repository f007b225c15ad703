// Whose memory a request uses. Requests share memory only if key, user_id and cache_salt are all
// the same, since the time to the first token, and cached_tokens, tell what is remembered. The
// memory's own secret is mixed in where pages are named, so a tenant's digest need not be secret.
//
// The name "public" is no digest, and so no tenant of any request: it stands for what an operator
// shares with everybody. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "engine/model_memory.h"

namespace locket::server {

inline constexpr std::string_view kPublicTenant = engine::kPublicTenant;

struct TenantParts {
  std::string_view key_name = {};    // of the caller's API key
  std::string_view user_id = {};     // of the request
  std::string_view cache_salt = {};  // of the request
};

// 64 hexadecimal digits; different for parts that differ anywhere. Empty if all parts are: the
// memory of the command line.
std::string tenant_of(const TenantParts& parts);

}  // namespace locket::server
