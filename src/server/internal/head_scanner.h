// Finds the end of a request's head while it arrives, looking at each byte once, and says as soon
// as the bytes cannot become HTTP: a client of another protocol is answered at once, not when its
// time is over. Whether the head is right is for parse_request_head() to say. Not thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace locket::server {

class HeadScanner {
 public:
  enum class State { kMore, kComplete, kNotHttp, kCount };

  // `bytes` are all bytes of the request so far: what the last call got, and more behind it.
  State scan(std::string_view bytes);

  // Bytes of the head with the empty line that ends it, once scan() has said kComplete.
  std::size_t head_bytes() const { return scanned_; }

 private:
  bool takes(char letter);

  std::size_t scanned_ = 0;
  std::size_t line_bytes_ = 0;  // of the current line, without its end
  bool is_in_method_ = true;
  bool is_after_return_ = false;
};

}  // namespace locket::server
