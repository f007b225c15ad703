#include "server/reply_writer.h"

#include <utility>

#include "base/check.h"
#include "server/chat_writer.h"
#include "server/completion_writer.h"
#include "server/messages_writer.h"
#include "server/responses_writer.h"

namespace locket::server {

std::unique_ptr<ReplyWriter> make_reply_writer(Dialect dialect, ReplyInfo info) {
  switch (dialect) {
    case Dialect::kChat:
      return make_chat_writer(std::move(info));
    case Dialect::kCompletions:
      return make_completion_writer(std::move(info));
    case Dialect::kResponses:
      return make_responses_writer(std::move(info));
    case Dialect::kMessages:
      return make_messages_writer(std::move(info));
    case Dialect::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::string reply_body(Dialect dialect, const ReplyInfo& info, const service::RequestResult& result,
                       const std::optional<Bill>& bill) {
  switch (dialect) {
    case Dialect::kChat:
      return chat_body(info, result, bill);
    case Dialect::kCompletions:
      return completion_body(info, result, bill);
    case Dialect::kResponses:
      return responses_body(info, result, bill);
    case Dialect::kMessages:
      return messages_body(info, result, bill);
    case Dialect::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::server
