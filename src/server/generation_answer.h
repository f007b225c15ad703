// What a client is sent while the model speaks: events of a stream as they come, or one body at the
// end; and what is kept of it. The thread that runs the model calls it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "server/generation_request.h"
#include "server/reply_writer.h"
#include "server/request_scope.h"
#include "service/request_sink.h"

namespace locket::server {

class GenerationAnswer final : public service::RequestSink,
                               public std::enable_shared_from_this<GenerationAnswer> {
 public:
  GenerationAnswer(RequestScope scope, const GenerationRequest& request);

  // The request is queued under this id: the head of a stream goes out, and a client that leaves or
  // cannot follow is known to the queue.
  void begin(service::Dispatcher::RequestId id);
  // It could not be queued.
  void refuse(const Error& error);

  void on_update(const service::ChoiceUpdate& update) override;
  void on_end(const service::RequestResult& result) override;

 private:
  void begin_stream();
  void begin_padding();
  void end_padded(const service::RequestResult& result);
  void finish(const service::RequestResult& result);
  void keep(const service::RequestResult& result);
  void keep_items(const service::RequestResult& result);
  void fill_record(const service::RequestResult& result);

  RequestScope scope_;
  ReplyInfo info_;
  chat::ParserStart parser_;
  std::string tenant_;
  bool is_stream_;
  bool is_padded_;  // blank lines keep the connection alive until the JSON is there
  double last_token_ = 0;
  std::once_flag begun_;
  std::unique_ptr<ReplyWriter> writer_;  // of a stream
};

}  // namespace locket::server
