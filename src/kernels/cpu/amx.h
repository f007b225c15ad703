// Whether tiles may be used: the processor has them with int8 and bfloat16, and the system has
// given them to this process. Asked once; thread-safe.
#pragma once

namespace locket::kernels::cpu {

bool amx_is_usable();

}  // namespace locket::kernels::cpu
