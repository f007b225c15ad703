// How many requests one caller may have at a time. A request counts from enter() until its ticket
// is gone, however it ends. Thread-safe; tickets may outlive the limits.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace locket::server {

class CallerLimits {
 public:
  // Of one caller; 0: no limit.
  explicit CallerLimits(std::size_t most_requests);

  class Ticket {
   public:
    virtual ~Ticket() = default;
  };
  // Null if the caller has as many as it may.
  std::shared_ptr<Ticket> enter(const std::string& caller);
  // Requests of a caller now.
  std::size_t count(const std::string& caller) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace locket::server
