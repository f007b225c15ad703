// From the body of a request, in any dialect, to what the queue takes. Runs on the threads that
// prepare.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/message.h"
#include "server/reply_writer.h"
#include "server/serving.h"
#include "service/prepared_request.h"

namespace locket::server {

struct GenerationRequest {
  chat::ChatRequest request;
  service::PreparedRequest prepared;
  std::string echo;  // legacy completions
};

// kNotFound for a model that is not served; errors of parsing and prepare(). `key_name`: whose
// request it is.
[[nodiscard]] Result<GenerationRequest> read_generation(Serving& serving, Dialect dialect,
                                                        std::string_view body,
                                                        const std::string& key_name);

// The body as a chat request: for its prompt only.
[[nodiscard]] Result<chat::ChatRequest> read_chat_request(Serving& serving, Dialect dialect,
                                                          std::string_view body,
                                                          const std::string& key_name);

// The served name that a request with this name gets its answer from. kNotFound.
[[nodiscard]] Result<std::string> served_name(const Serving& serving, Dialect dialect,
                                              const std::string& name);

}  // namespace locket::server
