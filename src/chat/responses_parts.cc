#include "chat/responses_parts.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

#include "chat/json_fields.h"
#include "chat/message_text.h"
#include "chat/request_images.h"

namespace locket::chat {
namespace {

ContentPart text_part(std::string text) { return {ContentPart::Kind::kText, std::move(text), {}}; }

tl::unexpected<Error> unsupported_file(std::string_view path) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} is a file, which is not supported; send its text", path));
}

Result<ContentPart> parse_image(const JsonValue& part, std::string_view path) {
  const Fields fields(part, path);
  LOCKET_TRY(const auto url, fields.optional_string("image_url"));
  LOCKET_TRY(const auto file_id, fields.optional_string("file_id"));
  if (url && file_id) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{}: input_image cannot have both image_url and file_id", path));
  }
  if (file_id) return unsupported_file(fields.path_of("file_id"));
  if (!url) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{}: input_image must have image_url or file_id", path));
  }
  ContentPart out;
  out.kind = ContentPart::Kind::kImage;
  out.image.url = *url;
  LOCKET_TRY(out.image.detail, parse_image_detail(part, path));
  LOCKET_TRY_STATUS(check_image(path, out.image));
  return out;
}

Result<ContentPart> parse_part(const JsonValue& part, std::string_view path, PartKinds kinds) {
  if (!part.is_object()) return wrong_value(path, part, "an object with a type");
  const Fields fields(part, path);
  LOCKET_TRY(const std::string type, fields.required_string("type"));
  if (type == "input_text" || type == "output_text" || type == "text") {
    LOCKET_TRY(std::string text, fields.required_string("text"));
    return text_part(std::move(text));
  }
  if (type == "refusal") {
    LOCKET_TRY(std::string text, fields.required_string("refusal"));
    return text_part(std::move(text));
  }
  if (type == "input_file") return unsupported_file(path);
  if (type != "input_image") {
    return wrong_value(fields.path_of("type"), json_string(type),
                       "\"input_text\", \"output_text\", \"refusal\" or \"input_image\"");
  }
  if (kinds == PartKinds::kText) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} is an image; images may stand in user and developer messages and "
                            "in outputs of tools",
                            path));
  }
  return parse_image(part, path);
}

}  // namespace

Result<std::vector<ContentPart>> parse_responses_parts(const JsonValue* content,
                                                       std::string_view path, PartKinds kinds) {
  std::vector<ContentPart> parts;
  if (content == nullptr || content->is_null()) return parts;
  if (content->is_string()) {
    parts.push_back(text_part(content->text));
    return parts;
  }
  if (!content->is_array()) return wrong_value(path, *content, "a string or a list of parts");
  for (std::size_t index = 0; index < content->items.size(); ++index) {
    LOCKET_TRY(ContentPart part, parse_part(content->items[index], item_path(path, index), kinds));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<std::string> parse_reasoning_text(const JsonValue& item, std::string_view path) {
  const Fields fields(item, path);
  const std::string content_path = fields.path_of("content");
  std::string text;
  LOCKET_TRY(const JsonValue* content, fields.optional_array("content"));
  if (content == nullptr) return text;
  for (std::size_t index = 0; index < content->items.size(); ++index) {
    const JsonValue& part = content->items[index];
    const std::string part_path = item_path(content_path, index);
    if (!part.is_object()) return wrong_value(part_path, part, "an object with a text");
    LOCKET_TRY(const std::string more, Fields(part, part_path).required_string("text"));
    if (!text.empty()) text += kBlockGap;
    text += more;
  }
  return text;
}

}  // namespace locket::chat
