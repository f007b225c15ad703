// The small questions: is it well, what models are there, how many tokens is this, what has been
// done. Each answers its exchange; those that take a moment do so on other threads.
#pragma once

#include "server/request_scope.h"

namespace locket::server {

// kHealth is whether it serves; kLive whether it should be left running; kReady whether it takes
// requests now.
void tell_health(RequestScope& scope);
// The list, or one (RouteMatch::name), in a shape that both worlds of clients read.
void list_models(RequestScope& scope);
void tell_version(RequestScope& scope);
void tell_metrics(RequestScope scope);
void tell_state(RequestScope scope);
// {"prompt"} or {"messages"} to ids, as vLLM has it; ids to text.
void tokenize(RequestScope scope);
void detokenize(RequestScope scope);

}  // namespace locket::server
