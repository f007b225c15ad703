#include "server/server_options.h"

namespace locket::server {
namespace {

void warn(const std::optional<std::string>& warning) {
  if (warning) log_warning(*warning);
}

}  // namespace

Result<ApiKeys> make_api_keys(const ServerOptions& options) {
  ApiKeys keys;
  for (const std::string& entries : options.api_keys) {
    LOCKET_TRY_STATUS(keys.add_list(entries, "api-key"));
  }
  if (!options.api_key_file.empty()) {
    LOCKET_TRY(const auto warning, keys.add_file(options.api_key_file));
    warn(warning);
  }
  if (!options.admin_key.empty() && !options.admin_key_file.empty()) {
    return fail(ErrorCode::kBadRequest,
                "there are two admin keys, admin-key and admin-key-file; there can be one");
  }
  if (!options.admin_key.empty()) {
    LOCKET_TRY_STATUS(keys.set_admin(options.admin_key, "admin-key"));
  }
  if (!options.admin_key_file.empty()) {
    LOCKET_TRY(const auto warning, keys.set_admin_file(options.admin_key_file));
    warn(warning);
  }
  LOCKET_TRY_STATUS(check_bind(options.http.host, keys));
  return keys;
}

GuardOptions guard_options(const ServerOptions& options) {
  return {.bind_host = options.http.host,
          .allowed_hosts = options.allowed_hosts,
          .cors_origins = options.cors_origins};
}

}  // namespace locket::server
