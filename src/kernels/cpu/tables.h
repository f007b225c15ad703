// The kernel tables of this folder that run on this machine, the fastest last.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"

namespace locket::kernels::cpu {

std::vector<const KernelTable*> supported_tables();

}  // namespace locket::kernels::cpu
