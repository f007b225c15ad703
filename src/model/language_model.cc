#include "model/language_model.h"

#include <algorithm>

namespace locket::model {

tensor::FloatMatrix pick_rows(const tensor::FloatMatrix& rows,
                              std::span<const std::size_t> numbers) {
  tensor::FloatMatrix picked(numbers.size(), rows.columns());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::ranges::copy(rows.row(numbers[i]), picked.row(i).begin());
  }
  return picked;
}

ResidualRows pick_rows(const ResidualRows& rows, std::span<const std::size_t> numbers) {
  return {.streams = pick_rows(rows.streams, numbers), .pre = pick_rows(rows.pre, numbers)};
}

}  // namespace locket::model
