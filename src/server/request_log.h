// What the log says about requests: one record for each, and a line with rates from time to time.
// Never any text of a prompt or an answer; what clients choose (ids, paths, names) is cut and
// escaped. Thread-safe.
#pragma once

#include <string>

#include "server/metrics.h"
#include "server/request_record.h"
#include "service/dispatcher.h"

namespace locket::server {

// One JSON object on one line. Names of milliseconds end in _ms.
std::string request_json(const RequestRecord& record);
// The same in brief, for people.
std::string request_text(const RequestRecord& record);
// To the log, in its style.
void log_request(const RequestRecord& record);

// What happened in the `seconds` between two looks at the dispatcher; empty if nothing did.
std::string rates_text(const service::DispatcherLoad& before, const service::DispatcherLoad& now,
                       double seconds, const MemoryNumbers& memory);

}  // namespace locket::server
