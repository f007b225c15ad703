// locket trace: what the model computes for given token ids, as safetensors.
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "cli/commands.h"
#include "cli/ids_file.h"
#include "cli/model_setup.h"
#include "cli/trace_layer.h"
#include "engine/trace_recorder.h"

namespace locket::cli {
namespace {

using engine::TraceKind;

Result<std::set<TraceKind>> parse_kinds(const std::vector<std::string>& names) {
  std::set<TraceKind> kinds;
  for (const std::string& name : names) {
    int i = 0;
    while (i < static_cast<int>(TraceKind::kCount) &&
           engine::trace_kind_name(static_cast<TraceKind>(i)) != name) {
      ++i;
    }
    if (i == static_cast<int>(TraceKind::kCount)) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("--what {}: known are logits, streams, attention, moe, rows, window, "
                              "index, router",
                              name));
    }
    kinds.insert(static_cast<TraceKind>(i));
  }
  if (kinds.empty()) kinds.insert(TraceKind::kLogits);
  return kinds;
}

// The memory after the run: rows and index keys of every KV source, as values and as stored bytes.
void add_memory(const model::MemoryDescription& memory, engine::Session& session, TraceFile& file) {
  const cache::KvView view = session.memory().view();
  for (std::size_t stream = 0; stream < memory.layout.streams.size(); ++stream) {
    const cache::RowStream& info = memory.layout.streams[stream];
    const bool is_keys = info.part == cache::PagePart::kKeys;
    const auto [format, width] = memory.stream_rows[stream];
    const auto rows = static_cast<std::int64_t>(session.tokens().size()) / info.tokens_per_row;
    tensor::FloatMatrix values(static_cast<std::size_t>(rows), width);
    std::vector<std::byte> codes;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto bytes = view.row(stream, row);
      decode_row(format, bytes, values.row(static_cast<std::size_t>(row)));
      codes.insert(codes.end(), bytes.begin(), bytes.end());
    }
    const std::string prefix = fmt::format("kv.{}.", info.layer);
    file.add_floats(prefix + (is_keys ? "index_keys" : "rows"),
                    {rows, static_cast<std::int64_t>(width)}, values.values());
    file.add_bytes(prefix + (is_keys ? "index_codes" : "codes"),
                   {rows, static_cast<std::int64_t>(info.row_bytes)}, codes);
  }
}

// Asked before the work, which can be long.
Status check_output(const std::filesystem::path& output) {
  const std::filesystem::path folder = output.has_parent_path() ? output.parent_path() : ".";
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored) &&
      !std::filesystem::is_directory(output, ignored)) {
    return {};
  }
  return fail(ErrorCode::kNotFound, fmt::format("--output {}: a file in a folder that is there is "
                                                "needed",
                                                output.string()));
}

Result<TraceFile> trace(const TraceOptions& options, const std::set<TraceKind>& kinds) {
  LOCKET_TRY_STATUS(check_output(options.output));
  LOCKET_TRY(const auto ids, read_ids_file(options.ids));
  const auto index_scores = options.index_scores == "bf16" ? kernels::IndexScoreRounding::kBf16
                                                           : kernels::IndexScoreRounding::kF32;
  LOCKET_TRY(const ModelSetup setup, set_up_model(options.model, index_scores));
  if (options.layer) return trace_layer(options, ids, setup);

  const auto prompt_size =
      static_cast<std::size_t>(options.decode_from.value_or(static_cast<std::int64_t>(ids.size())));
  if (prompt_size > ids.size()) {
    return fail(ErrorCode::kBadRequest, fmt::format("--decode-from {}: {} holds {} ids",
                                                    prompt_size, options.ids.string(), ids.size()));
  }
  engine::TraceRecorder recorder(kinds, setup.model().shape().stream_count);
  engine::SessionOptions session_options = {.replay = setup.engine().replay(),
                                            .observer = &recorder};
  session_options.slice_tokens = options.chunk > 0 ? static_cast<std::size_t>(options.chunk)
                                                   : std::max<std::size_t>(1, ids.size());
  engine::Session session(setup.model(), setup.engine().pool(), setup.engine().workers(),
                          session_options);
  LOCKET_TRY_STATUS(session.prefill(std::span(ids).first(prompt_size)));
  for (std::size_t i = prompt_size; i < ids.size(); ++i) {
    LOCKET_TRY_STATUS(session.append(ids[i]));
  }
  TraceFile file;
  file.add_positions(session.segment_start(), ids.size());
  file.add_recorded(recorder);
  if (kinds.contains(TraceKind::kRows)) add_memory(setup.model().outline().memory, session, file);
  return file;
}

}  // namespace

int run_trace(const TraceOptions& options) {
  const auto kinds = parse_kinds(options.what);
  if (!kinds) {
    report(kinds.error());
    return 2;
  }
  const Result<TraceFile> file = trace(options, *kinds);
  if (!file) return report(file.error());
  const Status written = file->write(options.output);
  if (!written) return report(written.error());
  fmt::print("{} tensors written to {}\n", file->size(), options.output.string());
  return 0;
}

}  // namespace locket::cli
