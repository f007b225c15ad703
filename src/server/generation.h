// A request for words: read in its dialect, made ready, queued, and answered while the model
// speaks.
#pragma once

#include "server/request_scope.h"

namespace locket::server {

// Answers `scope.exchange` sooner or later; returns at once. REQUIRES: the route is one of the four
// dialects', the model is there.
void generate(RequestScope scope);

// Only the prompt of the request, as JSON: its tokens and segments (kRenderChat), or their number
// (kCountTokens).
void render_only(RequestScope scope);

}  // namespace locket::server
