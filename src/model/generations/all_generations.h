// Every generation, one function each; its files have the same name. Thread-safe.
#pragma once

#include "model/generations/generation.h"

namespace locket::model {

Generation v1_generation();
Generation v2_generation();
Generation v3_generation();
Generation v32_generation();
Generation v4_generation();
Generation v41_generation();

}  // namespace locket::model
