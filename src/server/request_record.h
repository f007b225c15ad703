// One HTTP request after it was answered, as metrics and log want to know it. Never any text of a
// prompt or an answer. Plain data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/reply_writer.h"
#include "service/request_sink.h"

namespace locket::server {

struct RequestRecord {
  std::string id = {};      // of the answer; x-request-id
  std::string method = {};  // as sent
  std::string path = {};    // as sent, without its query; for the log
  // The name of the route that answered, as "/v1/chat/completions": one of a fixed set, since
  // metrics keep a row for each. Empty: there was none.
  std::string route = {};
  std::string peer = {};    // address of the client
  std::string tenant = {};  // name of the API key; empty without keys
  std::string model = {};   // the served name; empty if no model was asked for
  // Names of the body that nothing reads, never their values; a bounded number.
  std::vector<std::string> ignored_fields = {};
  int status = 200;
  double total_seconds = 0;  // from its head to the last byte of the answer

  // Requests that reached the model; all below is of them.
  bool is_generation = false;
  bool is_stream = false;
  std::string finish = {};  // a finish reason; empty if there is an error
  std::string error = {};   // name of an error code; empty if there is none
  std::size_t max_tokens = 0;
  service::RequestUsage usage = {};
  service::RequestTimes times = {};
  std::optional<Bill> bill = {};
};

}  // namespace locket::server
