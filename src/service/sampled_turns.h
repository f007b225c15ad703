// Old answers with tool calls as the very tokens that were sampled, found again by the ids of their
// calls. Clients send calls back as JSON, with other spacing and order, and leave reasoning out; a
// prompt rendered from that differs from what the model has read, and its memory is of no use. Only
// what agrees in meaning with what the client sent is put back, and only to the tenant it was said
// to. Kept within a byte budget, in memory or in the memory's folder.
//
// Thread-safe. keep() writes to disk: it is not for the thread that runs the model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/reply.h"
#include "service/kept_records.h"
#include "tokenizer/tokenizer.h"

namespace locket::service {

struct SampledTurn {
  std::vector<tokenizer::TokenId> ids;  // without the end token
  chat::ParserStart start;              // under which they were sampled
  std::optional<std::string> reasoning;
  std::string content;
  std::vector<chat::ReplyCall> calls;  // with the ids as the client was told them
};

class SampledTurns {
 public:
  // Errors as KeptRecords::open(); `model` of the options must name the model and its tokenizer.
  [[nodiscard]] static Result<SampledTurns> open(const KeptOptions& options);

  // A turn without calls, or with a call without an id, cannot be found again and is not kept.
  void keep(std::string_view tenant, const SampledTurn& turn);
  // The turn that made the call.
  std::optional<SampledTurn> find(std::string_view tenant, const std::string& call_id);

  // Gives assistant messages whose calls are those of one kept turn (ids, names, and arguments as
  // JSON values, in any order) the reasoning that they lack, puts their calls in the order in which
  // they were made, and, if content and reasoning agree as far as the client sent them, sets
  // Message::sampled. All other messages stay as they are.
  void put_back(std::string_view tenant, chat::ChatRequest& request);

  KeptUse use() const { return records_.use(); }

 private:
  explicit SampledTurns(KeptRecords records) : records_(std::move(records)) {}

  KeptRecords records_;
};

}  // namespace locket::service
