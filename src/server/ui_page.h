// The page /ui: one document with its style and script inside, which loads nothing from anywhere
// and asks only this server. Its headers let nothing else happen: the policy names style and script
// by their digests. It holds no data and needs no key; what it shows it gets from /ui/state. Pure
// function, thread-safe.
#pragma once

#include "server/http_exchange.h"

namespace locket::server {

HttpResponse ui_page();

}  // namespace locket::server
