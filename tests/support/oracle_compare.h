// Distances between a computed and a recorded row, and tallies of many of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace locket::test_support {

// |ours - theirs| / |theirs|, Euclidean; 0 if both are zero. NaN anywhere gives infinity.
double relative_l2(std::span<const float> ours, std::span<const float> theirs);
double max_abs_difference(std::span<const float> ours, std::span<const float> theirs);
double square_difference(std::span<const float> ours, std::span<const float> theirs);
std::size_t argmax(std::span<const float> values);
std::size_t count_different(std::span<const float> ours, std::span<const float> theirs);
// The largest distance of two bfloat16 values, counted in bfloat16 numbers between them.
std::int64_t max_bf16_units(std::span<const float> ours, std::span<const float> theirs);
// The largest difference of elements that are more than one bfloat16 unit apart, as a part of the
// root mean square of the row.
double max_beyond_one_unit(std::span<const float> ours, std::span<const float> theirs);

double median(std::vector<double> values);

// Rows of one kind that were compared.
struct RowTally {
  std::size_t rows = 0;
  std::size_t equal_rows = 0;  // in every value
  std::size_t elements = 0;
  std::size_t different_elements = 0;
  std::int64_t max_units = 0;  // bfloat16 units
  double max_relative = 0;     // relative L2
  double max_cancelled = 0;    // max_beyond_one_unit(): small where sums cancel

  // Returns the relative L2 distance of the row.
  double add(std::span<const float> ours, std::span<const float> theirs);
  void add(const RowTally& other);
  double equal_share() const;
  double different_element_share() const;
};

// "979 of 980 rows equal, 4 of 125440 elements differ (0.0032 %), largest relative L2 1.2e-03".
std::string describe(const RowTally& tally);

}  // namespace locket::test_support
