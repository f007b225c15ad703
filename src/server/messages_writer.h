// Answers of Messages. A stream is a message that starts, its blocks one after the other by index
// (thinking, text, tool_use), and the message's end with the reason and all token counts. Every
// event has its `event:` line and every block its stop, also one that was cut off: clients need
// them. The counts of the start take the whole prompt as not remembered; those of the end are
// exact.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/reply_writer.h"

namespace locket::server {

// REQUIRES: one choice.
std::unique_ptr<ReplyWriter> make_messages_writer(ReplyInfo info);

// Arguments that are no JSON object become one: {"raw_arguments": text}. REQUIRES: result.error is
// empty; one choice.
std::string messages_body(const ReplyInfo& info, const service::RequestResult& result,
                          const std::optional<Bill>& bill);

}  // namespace locket::server
