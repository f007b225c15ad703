// expect: ignoring return value of .*pack_weights
#include "kernels/weight_matrix.h"

bool use(const locket::kernels::StoredMatrix& stored) {
  locket::kernels::pack_weights(stored);
  return true;
}
