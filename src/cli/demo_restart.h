// The second part of the demo: a process reads a conversation, is killed before the last question,
// and another one answers from what lies on disk.
#pragma once

#include "base/result.h"
#include "cli/model_setup.h"
#include "cli/options.h"
#include "cli/recall_cases.h"

namespace locket::cli {

// Prints what the restart took beside computing everything again. Processes are started and killed
// for it; their memory lies in a folder of its own, which is removed at the end. kInternal if the
// answers or their bits differ.
[[nodiscard]] Status show_restart(const DemoOptions& wishes, const ModelSetup& setup,
                                  const RecallCase& conversation);

}  // namespace locket::cli
