#include "cli/trace_layer.h"

#include <cstring>
#include <fmt/format.h>

#include "checkpoint/safetensors.h"

namespace locket::cli {
namespace {

using checkpoint::SafetensorsFile;

template <class T>
Result<std::vector<T>> read_tensor(const SafetensorsFile& file, const std::string& name,
                                   numerics::Dtype dtype, const tensor::Shape& shape) {
  const checkpoint::TensorEntry* entry = file.find(name);
  if (entry == nullptr) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} has no tensor {}", file.path().string(), name));
  }
  // -1: any extent.
  bool fits = entry->dtype == dtype && entry->shape.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] < 0 || shape[i] == entry->shape[i];
  }
  if (!fits) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("tensor {} in {} is {} {}, {} {} is needed (-1: any)", name,
                            file.path().string(), numerics::dtype_name(entry->dtype),
                            tensor::to_string(entry->shape), numerics::dtype_name(dtype),
                            tensor::to_string(shape)));
  }
  std::vector<T> values(entry->byte_count / sizeof(T));
  LOCKET_TRY_STATUS(file.read_into(*entry, std::as_writable_bytes(std::span(values))));
  return values;
}

class LayerTrace {
 public:
  LayerTrace(const SafetensorsFile& file, std::int64_t layer, std::int64_t count,
             const ModelSetup& setup)
      : file_(file), layer_(layer), count_(count), setup_(setup) {}

  Result<TraceFile> run(std::span<const engine::TokenId> ids) {
    const model::V41Model& model = setup_.model();
    cache::SequenceMemory memory(model.memory().layout, setup_.engine().pool());
    LOCKET_TRY_STATUS(memory.reserve_tokens(count_));
    const cache::KvView view = memory.view();
    model::Step step = model.make_step(view, 0, static_cast<std::size_t>(count_), 0);
    LOCKET_TRY_STATUS(fill_memory(view));
    LOCKET_TRY_STATUS(fill_selection(step));
    LOCKET_TRY(model::ResidualRows rows, read_rows());
    engine::TraceRecorder recorder(
        {engine::TraceKind::kStreams, engine::TraceKind::kAttention, engine::TraceKind::kMoe,
         engine::TraceKind::kWindow, engine::TraceKind::kIndex, engine::TraceKind::kRouter},
        config().stream_count);
    model::ForwardContext context = model.make_context(setup_.engine().workers());
    context.observer = &recorder;
    model::V41SequenceState state = model.make_state();
    LOCKET_TRY_STATUS(model.run_layer(context, layer_, ids, state, step, rows));
    TraceFile trace;
    trace.add_positions(0, static_cast<std::size_t>(count_));
    trace.add_recorded(recorder);
    return trace;
  }

 private:
  const model::V41Config& config() const { return setup_.model().config(); }
  const model::LayerRole& role() const { return config().layers[static_cast<std::size_t>(layer_)]; }

  Result<model::ResidualRows> read_rows() const {
    const std::int64_t streams = config().stream_count;
    const std::string before = layer_ == 0 ? "embed." : fmt::format("layer.{}.", layer_ - 1);
    const auto width = static_cast<std::size_t>(streams * config().hidden_size);
    model::ResidualRows rows = {
        .streams = {static_cast<std::size_t>(count_), width},
        .pre = {static_cast<std::size_t>(count_), static_cast<std::size_t>(streams)}};
    LOCKET_TRY(const auto values,
               read_tensor<float>(file_, before + "streams", numerics::Dtype::kF32,
                                  {count_, streams, config().hidden_size}));
    std::ranges::copy(values, rows.streams.values().begin());
    if (layer_ == 0) {
      for (std::size_t i = 0; i < rows.count(); ++i) rows.pre.row(i)[0] = 1.0f;
      return rows;
    }
    LOCKET_TRY(const auto pre,
               read_tensor<float>(file_, before + "pre", numerics::Dtype::kF32, {count_, streams}));
    std::ranges::copy(pre, rows.pre.values().begin());
    return rows;
  }

  // Rows and keys that another layer wrote.
  Status fill_memory(const cache::KvView& view) const {
    if (role().kv_source < 0 || role().writes_rows) return {};
    const model::V41Memory& memory = setup_.model().memory();
    const model::LayerMemory& place = memory.layers[static_cast<std::size_t>(layer_)];
    const std::string prefix = fmt::format("kv.{}.", role().kv_source);
    LOCKET_TRY_STATUS(fill_stream(view, prefix + "rows", place.rows, memory.formats.rows));
    if (!role().selects_rows) return {};
    return fill_stream(view, prefix + "index_keys", place.index_keys, memory.formats.index_keys);
  }

  Status fill_stream(const cache::KvView& view, const std::string& name, int stream,
                     model::RowFormat format) const {
    const auto at = static_cast<std::size_t>(stream);
    const std::int64_t rows = count_ / view.layout().streams[at].tokens_per_row;
    const std::int64_t width =
        name.ends_with("index_keys") ? config().index_head_dim : config().head_dim;
    LOCKET_TRY(const auto values,
               read_tensor<float>(file_, name, numerics::Dtype::kF32, {rows, width}));
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
      LOCKET_TRY(const auto rows,
                 read_tensor<std::int32_t>(file_, fmt::format("index.{}.rows", role().index_source),
                                           numerics::Dtype::kI32, {count_, -1}));
      const std::size_t width = rows.size() / static_cast<std::size_t>(count_);
      step.selection.rows.assign(step.count, {});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] >= 0) step.selection.rows[i / width].push_back(rows[i]);
      }
    }
    if (!role().uses_pool) return {};
    LOCKET_TRY(const auto pool,
               read_tensor<std::int32_t>(file_, fmt::format("index.{}.pool", config().boundary),
                                         numerics::Dtype::kI32, {count_, -1}));
    const std::size_t width = pool.size() / static_cast<std::size_t>(count_);
    step.pool.positions.assign(step.count, {.holds_all = false, .chosen = {}});
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (pool[i] >= 0) step.pool.positions[i / width].chosen.push_back(pool[i]);
    }
    return {};
  }

  const SafetensorsFile& file_;
  std::int64_t layer_;
  std::int64_t count_;
  const ModelSetup& setup_;
};

}  // namespace

Result<TraceFile> trace_layer(const TraceOptions& options, std::span<const engine::TokenId> ids,
                              const ModelSetup& setup) {
  const std::int64_t layers = setup.model().config().layer_count;
  if (*options.layer < 0 || *options.layer >= layers) {
    return fail(ErrorCode::kBadRequest, fmt::format("--layer {}: the model has layers 0 to {}",
                                                    *options.layer, layers - 1));
  }
  LOCKET_TRY(const SafetensorsFile file, SafetensorsFile::open(options.from));
  return LayerTrace(file, *options.layer, static_cast<std::int64_t>(ids.size()), setup).run(ids);
}

}  // namespace locket::cli
