#include "chat/render_prompt.h"

#include <string_view>

#include "base/check.h"
#include "chat/render_plain_turns.h"
#include "chat/render_v3.h"
#include "chat/render_v32.h"
#include "chat/render_v4.h"
#include "chat/render_v41.h"

namespace locket::chat {
namespace {

constexpr std::string_view kSmolLm2System =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

}  // namespace

Result<RenderedPrompt> render_segments(const ChatRequest& request, ChatFormat format) {
  LOCKET_TRY_STATUS(check_format(request, format));
  switch (format) {
    case ChatFormat::kV1:
      return render_v1(request);
    case ChatFormat::kV3:
      return render_v3(request, V3Thinking::kNone);
    case ChatFormat::kR1:
      return render_v3(request, V3Thinking::kAlways);
    case ChatFormat::kV31:
      return render_v3(request, V3Thinking::kChosen);
    case ChatFormat::kV32:
      return render_v32(request);
    case ChatFormat::kV4:
      return render_v4(request);
    case ChatFormat::kV41:
      return render_segments(request);
    case ChatFormat::kChatMl:
      return render_chatml(request, {});
    case ChatFormat::kSmolLm2:
      return render_chatml(request, kSmolLm2System);
    case ChatFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

Result<RenderedPrompt> render_prompt(const ChatRequest& request, ChatFormat format,
                                     const tokenizer::Tokenizer& tokenizer) {
  LOCKET_TRY(RenderedPrompt prompt, render_segments(request, format));
  return encode_prompt(std::move(prompt), tokenizer);
}

}  // namespace locket::chat
