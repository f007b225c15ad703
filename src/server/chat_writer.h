// Answers of Chat Completions. The order of a stream is what all known clients take: the role once,
// in the first chunk of a choice; reasoning, content, calls; one finish for each choice, the last
// of them with the usage; [DONE]. A call's id, type and name stand only in its first delta, since
// some clients join repeated texts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/reply_writer.h"

namespace locket::server {

std::unique_ptr<ReplyWriter> make_chat_writer(ReplyInfo info);

// REQUIRES: result.error is empty.
std::string chat_body(const ReplyInfo& info, const service::RequestResult& result,
                      const std::optional<Bill>& bill);

}  // namespace locket::server
