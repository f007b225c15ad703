// What the memory of each released generation costs: V1 (two full vectors per head and layer) to
// V4.1 (2.5 rows of FP4 per token). Computed from each model's geometry and row formats; no total
// is typed in. A layout is one way to store the memory (bf16, or what the vendor serves); its
// streams are the parts that grow with the text, its fixed parts are paid once per sequence.
//
// Plain data, built anew by each call; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace locket::model {

// One row of `row_bytes` per `tokens_per_row` tokens in each of `layers` layers.
struct LineageStream {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t row_bytes = 0;
  std::int64_t tokens_per_row = 1;
  std::string row;  // what the row is made of, for example "512 e2m1 + 32 e4m3 scales"

  std::string formula() const;  // "3 x 288 / 2"
  double bytes_per_token() const;
};

struct LineageFixedPart {
  std::string name;
  std::string formula;
  std::int64_t bytes = 0;
};

struct LineageLayout {
  std::string name;
  std::vector<LineageStream> streams;
  std::vector<LineageFixedPart> fixed_parts;

  double bytes_per_token() const;
  std::int64_t fixed_bytes() const;  // per sequence
};

// A number of the model's shape that its memory depends on.
struct LineageDimension {
  std::string name;
  std::int64_t value = 0;
};

struct LineageModel {
  std::string id;          // "v4.1-flash"
  std::string generation;  // "V4.1-Flash"
  std::vector<LineageDimension> geometry;
  std::vector<LineageLayout> layouts;
};

// Every released generation, oldest first; the last one is V4.1-Flash with one layout.
std::vector<LineageModel> lineage_models();

}  // namespace locket::model
