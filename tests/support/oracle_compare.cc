#include "tests/support/oracle_compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>

namespace locket::test_support {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_same_size(std::span<const float> ours, std::span<const float> theirs) {
  if (ours.size() != theirs.size() || ours.empty()) {
    throw std::runtime_error(
        fmt::format("rows of {} and {} values are compared", ours.size(), theirs.size()));
  }
}

// Neighbouring bfloat16 values have neighbouring numbers; +0 and -0 are one.
std::int64_t bf16_number(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value) >> 16;
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7FFFu);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

}  // namespace

double square_difference(std::span<const float> ours, std::span<const float> theirs) {
  require_same_size(ours, theirs);
  double sum = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = static_cast<double>(ours[i]) - static_cast<double>(theirs[i]);
    sum += difference * difference;
  }
  return std::isnan(sum) ? kInfinity : sum;
}

double relative_l2(std::span<const float> ours, std::span<const float> theirs) {
  const double distance = square_difference(ours, theirs);
  if (distance == 0) return 0;
  double size = 0;
  for (const float value : theirs) size += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(distance / size);
}

double max_abs_difference(std::span<const float> ours, std::span<const float> theirs) {
  require_same_size(ours, theirs);
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double distance =
        std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]));
    largest = std::isnan(distance) ? kInfinity : std::max(largest, distance);
  }
  return largest;
}

std::size_t argmax(std::span<const float> values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

std::size_t count_different(std::span<const float> ours, std::span<const float> theirs) {
  require_same_size(ours, theirs);
  std::size_t count = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) count += ours[i] == theirs[i] ? 0 : 1;
  return count;
}

std::int64_t max_bf16_units(std::span<const float> ours, std::span<const float> theirs) {
  require_same_size(ours, theirs);
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(bf16_number(ours[i]) - bf16_number(theirs[i])));
  }
  return largest;
}

double max_beyond_one_unit(std::span<const float> ours, std::span<const float> theirs) {
  require_same_size(ours, theirs);
  double square_sum = 0;
  for (const float value : theirs) {
    square_sum += static_cast<double>(value) * static_cast<double>(value);
  }
  const double size = std::sqrt(square_sum / static_cast<double>(theirs.size()));
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (max_bf16_units(ours.subspan(i, 1), theirs.subspan(i, 1)) <= 1) continue;
    largest = std::max(
        largest, std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])) / size);
  }
  return largest;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double RowTally::add(std::span<const float> ours, std::span<const float> theirs) {
  const std::size_t different = count_different(ours, theirs);
  const double distance = relative_l2(ours, theirs);
  rows += 1;
  equal_rows += different == 0 ? 1 : 0;
  elements += ours.size();
  different_elements += different;
  max_units = std::max(max_units, max_bf16_units(ours, theirs));
  max_relative = std::max(max_relative, distance);
  max_cancelled = std::max(max_cancelled, max_beyond_one_unit(ours, theirs));
  return distance;
}

void RowTally::add(const RowTally& other) {
  rows += other.rows;
  equal_rows += other.equal_rows;
  elements += other.elements;
  different_elements += other.different_elements;
  max_units = std::max(max_units, other.max_units);
  max_relative = std::max(max_relative, other.max_relative);
  max_cancelled = std::max(max_cancelled, other.max_cancelled);
}

double RowTally::equal_share() const {
  return rows == 0 ? 0 : static_cast<double>(equal_rows) / static_cast<double>(rows);
}

double RowTally::different_element_share() const {
  return elements == 0 ? 1
                       : static_cast<double>(different_elements) / static_cast<double>(elements);
}

std::string describe(const RowTally& tally) {
  return fmt::format(
      "{} of {} rows equal, {} of {} elements differ ({:.4f} %), largest relative L2 "
      "{:.1e}",
      tally.equal_rows, tally.rows, tally.different_elements, tally.elements,
      100 * tally.different_element_share(), tally.max_relative);
}

}  // namespace locket::test_support
