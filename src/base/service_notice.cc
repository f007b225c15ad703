#include "base/service_notice.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace locket {

Status notify_service_manager(std::string_view socket, std::string_view notice) {
  if (socket.empty()) return {};
  sockaddr_un address = {};
  const bool has_form = socket.size() > 1 && (socket.front() == '/' || socket.front() == '@');
  if (!has_form || socket.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("NOTIFY_SOCKET is \"{}\"; it must be an absolute path or \"@\" and a "
                            "name, shorter than {} bytes",
                            socket, sizeof(address.sun_path)));
  }
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, socket.size());
  // A name that begins with a zero byte lies outside the file system.
  if (socket.front() == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ssize_t sent = -1;
  if (descriptor >= 0) {
    sent = ::sendto(descriptor, notice.data(), notice.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                    reinterpret_cast<const sockaddr*>(&address), size);
  }
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (sent == static_cast<ssize_t>(notice.size())) return {};
  return fail(ErrorCode::kIo, fmt::format("the service manager at {} was not told {}: {}", socket,
                                          notice, std::strerror(reason)));
}

}  // namespace locket
