// Turns a model's output, as it is sampled, into reasoning, content and calls. The text may be cut
// anywhere, also inside a character: every cut gives the same Reply, and joined events equal it.
//
// The caller must not feed the end-of-sentence token. Memory grows with the reply. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/reply.h"

namespace locket::chat {

class ReplyParser {
 public:
  // REQUIRES: no stop string is empty.
  explicit ReplyParser(const ParserStart& start, std::vector<std::string> stop = {},
                       StopText stop_text = StopText::kDrop);
  ReplyParser(ReplyParser&&) noexcept;
  ReplyParser& operator=(ReplyParser&&) noexcept;
  ~ReplyParser();

  // Takes output text and returns what has become certain.
  std::vector<ReplyEvent> push(std::string_view text);

  // Whether nothing that follows can matter: a stop string was found, or the call block is closed.
  // The caller should end the generation then.
  bool is_finished() const;

  // The output has ended for `reason`. The last events, kFinish among them. REQUIRES: called once;
  // no push() afterwards.
  std::vector<ReplyEvent> finish(FinishReason reason);

  // What the events so far add up to; whole after finish().
  const Reply& reply() const;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace locket::chat
