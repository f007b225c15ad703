// The parts of the page /ui, as they stand in ui/; the build makes the file that defines them.
#pragma once

#include <string_view>

namespace locket::server {

// With one marker each where style and script belong.
extern const std::string_view kUiHtml;
extern const std::string_view kUiStyle;
extern const std::string_view kUiScript;

}  // namespace locket::server
