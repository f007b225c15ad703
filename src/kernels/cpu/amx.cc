#include "kernels/cpu/amx.h"

#include "base/tile_permission.h"

namespace locket::kernels::cpu {

bool amx_is_usable() {
  static const bool kUsable = __builtin_cpu_supports("amx-tile") &&
                              __builtin_cpu_supports("amx-int8") &&
                              __builtin_cpu_supports("amx-bf16") && ask_for_tile_registers();
  return kUsable;
}

}  // namespace locket::kernels::cpu
