#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace locket::tokenizer {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

std::string StreamDecoder::push(TokenId id) {
  pending_ += tokenizer_.decode_bytes({&id, 1});
  std::string certain;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Part part = first_utf8_part(rest);
    if (part.kind == Utf8PartKind::kUnfinished) break;
    const bool broken = part.kind == Utf8PartKind::kBroken;
    certain.append(broken ? kReplacementCharacter : rest.substr(0, part.bytes));
    rest.remove_prefix(part.bytes);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return certain;
}

std::string StreamDecoder::finish() {
  std::string rest = repair_utf8(pending_);
  pending_.clear();
  return rest;
}

}  // namespace locket::tokenizer
