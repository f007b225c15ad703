// Answers of Responses. A stream opens one output item after the other and closes each before the
// next: added, its part added, deltas, part done, item done. Two things end otherwise: a call that
// the model did not finish is never done, since clients run what is done, and is not in the final
// output either; and a stream that the limit cut in the middle of several calls has told of the
// whole ones, while a body delivers none of them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/reply_writer.h"

namespace locket::server {

// REQUIRES: one choice.
std::unique_ptr<ReplyWriter> make_responses_writer(ReplyInfo info);

// REQUIRES: result.error is empty; one choice.
std::string responses_body(const ReplyInfo& info, const service::RequestResult& result,
                           const std::optional<Bill>& bill);

}  // namespace locket::server
