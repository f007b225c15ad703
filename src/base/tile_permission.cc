#include "base/tile_permission.h"

#include <unistd.h>

namespace locket {

bool ask_for_tile_registers() {
  constexpr long kArchPrctl = 158;  // of x86-64; other processors lack the name in their headers
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // the state component of XSAVE
  return ::syscall(kArchPrctl, kRequestPermission, kTileData) == 0;
}

}  // namespace locket
