// A model behind HTTP: listens at once, loads the model meanwhile, serves, and ends in good order.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/server_options.h"
#include "service/loaded_model.h"

namespace locket::server {

// Loads the model; called on a thread of the server. The function it is given takes the share that
// is done, 0 to 1.
using OpenModel =
    std::function<Result<service::LoadedModel>(const std::function<void(double)>& on_progress)>;

class Server {
 public:
  // Listens from now on, and answers 503 until the model is there. kBadRequest for options that
  // contradict each other, kIo if it cannot listen.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const ServerOptions& options,
                                                             OpenModel open_model);
  struct State;
  explicit Server(std::unique_ptr<State> state);  // use start()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Ends everything now; what was read stays in the memory.
  ~Server();

  std::uint16_t port() const;
  // "http://127.0.0.1:8000".
  std::string url() const;

  // Returns when the model is there, or with the reason why it is not. kCancelled if finish() came
  // first.
  [[nodiscard]] Status wait_until_ready();
  // From any thread, also a signal's: the first call takes no new requests and lets those in flight
  // end within shutdown_timeout; the second ends them now.
  void finish();
  // Returns when finish() was called and nothing is left to do; the memory is written then.
  void wait_until_finished();

  // What people see at the start: one line each.
  std::string ready_json() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace locket::server
