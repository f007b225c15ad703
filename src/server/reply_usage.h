// The token counts of an answer in the words of each dialect, as JSON objects. Where there is a
// bill they also hold a member "locket": where the remembered tokens came from, how long each phase
// took, and the price. Clients skip members that they do not know. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "server/reply_writer.h"
#include "service/request_sink.h"

namespace locket::server {

// Chat and Completions.
std::string chat_usage(const service::RequestResult& result, const std::optional<Bill>& bill);
std::string responses_usage(const service::RequestResult& result, const std::optional<Bill>& bill);
std::string messages_usage(const service::RequestResult& result, const std::optional<Bill>& bill);

// Messages: what is known before the answer begins.
std::string messages_first_usage(std::size_t prompt_tokens);

}  // namespace locket::server
