#include "kernels/weight_matrix.h"

bool use(const locket::kernels::StoredMatrix& stored) {
  const auto packed = locket::kernels::pack_weights(stored);
  return packed.has_value();
}
