// One connection from its first byte to its end, as a coroutine: reads requests one after another,
// each within its limits and deadlines, hands them to the handler, and sends the answers in order.
// While an answer is awaited it goes on reading, so that it learns at once when the client leaves;
// a client that closes its side for writing has left too.
#pragma once

#include "server/internal/server_state.h"
#include "server/internal/wire.h"

namespace locket::server {

enum class Role {
  kServe,
  kRefuse,  // answers 503 and closes
  kCount
};

// Returns at once. `state` must outlive the connection; the executor of `socket` is a strand.
void start_connection(Wire::Socket socket, ServerState& state, Role role);

}  // namespace locket::server
