// The kernel tables by name: what a user pins, and what an error can offer instead. Plain
// functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/kernel_table.h"

namespace locket::kernels {

// The table of this name. kBadRequest for a name that no build has, kUnsupported for one that this
// machine cannot run; both name what can be had.
[[nodiscard]] Result<const KernelTable*> find_kernels(std::string_view name);

// The names of available_kernels(), the fastest last: "reference, avx2, avx512".
std::string available_kernel_names();

}  // namespace locket::kernels
