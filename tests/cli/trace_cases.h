// Traces that the program writes, read back.
#pragma once

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>

#include "checkpoint/safetensors.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {

struct TracedTensor {
  numerics::Dtype dtype = numerics::Dtype::kF32;
  tensor::Shape shape;
  std::string bytes;

  friend bool operator==(const TracedTensor&, const TracedTensor&) = default;
};

using Trace = std::map<std::string, TracedTensor>;

inline Trace read_trace(const std::filesystem::path& path) {
  const auto file = checkpoint::SafetensorsFile::open(path);
  if (!file) throw std::runtime_error(file.error().message);
  Trace trace;
  for (const checkpoint::TensorEntry& entry : file->tensors()) {
    TracedTensor& tensor = trace[entry.name];
    tensor = {entry.dtype, entry.shape, std::string(entry.byte_count, '\0')};
    const auto target = std::as_writable_bytes(std::span(tensor.bytes));
    if (!file->read_into(entry, target)) throw std::runtime_error(entry.name);
  }
  return trace;
}

inline std::vector<std::int32_t> integers_of(const TracedTensor& tensor) {
  std::vector<std::int32_t> values(tensor.bytes.size() / sizeof(std::int32_t));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

inline std::set<std::string> names_of(const Trace& trace) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : trace) names.insert(name);
  return names;
}

// Equal names, types, shapes and bytes.
inline void expect_same(const Trace& actual, const Trace& expected) {
  EXPECT_EQ(names_of(actual), names_of(expected));
  for (const auto& [name, tensor] : actual) {
    const auto other = expected.find(name);
    if (other == expected.end()) continue;
    EXPECT_EQ(tensor.shape, other->second.shape) << name;
    EXPECT_TRUE(tensor == other->second) << name << " differs";
  }
}

// Runs locket trace over a list of ids.
class TraceRunner {
 public:
  // Ids as a JSON text.
  explicit TraceRunner(std::string model, const std::string& ids) : model_(std::move(model)) {
    folder_.write("ids.json", ids);
  }
  // `count` random ids below `limit`, the same in every run.
  TraceRunner(std::string model, std::size_t count, std::uint32_t limit)
      : TraceRunner(std::move(model), random_ids(count, limit)) {}

  test_support::ProgramResult run(const std::vector<std::string>& more,
                                  const std::string& output = "trace.safetensors") const {
    std::vector<std::string> arguments = {"trace", model_,
                                          "--ids", (folder_ / "ids.json").string(),
                                          "-o",    (folder_ / output).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test_support::run_program(std::move(arguments));
  }

  Trace trace(const std::vector<std::string>& more,
              const std::string& output = "trace.safetensors") const {
    const test_support::ProgramResult result = run(more, output);
    if (result.exit_code != 0) throw std::runtime_error(result.errors);
    Trace read = read_trace(folder_ / output);
    EXPECT_EQ(result.output, std::to_string(read.size()) + " tensors written to " +
                                 (folder_ / output).string() + "\n");
    return read;
  }

  const test_support::TempFolder& folder() const { return folder_; }

 private:
  static std::string random_ids(std::size_t count, std::uint32_t limit) {
    std::mt19937 random(20260915);
    nlohmann::json ids = nlohmann::json::array();
    for (std::size_t i = 0; i < count; ++i) ids.push_back(random() % limit);
    return ids.dump();
  }

  std::string model_;
  test_support::TempFolder folder_;
};

}  // namespace locket::cli
