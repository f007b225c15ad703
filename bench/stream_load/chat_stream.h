// One streamed chat completion over a plain socket that never blocks: sends the request, takes the
// answer apart as it comes, and can leave at any point, as clients do. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace locket::stream_load {

// An IPv4 address and a port.
struct Address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

class ChatStream {
 public:
  enum class State {
    kSending,
    kWaiting,  // no word of the answer has come
    kSpeaking,
    kDone,    // the whole answer has come
    kFailed,  // error() says why
    kCount
  };
  // Begins to connect and to send a POST of `body` to /v1/chat/completions.
  ChatStream(const Address& address, std::string_view body);
  ChatStream(const ChatStream&) = delete;
  ChatStream& operator=(const ChatStream&) = delete;
  // The client leaves.
  ~ChatStream();

  int socket() const { return socket_; }
  State state() const { return state_; }
  bool is_over() const { return state_ == State::kDone || state_ == State::kFailed; }
  bool has_head() const { return has_head_; }
  // All words so far: reasoning, then content.
  const std::string& text() const { return text_; }
  const std::string& error() const { return error_; }
  // Of the usage; 0 until the end.
  std::size_t completion_tokens() const { return completion_tokens_; }

  // Sends and reads what can be without waiting. Returns how many events with words have come.
  std::size_t move_on();
  // It will leave like a client that is killed, not like one that closes.
  void reset_on_leaving() const;

 private:
  void send_request();
  void receive();
  void take_head();
  void take_chunks();
  std::size_t take_events();
  std::size_t take_event(std::string_view data);
  void fail(std::string reason);

  int socket_ = -1;
  State state_ = State::kSending;
  std::string output_;
  std::size_t sent_ = 0;
  std::string input_;  // came, and is not taken apart yet
  std::string body_;   // of the answer: events that are not whole yet
  bool has_head_ = false;
  bool is_at_end_ = false;  // of the answer
  bool has_finish_ = false;
  std::string text_;
  std::string error_;
  std::size_t completion_tokens_ = 0;
};

}  // namespace locket::stream_load
