#include "cli/trace_layer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "checkpoint/safetensors.h"
#include "cli/v41_only.h"

namespace locket::cli {
namespace {

using checkpoint::SafetensorsFile;

constexpr const char* kHowToRecord =
    "record it from the same ids with --what streams,rows,index --replay full";

template <class T>
Result<std::vector<T>> read_tensor(const SafetensorsFile& file, const std::string& name,
                                   numerics::Dtype dtype, const tensor::Shape& shape) {
  const checkpoint::TensorEntry* entry = file.find(name);
  if (entry == nullptr) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} has no tensor {}; {}", file.path().string(), name, kHowToRecord));
  }
  // -1: any extent.
  bool fits = entry->dtype == dtype && entry->shape.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] < 0 || shape[i] == entry->shape[i];
  }
  if (!fits) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("tensor {} in {} is {} {}, {} {} is needed (-1: any); {}", name,
                            file.path().string(), numerics::dtype_name(entry->dtype),
                            tensor::to_string(entry->shape), numerics::dtype_name(dtype),
                            tensor::to_string(shape), kHowToRecord));
  }
  std::vector<T> values(entry->byte_count / sizeof(T));
  LOCKET_TRY_STATUS(file.read_into(*entry, std::as_writable_bytes(std::span(values))));
  return values;
}

Result<std::vector<float>> read_floats(const SafetensorsFile& file, const std::string& name,
                                       const tensor::Shape& shape) {
  LOCKET_TRY(std::vector<float> values,
             read_tensor<float>(file, name, numerics::Dtype::kF32, shape));
  const auto broken = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (broken != values.end()) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("tensor {} in {}: value {} is {}, a finite number is needed", name,
                            file.path().string(), broken - values.begin(), *broken));
  }
  return values;
}

// Choices of every position as a trace holds them: numbers, and -1 for none.
struct Choices {
  std::string name;       // of the tensor
  std::int64_t most = 0;  // numbers of one position
  std::int64_t tokens_per_row = 1;
  std::int64_t rows_per_number = 1;
};

// Per position: the numbers, ascending. Refuses numbers of rows that the position cannot see.
Result<std::vector<std::vector<std::int32_t>>> read_choices(const SafetensorsFile& file,
                                                            const Choices& choices,
                                                            std::int64_t count) {
  LOCKET_TRY(const auto values,
             read_tensor<std::int32_t>(file, choices.name, numerics::Dtype::kI32, {count, -1}));
  const std::size_t width = values.size() / static_cast<std::size_t>(count);
  std::vector<std::vector<std::int32_t>> chosen(static_cast<std::size_t>(count));
  for (std::size_t position = 0; position < chosen.size(); ++position) {
    auto& numbers = chosen[position];
    std::ranges::copy_if(std::span(values).subspan(position * width, width),
                         std::back_inserter(numbers), [](std::int32_t x) { return x != -1; });
    std::ranges::sort(numbers);
    const std::int64_t rows = (static_cast<std::int64_t>(position) + 1) / choices.tokens_per_row;
    const std::int64_t end = (rows + choices.rows_per_number - 1) / choices.rows_per_number;
    const bool is_known = numbers.empty() || (numbers.front() >= 0 && numbers.back() < end);
    const bool is_unique = std::ranges::adjacent_find(numbers) == numbers.end();
    if (!is_known || !is_unique || static_cast<std::int64_t>(numbers.size()) > choices.most) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("tensor {} in {}: position {} has {}; at most {} different numbers "
                              "from 0 to {} are possible there, -1 for none",
                              choices.name, file.path().string(), position,
                              fmt::join(numbers, ", "), choices.most, end - 1));
    }
  }
  return chosen;
}

class LayerTrace {
 public:
  LayerTrace(const SafetensorsFile& file, const TraceOptions& options, std::int64_t count,
             engine::Engine& engine, const model::V41Model& model)
      : file_(file), layer_(*options.layer), count_(count), engine_(engine), model_(model) {}

  Result<TraceFile> run(std::span<const engine::TokenId> ids) {
    const model::V41Model& model = model_;
    cache::SequenceMemory memory(model.layout(), engine_.pool());
    LOCKET_TRY_STATUS(memory.reserve_tokens(count_));
    const cache::KvView view = memory.view();
    model::Step step = model.make_step(
        {{.memory = &view, .tokens = ids, .count = static_cast<std::size_t>(count_)}});
    LOCKET_TRY(model::ResidualRows rows, read_rows());
    LOCKET_TRY_STATUS(fill_memory(view));
    LOCKET_TRY_STATUS(fill_selection(step));
    engine::TraceRecorder recorder(
        {engine::TraceKind::kStreams, engine::TraceKind::kAttention, engine::TraceKind::kMoe,
         engine::TraceKind::kWindow, engine::TraceKind::kIndex, engine::TraceKind::kRouter},
        config().stream_count);
    model::ForwardContext context = model.make_context(engine_.workers());
    context.observer = &recorder;
    model::SequenceState state = model.make_state();
    model::SequenceState* const states[] = {&state};
    model.run_layer(context, layer_, step, states, rows);
    LOCKET_TRY_STATUS(step.parts.front().status);
    TraceFile trace;
    trace.add_positions(0, static_cast<std::size_t>(count_));
    trace.add_recorded(recorder);
    return trace;
  }

 private:
  const model::V41Config& config() const { return model_.config(); }
  const model::LayerRole& role() const { return config().layers[static_cast<std::size_t>(layer_)]; }

  Result<model::ResidualRows> read_rows() const {
    const std::int64_t streams = config().stream_count;
    const std::string before = layer_ == 0 ? "embed." : fmt::format("layer.{}.", layer_ - 1);
    const auto width = static_cast<std::size_t>(streams * config().hidden_size);
    model::ResidualRows rows = {
        .streams = {static_cast<std::size_t>(count_), width},
        .pre = {static_cast<std::size_t>(count_), static_cast<std::size_t>(streams)}};
    LOCKET_TRY(const auto values,
               read_floats(file_, before + "streams", {count_, streams, config().hidden_size}));
    std::ranges::copy(values, rows.streams.values().begin());
    if (layer_ == 0) {
      for (std::size_t i = 0; i < rows.count(); ++i) rows.pre.row(i)[0] = 1.0f;
      return rows;
    }
    LOCKET_TRY(const auto pre, read_floats(file_, before + "pre", {count_, streams}));
    std::ranges::copy(pre, rows.pre.values().begin());
    return rows;
  }

  // Rows and keys that another layer wrote.
  Status fill_memory(const cache::KvView& view) const {
    if (role().kv_source < 0 || role().writes_rows) return {};
    const model::V41Memory& memory = model_.memory();
    const model::LayerMemory& place = memory.layers[static_cast<std::size_t>(layer_)];
    const std::string prefix = fmt::format("kv.{}.", role().kv_source);
    LOCKET_TRY_STATUS(fill_stream(view, prefix + "rows", place.rows, memory.formats.rows));
    if (!role().selects_rows) return {};
    return fill_stream(view, prefix + "index_keys", place.index_keys, memory.formats.index_keys);
  }

  Status fill_stream(const cache::KvView& view, const std::string& name, int stream,
                     kernels::RowFormat format) const {
    const auto at = static_cast<std::size_t>(stream);
    const std::int64_t rows = count_ / view.layout().streams[at].tokens_per_row;
    const std::int64_t width =
        name.ends_with("index_keys") ? config().index_head_dim : config().head_dim;
    LOCKET_TRY(const auto values, read_floats(file_, name, {rows, width}));
    for (std::int64_t row = 0; row < rows; ++row) {
      encode_row(format,
                 std::span(values).subspan(static_cast<std::size_t>(row * width),
                                           static_cast<std::size_t>(width)),
                 view.row(at, row));
    }
    return {};
  }

  // Selection and pool that an earlier layer made.
  Status fill_selection(model::Step& step) const {
    if (role().ratio == 0) return {};
    if (!role().selects_rows) {
      LOCKET_TRY(step.selection.rows,
                 read_choices(file_,
                              {.name = fmt::format("index.{}.rows", role().index_source),
                               .most = config().index_topk,
                               .tokens_per_row = role().ratio},
                              count_));
    }
    if (!role().uses_pool) return {};
    LOCKET_TRY(auto pool, read_choices(file_,
                                       {.name = fmt::format("index.{}.pool", config().boundary),
                                        .most = config().pool_blocks,
                                        .tokens_per_row = role().ratio,
                                        .rows_per_number = config().pool_block_size},
                                       count_));
    step.pool.positions.clear();
    for (auto& blocks : pool) {
      step.pool.positions.push_back({.holds_all = false, .chosen = std::move(blocks)});
    }
    return {};
  }

  const SafetensorsFile& file_;
  std::int64_t layer_;
  std::int64_t count_;
  engine::Engine& engine_;
  const model::V41Model& model_;
};

// What a session checks before it runs.
Status check_ids(std::span<const engine::TokenId> ids, const ModelSetup& setup) {
  if (ids.empty()) return fail(ErrorCode::kBadRequest, "there are no token ids");
  const auto limit = static_cast<engine::TokenId>(setup.engine().vocabulary_size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < limit) continue;
    return fail(ErrorCode::kBadRequest,
                fmt::format("token {} is id {}; the model knows 0 to {}", i, ids[i], limit - 1));
  }
  if (ids.size() > setup.engine().max_positions()) {
    return fail(ErrorCode::kContextTooLong,
                fmt::format("{} tokens are more than the {} that the model takes "
                            "(max_position_embeddings)",
                            ids.size(), setup.engine().max_positions()));
  }
  return {};
}

}  // namespace

Result<TraceFile> trace_layer(const TraceOptions& options, std::span<const engine::TokenId> ids,
                              const ModelSetup& setup) {
  LOCKET_TRY(const model::V41Model* model, v41_only(setup.model(), "--layer"));
  const std::int64_t layers = model->config().layer_count;
  if (*options.layer < 0 || *options.layer >= layers) {
    return fail(ErrorCode::kBadRequest, fmt::format("--layer {}: the model has layers 0 to {}",
                                                    *options.layer, layers - 1));
  }
  LOCKET_TRY_STATUS(check_ids(ids, setup));
  LOCKET_TRY(const SafetensorsFile file, SafetensorsFile::open(options.from));
  return LayerTrace(file, options, static_cast<std::int64_t>(ids.size()), setup.engine(), *model)
      .run(ids);
}

}  // namespace locket::cli
