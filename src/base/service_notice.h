// Tells a service manager (systemd, in units of Type=notify) how the program is: one datagram to
// the socket that the manager named in NOTIFY_SOCKET. Thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"

namespace locket {

// `socket`: the value of NOTIFY_SOCKET, a path or "@" and an abstract name; empty: nobody waits,
// nothing is done. `notice`: for example "READY=1" or "STOPPING=1". kBadRequest for an address that
// is none, kIo if nobody takes it.
[[nodiscard]] Status notify_service_manager(std::string_view socket, std::string_view notice);

}  // namespace locket
