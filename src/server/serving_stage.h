// How far a server is on its way. Pure, thread-safe.
#pragma once

#include <string_view>

#include "base/check.h"

namespace locket::server {

enum class ServingStage { kLoading, kReady, kDraining, kFailed, kCount };

// The name in JSON: "loading".
inline std::string_view stage_name(ServingStage stage) {
  switch (stage) {
    case ServingStage::kLoading:
      return "loading";
    case ServingStage::kReady:
      return "ready";
    case ServingStage::kDraining:
      return "draining";
    case ServingStage::kFailed:
      return "failed";
    case ServingStage::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::server
