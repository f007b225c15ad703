#include "tests/support/oracle_hf.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "tests/support/oracle_manifest.h"

namespace locket::test_support {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::string folder_of(std::string_view shape) { return fmt::format("hf/{}/", shape); }

std::vector<std::int32_t> joined(std::vector<std::int32_t> first,
                                 const std::vector<std::int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

template <class T>
std::vector<float> as_floats(std::span<const T> values, std::size_t width) {
  std::vector<float> result(values.begin(), values.end());
  result.resize(std::max(width, result.size()), -1.0f);
  return result;
}

std::vector<std::vector<float>> rows_of(const tensor::FloatMatrix& matrix) {
  std::vector<std::vector<float>> rows;
  for (std::size_t i = 0; i < matrix.rows(); ++i) {
    rows.emplace_back(matrix.row(i).begin(), matrix.row(i).end());
  }
  return rows;
}

}  // namespace

std::vector<std::int32_t> HfCase::tokens() const { return joined(prompt, appended); }

std::vector<HfCase> read_hf_cases(std::string_view shape, const std::string& set) {
  const OracleFile file(oracle_path(folder_of(shape) + set + ".safetensors"));
  const nlohmann::json manifest = read_oracle_manifest(folder_of(shape) + "manifest.json");
  std::vector<HfCase> cases;
  for (const auto& entry : manifest["sets"][set]["cases"]) {
    HfCase one;
    one.name = entry["name"];
    one.prompt = file.at(one.name + ".ids").integers;
    one.appended = file.at(one.name + ".decode_ids").integers;
    one.first_position = entry["first_logits_position"];
    const tensor::FloatMatrix prefill = file.matrix(one.name + ".logits");
    const tensor::FloatMatrix decode = file.matrix(one.name + ".decode_logits");
    one.logits = {prefill.rows() + decode.rows(), prefill.columns()};
    std::ranges::copy(prefill.values(), one.logits.values().begin());
    std::ranges::copy(decode.values(), one.logits.values().last(decode.values().size()).begin());
    const std::vector<float>& noise = file.at(one.name + ".noise").floats;
    one.noise.assign(noise.begin() + static_cast<std::ptrdiff_t>(one.first_position), noise.end());
    cases.push_back(std::move(one));
  }
  if (cases.empty()) throw std::runtime_error(fmt::format("{} {} has no prompts", shape, set));
  return cases;
}

HfTrace::HfTrace(std::string_view shape, const std::string& file)
    : name_(fmt::format("{} {}", shape, file.substr(0, file.find('.')))),
      mode_(file.find("_noq_") == std::string::npos ? model::NumericsMode::kWide
                                                    : model::NumericsMode::kPlain),
      file_(oracle_path(folder_of(shape) + file)),
      tokens_(joined(file_.at("ids").integers, file_.at("step_ids").integers)),
      trace_(file_, "", {"step0.", "step1."}, file_.at("ids").integers.size()) {
  if (trace_.positions() != tokens_.size()) throw std::runtime_error(file + ": steps are missing");
}

tensor::FloatMatrix HfTrace::rows(std::int64_t source) const {
  return file_.matrix(fmt::format("after.layers.{}.rows", source));
}

tensor::FloatMatrix HfTrace::keys(std::int64_t source) const {
  return file_.matrix(fmt::format("after.layers.{}.index_keys", source));
}

LayerBench::Reused HfTrace::reused(const model::V41Config& config, std::int64_t layer,
                                   std::size_t position) const {
  const model::LayerRole& role = config.layers[to_size(layer)];
  LayerBench::Reused reused;
  if (role.ratio > 0 && !role.selects_rows) {
    reused.rows = chosen_rows(
        trace_.integers(fmt::format("layers.{}.index_rows", role.index_source), position));
  }
  if (role.uses_pool) {
    const std::int64_t visible = (static_cast<std::int64_t>(position) + 1) / role.ratio;
    reused.pool_blocks =
        pool_blocks(trace_.bytes(fmt::format("layers.{}.candidates", config.boundary), position),
                    visible, config.pool_block_size);
  }
  return reused;
}

std::vector<StoredRows> HfTrace::stored(const model::V41Config& config) const {
  std::vector<StoredRows> stored;
  const auto add = [&](std::string_view what, std::int64_t layer, std::int64_t tokens_per_row,
                       std::vector<std::vector<float>> rows) {
    stored.push_back({.name = fmt::format("{} of layer {}", what, layer),
                      .tokens_per_row = tokens_per_row,
                      .rows = std::move(rows)});
  };
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    const model::LayerRole& role = config.layers[to_size(layer)];
    const std::string prefix = fmt::format("layers.{}.", layer);
    std::vector<std::vector<float>> chosen;
    std::vector<std::vector<float>> pool;
    std::vector<std::vector<float>> experts;
    for (std::size_t position = 0; position < trace_.positions(); ++position) {
      const auto ids = trace_.integers(prefix + "index_rows", position);
      chosen.push_back(as_floats(ids, to_size(config.index_topk)));
      experts.push_back(as_floats(trace_.integers(prefix + "router_ids", position), 0));
      const std::int64_t visible =
          role.ratio == 0 ? 0 : (static_cast<std::int64_t>(position) + 1) / role.ratio;
      const std::vector<std::int32_t> blocks = pool_blocks(
          trace_.bytes(prefix + "candidates", position), visible, config.pool_block_size);
      pool.push_back(as_floats(std::span(blocks), to_size(config.pool_blocks)));
    }
    if (role.writes_rows) {
      add("rows", layer, role.ratio, rows_of(rows(layer)));
      add("index keys", layer, role.ratio, rows_of(keys(layer)));
    }
    add("window", layer, 1, rows_of(trace_.matrix(prefix + "window_rows")));
    if (role.selects_rows) add("chosen rows", layer, 1, std::move(chosen));
    if (role.builds_pool) add("pool", layer, 1, std::move(pool));
    add("experts", layer, 1, std::move(experts));
  }
  return stored;
}

std::vector<std::string> hf_trace_files(std::string_view shape) {
  const nlohmann::json manifest = read_oracle_manifest(folder_of(shape) + "manifest.json");
  std::vector<std::string> files;
  for (const auto& [file, entry] : manifest["traces"].items()) files.push_back(file);
  if (files.empty()) throw std::runtime_error(fmt::format("{} has no traces", shape));
  return files;
}

std::string hf_trace_of(std::string_view shape, const std::string& name) {
  for (const std::string& file : hf_trace_files(shape)) {
    if (file == fmt::format("trace_wide_{}.safetensors", name)) return file;
  }
  return "";
}

}  // namespace locket::test_support
