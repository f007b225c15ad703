// Answers of Completions, the old shape: the text of a choice, in a stream piece by piece. Finish,
// usage, errors and the end are those of Chat.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/reply_writer.h"

namespace locket::server {

std::unique_ptr<ReplyWriter> make_completion_writer(ReplyInfo info);

// REQUIRES: result.error is empty.
std::string completion_body(const ReplyInfo& info, const service::RequestResult& result,
                            const std::optional<Bill>& bill);

}  // namespace locket::server
