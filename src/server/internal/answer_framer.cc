#include "server/internal/answer_framer.h"

#include <utility>

#include "server/internal/http_text.h"

namespace locket::server {

void AnswerFramer::pack(AnswerChannel::Parcel parcel, std::string& out) {
  if (parcel.ending == AnswerChannel::Ending::kMissing) {
    const HttpResponse error = plain_error(500, "the server has failed to answer");
    pack_whole(error, error.body, out);
    return;
  }
  if (parcel.head && parcel.is_whole) {
    pack_whole(*parcel.head, parcel.bytes, out);
    return;
  }
  if (parcel.head) {
    is_begun_ = true;
    is_chunked_ = facts_.version != 10;
    has_body_ = !facts_.is_head && !has_no_body(parcel.head->status);
    if (!is_chunked_) facts_.keeps_alive = false;
    out += response_head(*parcel.head,
                         {.version = facts_.version,
                          .framing = is_chunked_ ? Framing::kChunked : Framing::kUntilClose,
                          .keeps_alive = facts_.keeps_alive});
  }
  if (!is_streaming()) return;
  pack_piece(parcel.bytes, out);
  is_over_ = parcel.ending != AnswerChannel::Ending::kOpen;
  if (parcel.ending == AnswerChannel::Ending::kBroken) facts_.keeps_alive = false;
  if (parcel.ending == AnswerChannel::Ending::kDone && is_chunked_ && has_body_) out += kLastChunk;
}

void AnswerFramer::pack_whole(const HttpResponse& head, std::string_view body, std::string& out) {
  is_begun_ = true;
  is_over_ = true;
  out += response_head(head, {.version = facts_.version,
                              .framing = Framing::kLength,
                              .body_bytes = body.size(),
                              .keeps_alive = facts_.keeps_alive});
  if (!facts_.is_head && !has_no_body(head.status)) out += body;
}

void AnswerFramer::pack_piece(std::string_view bytes, std::string& out) const {
  if (bytes.empty() || !has_body_) return;
  if (is_chunked_) {
    append_chunk(out, bytes);
  } else {
    out += bytes;
  }
}

}  // namespace locket::server
