#include "cli/kernel_pin.h"

#include <cstdlib>
#include <string>

#include "kernels/kernel_choice.h"

namespace locket::cli {
namespace {

constexpr const char* kTargetVariable = "LOCKET_TARGET";

std::string target_name() {
  const char* const value = std::getenv(kTargetVariable);
  return value == nullptr ? "" : value;
}

}  // namespace

bool kernels_are_pinned() { return !target_name().empty(); }

Status pin_kernels() {
  const std::string name = target_name();
  if (name.empty()) return {};
  const Result<const kernels::KernelTable*> table = kernels::find_kernels(name);
  if (!table) {
    return fail(table.error().code, std::string(kTargetVariable) + ": " + table.error().message);
  }
  kernels::set_active_kernels(*table);
  return {};
}

}  // namespace locket::cli
