// Requests that wait for their turn: whose owner has the fewest at work comes first, and of those
// who came first. Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "service/request_run.h"

namespace locket::service {

class WaitingRequests {
 public:
  std::size_t size() const { return waiting_.size(); }
  bool is_empty() const { return waiting_.empty(); }
  // Waiting and at work.
  std::size_t count_of(const std::string& owner) const;

  void push(std::shared_ptr<RequestRun> run);
  // The next one; it stays until start_next(). REQUIRES: not empty.
  const RequestRun& next() const { return **find_next(); }
  // It is at work from now on, until forget().
  std::shared_ptr<RequestRun> start_next();
  // Takes one out that waits; null: it does not wait.
  std::shared_ptr<RequestRun> remove(std::uint64_t id);
  // One that was at work has ended.
  void forget(const RequestRun& run);

 private:
  struct Owner {
    std::size_t waiting = 0;
    std::size_t working = 0;
  };
  using List = std::list<std::shared_ptr<RequestRun>>;

  List::const_iterator find_next() const;
  std::shared_ptr<RequestRun> take(List::const_iterator at);
  void drop_if_idle(const std::string& owner);

  List waiting_;  // in the order of arrival
  std::map<std::string, Owner> owners_;
};

}  // namespace locket::service
