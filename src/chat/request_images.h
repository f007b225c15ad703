// Whether the source of a picture in a request is one: the scheme of its URL, and of a data URL the
// base64 text and the frame of the file in it (kind, and that it is not cut off). Pictures are not
// decoded. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

// kBadRequest names the place, what was found and what would be right. `path` is that of the
// picture.
[[nodiscard]] Status check_image(std::string_view path, const ImageSource& image);

// The level of detail of a picture; empty if the object names none.
[[nodiscard]] Result<std::string> parse_image_detail(const JsonValue& image, std::string_view path);

}  // namespace locket::chat
