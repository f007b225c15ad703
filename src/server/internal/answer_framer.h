// Turns what a handler gave into the bytes of one HTTP answer: head, chunks, end. Knows how this
// client finds the end of the body, and whether the connection can go on afterwards. An answer to
// HEAD is the same without its body. Not thread-safe.
#pragma once

#include <string>

#include "server/internal/answer_channel.h"

namespace locket::server {

class AnswerFramer {
 public:
  struct Facts {
    int version = 11;  // of the request
    bool is_head = false;
    bool keeps_alive = true;
  };

  explicit AnswerFramer(const Facts& facts) : facts_(facts) {}

  // The connection is to end after this answer; says so if the head is not yet out.
  void end_connection() { facts_.keeps_alive = false; }

  // Appends the bytes of a parcel to `out`.
  void pack(AnswerChannel::Parcel parcel, std::string& out);
  // Appends bytes of the body. REQUIRES: is_streaming().
  void pack_piece(std::string_view bytes, std::string& out) const;

  // The head is out, and the end is not.
  bool is_streaming() const { return is_begun_ && !is_over_; }
  // All of the answer has been packed.
  bool is_over() const { return is_over_; }
  // Another request may follow.
  bool keeps_alive() const { return facts_.keeps_alive; }

 private:
  void pack_whole(const HttpResponse& head, std::string_view body, std::string& out);

  Facts facts_;
  bool is_begun_ = false;
  bool is_over_ = false;
  bool is_chunked_ = false;
  bool has_body_ = false;
};

}  // namespace locket::server
