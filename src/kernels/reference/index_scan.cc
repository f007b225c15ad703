#include "kernels/index_scan.h"

#include <span>
#include <vector>

#include "kernels/reference/reference.h"

namespace locket::kernels::reference {

void index_scan(const IndexScan& scan) {
  for (std::size_t q = 0; q < scan.queries.size(); ++q) {
    const IndexQuery& query = scan.queries[q];
    const std::size_t bytes = row_bytes(scan.format, query.dim);
    std::vector<float> key(query.dim);
    float* score = scan.scores + q * scan.stride;
    for (const KeyRun& run : scan.runs) {
      for (std::size_t j = 0; j < run.count; ++j) {
        decode_row(scan.format, {run.rows + j * bytes, bytes}, key);
        index_scores({.heads = query.heads,
                      .dim = query.dim,
                      .query = query.values,
                      .weights = query.weights,
                      .keys = key,
                      .rounding = query.rounding},
                     {score++, 1});
      }
    }
  }
}

}  // namespace locket::kernels::reference
