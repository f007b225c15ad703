// The inside of a call block, byte by byte: calls and their arguments as JSON text, written while
// they come in.
//
//   <｜DSML｜ calls>
//   <｜DSML｜ invoke name="NAME">
//   <｜DSML｜ parameter name="K" string="true|false">VALUE</｜DSML｜ parameter>
//   </｜DSML｜ invoke>
//   </｜DSML｜ calls>
//
// Text between tags is skipped; tags of the generation before (no space after ｜DSML｜, tool_calls)
// are understood too. A block that begins with its first invoke needs no closing tag of its own. A
// call with a broken tag is dropped, since what it was meant to say is not known. A call is
// announced with its first parameter, so that one that is broken from the start is never heard of.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/reply.h"
#include "chat/reply_events.h"
#include "chat/stop_scanner.h"

namespace locket::chat {

enum class BlockStart {
  kAfterTagOpen,  // behind `<｜DSML｜`
  kInside,        // behind the whole opening tag, which the prompt holds
  kCount
};

class CallParser {
 public:
  // Calls are numbered from `first_call` on in events.
  CallParser(BlockStart start, std::size_t first_call);

  enum class Progress { kInside, kBlockClosed };

  // Takes one byte; events of calls go to `events`. REQUIRES: the block is not closed.
  Progress push(char byte, ReplyEvents& events);

  // Whether nothing in the block was a tag.
  bool is_empty() const { return !has_tags_; }

  // Whether the output may end here: nothing is open but a block that needs no closing tag.
  bool is_complete_without_closer() const { return is_bare_ && state_ == State::kBlock; }

  // The whole calls so far.
  std::vector<ReplyCall> take_calls() { return std::move(calls_); }
  std::size_t begun_calls() const { return begun_calls_; }
  std::size_t announced_calls() const { return announced_calls_; }

 private:
  enum class State {
    kBlock,   // between calls
    kName,    // in a call's name
    kCall,    // between parameters
    kHeader,  // in a parameter's tag, behind `parameter name="`
    kValue,
    kCloser,  // behind `</｜DSML｜`
    kSkip,    // in a call that is dropped
    kCount
  };
  enum class ValueKind { kString, kJson, kCount };
  enum class CloserForm { kWhole, kBroken, kCount };

  struct OpenCall {
    ReplyCall call;
    std::size_t number = 0;
    std::size_t parameters = 0;
    bool is_announced = false;
  };

  void enter(State state);
  void expect_closer(State from);
  void keep(char byte);

  void push_block(char byte);
  void push_name(char byte);
  void push_call(char byte);
  void push_header(char byte, ReplyEvents& events);
  void push_value(char byte, ReplyEvents& events);
  void push_skip(char byte);
  Progress push_closer(char byte, ReplyEvents& events);
  Progress close(CloserForm form, ReplyEvents& events);

  void begin_call();
  void begin_parameter(ReplyEvents& events);
  void end_value(ReplyEvents& events);
  void end_call(ReplyEvents& events);
  void announce(ReplyEvents& events);
  void add_arguments(std::string_view text, ReplyEvents& events);

  State state_ = State::kBlock;
  std::string tail_;  // the last bytes of the state, enough for every mark
  bool tail_is_all_;  // kBlock: tail_ holds everything since the tag that opened the block

  State closed_from_ = State::kBlock;  // kCloser: the state that the closing tag interrupts
  std::string closer_name_;

  std::string header_;
  bool awaits_header_ = false;  // kCall: behind the word of a tag `parameter`
  std::size_t header_matched_ = 0;

  StopScanner value_end_;
  ValueKind value_kind_ = ValueKind::kString;

  OpenCall open_;
  std::vector<ReplyCall> calls_;
  std::size_t first_call_;
  std::size_t begun_calls_ = 0;
  std::size_t announced_calls_ = 0;
  bool has_tags_ = false;
  bool is_bare_ = false;
};

}  // namespace locket::chat
