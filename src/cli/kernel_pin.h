// The kernels that every command computes with: the fastest of the machine, or those that the
// variable LOCKET_TARGET names. Called once, before anything computes.
#pragma once

#include "base/result.h"

namespace locket::cli {

// Pins the kernels that LOCKET_TARGET names; nothing if it is unset or empty. Errors as
// kernels::find_kernels(), with the variable's name.
[[nodiscard]] Status pin_kernels();

// Whether LOCKET_TARGET has chosen.
bool kernels_are_pinned();

}  // namespace locket::cli
