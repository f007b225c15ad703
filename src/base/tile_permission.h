// Wide registers that the operating system hands out only to those who ask. Thread-safe.
#pragma once

namespace locket {

// Asks for the tile registers of AMX, for all threads of the process. False: there are none, or the
// system does not save them. REQUIRES: an x86-64 processor.
bool ask_for_tile_registers();

}  // namespace locket
