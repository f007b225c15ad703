// Recorded vectors of other implementations (tests/data/oracle): tensors by name, and traces whose
// prefill and decode steps are read as one run of positions. Everything throws std::runtime_error
// with the missing name, so that a test fails instead of comparing nothing.
// Immutable after construction, so reading is thread-safe; spans live as long as the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/float_matrix.h"
#include "tensor/shape.h"

namespace locket::test_support {

// The three checkpoints that vectors exist for.
inline constexpr std::string_view kOracleShapes[] = {"micro", "odd", "thin"};

std::filesystem::path oracle_path(const std::string& name);
std::filesystem::path oracle_checkpoint(std::string_view shape);

// One line of measured figures on stdout.
void print_figures(const std::string& line);

struct OracleTensor {
  tensor::Shape shape;
  std::vector<float> floats;           // F32; BF16 widened
  std::vector<std::int32_t> integers;  // I32
  std::vector<std::uint8_t> bytes;     // U8

  std::size_t rows() const { return static_cast<std::size_t>(shape.front()); }
  std::size_t width() const;  // elements of a row
};

class OracleFile {
 public:
  explicit OracleFile(const std::filesystem::path& path);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  const OracleTensor& at(const std::string& name) const;
  const std::map<std::string, OracleTensor>& tensors() const { return tensors_; }
  // F32 or BF16 tensor as [first extent, product of the others].
  tensor::FloatMatrix matrix(const std::string& name) const;

 private:
  std::string path_;
  std::map<std::string, OracleTensor> tensors_;
};

// One prompt of a trace file: names start with `prompt_prefix` for the prompt's positions and with
// one of `step_prefixes` for the decode steps after it. Absent tensors give empty spans: a layer
// with nothing to choose from records no selection.
class OracleTrace {
 public:
  OracleTrace(const OracleFile& file, std::string prompt_prefix,
              std::vector<std::string> step_prefixes, std::size_t prompt_tokens);

  std::size_t prompt_tokens() const { return prompt_tokens_; }
  std::size_t positions() const { return prompt_tokens_ + step_prefixes_.size(); }
  // Whether the prompt has it.
  bool has(const std::string& name) const { return file_->has(prompt_prefix_ + name); }

  std::span<const float> floats(const std::string& name, std::size_t position) const;
  std::span<const std::int32_t> integers(const std::string& name, std::size_t position) const;
  std::span<const std::uint8_t> bytes(const std::string& name, std::size_t position) const;

  // Rows of a cache: those of the prompt, then the ones that steps added.
  std::vector<std::span<const float>> float_rows(const std::string& name) const;
  std::vector<std::span<const std::uint8_t>> byte_rows(const std::string& name) const;

  // All positions of a tensor below each other.
  tensor::FloatMatrix matrix(const std::string& name) const;

 private:
  struct Place {
    const OracleTensor* tensor = nullptr;
    std::size_t row = 0;
    std::size_t width = 0;
  };
  Place find(const std::string& name, std::size_t position) const;

  const OracleFile* file_;
  std::string prompt_prefix_;
  std::vector<std::string> step_prefixes_;
  std::size_t prompt_tokens_;
};

}  // namespace locket::test_support
