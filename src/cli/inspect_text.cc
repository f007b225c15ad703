#include "cli/inspect_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/text_table.h"

namespace locket::cli {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(value)); }

// "layer 2" or "layers 2-7".
std::string layers_text(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("layer {}", first) : fmt::format("layers {}-{}", first, last);
}

std::string source_text(std::int64_t source) {
  return source < 0 ? "-" : fmt::format("layer {}", source);
}

std::string last_layer_text(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

// The last layer that reads the rows of `source`.
std::int64_t last_reader(const model::V41Config& config, std::int64_t source) {
  std::int64_t last = source;
  for (std::int64_t layer = source; layer < config.layer_count; ++layer) {
    if (config.layers[static_cast<std::size_t>(layer)].kv_source == source) last = layer;
  }
  return last;
}

std::string scales_text(std::int64_t count) {
  return count == 1 ? "1 scale" : fmt::format("{} scales", count);
}

// What a row of a format is made of, group sizes as in numerics/group_scaled.h.
std::string row_text(kernels::RowFormat format, std::int64_t width) {
  switch (format) {
    case kernels::RowFormat::kFp4Main:
      return fmt::format("{} values in FP4, {}", width, scales_text(width / 16));
    case kernels::RowFormat::kFp4Index:
      return fmt::format("{} values in FP4, {}", width, scales_text(width / 32));
    case kernels::RowFormat::kFp8:
      return fmt::format("{} values in FP8, {}", width, scales_text(width / 32));
    case kernels::RowFormat::kF32:
      return fmt::format("{} values in float32", width);
    case kernels::RowFormat::kBf16:
      return fmt::format("{} values in BF16", width);
    case kernels::RowFormat::kMlaFp8:
      return fmt::format("{} values, the last 64 in BF16, the others in FP8, {}", width,
                         scales_text((width - 64 + 127) / 128));
    case kernels::RowFormat::kFp8Index:
      return fmt::format("{} values in FP8, 1 scale", width);
    case kernels::RowFormat::kV4Fp8:
    case kernels::RowFormat::kV4Fp8F32:
      return fmt::format(
          "{} values, the last {} in {}, the others in FP8, {}", width, (width - 1) % 64 + 1,
          format == kernels::RowFormat::kV4Fp8 ? "BF16" : "float32", scales_text((width - 1) / 64));
    case kernels::RowFormat::kCount:
      break;
  }
  return {};
}

std::string header_text(const ModelFacts& facts) {
  const model::V41Config& config = facts.config;
  std::string text = fmt::format("DeepSeek-V4.1 model, {}\n\n", facts.config_path);
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", name, value);
  };
  line("layers", fmt::format("{}: encoder 0-{}, decoder {}-{}", config.layer_count,
                             config.boundary - 1, config.boundary, config.layer_count - 1));
  line("values", fmt::format("{} per token in each of {} streams", number(config.hidden_size),
                             config.stream_count));
  line("vocabulary", fmt::format("{} ids, texts up to {} tokens", number(config.vocabulary_size),
                                 number(config.max_positions)));
  line("attention",
       fmt::format("{} heads x {}, over the last {} positions and up to {} chosen rows",
                   config.head_count, config.head_dim, config.sliding_window, config.index_topk));
  line("experts",
       fmt::format("{} of width {} per layer; {} chosen and 1 shared per token",
                   config.expert_count, number(config.expert_size), config.experts_per_token));
  text += fmt::format(
      "\n  Every token of a prompt goes through the encoder; the decoder sees only the last {} of"
      "\n  them ({} replay) and every generated token. All the memory that grows with the text is"
      "\n  written by the encoder and, from the encoder's output, by layer {}.\n",
      number(facts.replayed), engine::replay_mode_name(facts.replay), config.boundary);
  return text;
}

std::string duties_text(const model::LayerRole& role) {
  std::vector<std::string> duties;
  if (role.engram_index >= 0) duties.push_back("Engram");
  if (role.writes_rows) duties.push_back("writes rows");
  if (role.selects_rows) duties.push_back(role.uses_pool ? "chooses from the pool" : "chooses");
  if (role.builds_pool) duties.push_back("builds the pool");
  return fmt::format("{}", fmt::join(duties, ", "));
}

std::string duties_legend(const ModelFacts& facts) {
  const model::V41Config& config = facts.config;
  std::string text = fmt::format(
      "  Every layer: attention over its own window of {} positions and the chosen rows; experts.\n"
      "  writes rows  makes one row and one index key per so many tokens, for itself and others\n"
      "  chooses      scores all index keys and takes the {} best rows; later layers reuse them\n"
      "  the pool     the {} best blocks of {} rows: later choices look only there\n",
      config.sliding_window, config.index_topk, number(config.pool_blocks), config.pool_block_size);
  if (!config.engram.layer_ids.empty()) {
    text +=
        fmt::format("  Engram       adds rows of a large table, found by the last {} token ids\n",
                    config.engram.max_ngram_size);
  }
  return text;
}

std::string layers_section(const ModelFacts& facts) {
  TextTable table(
      {Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft});
  table.add_row({"layers", "half", "tokens/row", "reads rows of", "chosen by", "also"});
  for (const LayerRun& run : facts.layer_runs) {
    table.add_row({last_layer_text(run.first, run.last),
                   run.first < facts.config.boundary ? "encoder" : "decoder",
                   run.role.ratio == 0 ? "-" : fmt::format("{}", run.role.ratio),
                   source_text(run.role.kv_source), source_text(run.role.index_source),
                   duties_text(run.role)});
  }
  return "\nLayers\n" + table.text(2) + "\n" + duties_legend(facts);
}

std::string stream_text(const cache::RowStream& stream) {
  return fmt::format("{} / {} = {}", stream.row_bytes, stream.tokens_per_row,
                     grouped_decimal(static_cast<double>(stream.row_bytes) /
                                     static_cast<double>(stream.tokens_per_row)));
}

double stream_bytes(const cache::RowStream& stream) {
  return static_cast<double>(stream.row_bytes) / static_cast<double>(stream.tokens_per_row);
}

std::string writers_table(const ModelFacts& facts) {
  const auto& streams = facts.memory.layout.streams;
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add_row({"written by", "read by", "rows", "index keys", "bytes per token"});
  double rows_sum = 0;
  double keys_sum = 0;
  for (const std::int64_t writer : facts.config.row_writers()) {
    const model::LayerMemory& place = facts.memory.layers[static_cast<std::size_t>(writer)];
    const cache::RowStream& rows = streams[static_cast<std::size_t>(place.rows)];
    const cache::RowStream& keys = streams[static_cast<std::size_t>(place.index_keys)];
    rows_sum += stream_bytes(rows);
    keys_sum += stream_bytes(keys);
    table.add_row({source_text(writer), layers_text(writer, last_reader(facts.config, writer)),
                   stream_text(rows), stream_text(keys),
                   grouped_decimal(stream_bytes(rows) + stream_bytes(keys))});
  }
  table.add_row({"sum", "", grouped_decimal(rows_sum), grouped_decimal(keys_sum),
                 grouped_decimal(rows_sum + keys_sum)});
  return table.text(2);
}

std::string memory_section(const ModelFacts& facts) {
  const model::V41Config& config = facts.config;
  const cache::KvLayout& layout = facts.memory.layout;
  const cache::RingStream& ring = layout.rings.front();
  const auto pages = static_cast<std::uint64_t>(cache::page_count(facts.context));
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  const auto add = [&](const char* name, std::uint64_t bytes, std::string made_of) {
    table.add_row({name, grouped(bytes), std::move(made_of)});
  };
  const auto rings_text = [&](std::int64_t layers) {
    return fmt::format("{} layers x {} positions x {}", layers, ring.slots, ring.row_bytes);
  };
  table.add_row({"", "bytes", ""});
  add("a row", layout.streams.front().row_bytes,
      row_text(facts.memory.formats.rows, config.head_dim));
  add("an index key", layout.streams[1].row_bytes,
      row_text(facts.memory.formats.index_keys, config.index_head_dim));
  add("a window row", ring.row_bytes, row_text(facts.memory.formats.window, config.head_dim));
  add("a page", layout.page_bytes(),
      fmt::format("rows and keys of {} tokens", cache::kTokensPerPage));
  add("pages at the context", pages * layout.page_bytes(),
      fmt::format("{} pages, {} tokens", grouped(pages), number(facts.context)));
  add("rings, per sequence", layout.ring_bytes(), rings_text(config.layer_count));
  add("a snapshot", facts.snapshot_bytes(), rings_text(config.boundary) + ": the encoder's rings");
  return "\nMemory: bytes per token (bytes of a row / tokens per row)\n" + writers_table(facts) +
         "\n" + table.text(2);
}

std::string cell(std::uint64_t value) { return value == 0 ? "-" : grouped(value); }

std::string parts_section(const ModelFacts& facts) {
  TextTable table(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.add_row(
      {"", "parameters", "of them used", "of them used", "multiply-adds", "multiply-adds"});
  table.add_row({"", "in all", "prompt token", "generated", "prompt token", "generated"});
  const auto add = [&](std::string name, const PartFacts& part) {
    table.add_row({std::move(name), cell(part.parameters), cell(part.prompt_parameters),
                   cell(part.generated_parameters), cell(part.prompt_work),
                   cell(part.generated_work)});
  };
  for (const PartFacts& part : facts.parts) {
    add(std::string(model::model_part_name(part.part)), part);
  }
  add("sum", facts.sum);
  return fmt::format("\nParameters, and work per token at a context of {} tokens\n",
                     number(facts.context)) +
         table.text(2);
}

std::string work_section(const ModelFacts& facts) {
  const auto generated = static_cast<double>(facts.sum.generated_work);
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  const auto add = [&](std::string name, double work) {
    table.add_row({std::move(name), grouped(static_cast<std::uint64_t>(std::llround(work))),
                   fmt::format("{:.4f}", work / generated)});
  };
  table.add_row({"", "multiply-adds", "ratio"});
  add("a generated token", generated);
  add("a prompt token: encoder and row writers", static_cast<double>(facts.sum.prompt_work));
  add(fmt::format("the average prompt token, {} of them replayed", number(facts.replayed)),
      facts.prompt_average_work());
  return fmt::format("\nA prompt token against a generated one, at {} tokens\n",
                     number(facts.context)) +
         table.text(2) +
         "\n  The average is over the whole prompt, from its first token on; replayed tokens go"
         "\n  through the decoder, too. Drafts and vision are not counted.\n";
}

Json layers_json(const ModelFacts& facts) {
  Json layers = Json::array();
  for (std::size_t layer = 0; layer < facts.config.layers.size(); ++layer) {
    const model::LayerRole& role = facts.config.layers[layer];
    const auto source = [](std::int64_t value) { return value < 0 ? Json() : Json(value); };
    layers.push_back(
        {{"layer", layer},
         {"half", static_cast<std::int64_t>(layer) < facts.config.boundary ? "encoder" : "decoder"},
         {"tokens_per_row", role.ratio},
         {"reads_rows_of", source(role.kv_source)},
         {"chosen_by", source(role.index_source)},
         {"writes_rows", role.writes_rows},
         {"chooses_rows", role.selects_rows},
         {"builds_pool", role.builds_pool},
         {"uses_pool", role.uses_pool},
         {"engram", role.engram_index >= 0}});
  }
  return layers;
}

Json memory_json(const ModelFacts& facts) {
  const cache::KvLayout& layout = facts.memory.layout;
  Json streams = Json::array();
  for (const cache::RowStream& stream : layout.streams) {
    streams.push_back({{"layer", stream.layer},
                       {"name", stream.name},
                       {"row_bytes", stream.row_bytes},
                       {"tokens_per_row", stream.tokens_per_row},
                       {"bytes_per_token", stream_bytes(stream)}});
  }
  return {{"streams", std::move(streams)},
          {"bytes_per_token", layout.bytes_per_token()},
          {"tokens_per_page", cache::kTokensPerPage},
          {"page_bytes", layout.page_bytes()},
          {"ring_bytes", layout.ring_bytes()},
          {"snapshot_bytes", facts.snapshot_bytes()}};
}

Json work_json(const model::WorkCount& work) {
  return {{"matmul", work.matmul},
          {"attention", work.attention},
          {"index_scores", work.index_scores},
          {"total", work.total()}};
}

Json part_json(const PartFacts& part) {
  return {{"parameters", part.parameters},
          {"prompt_token_parameters", part.prompt_parameters},
          {"generated_token_parameters", part.generated_parameters},
          {"prompt_token_multiply_adds", part.prompt_work},
          {"generated_token_multiply_adds", part.generated_work}};
}

}  // namespace

std::string inspect_text(const ModelFacts& facts) {
  return header_text(facts) + layers_section(facts) + memory_section(facts) + parts_section(facts) +
         work_section(facts);
}

std::string inspect_json(const ModelFacts& facts) {
  Json parts = Json::object();
  for (const PartFacts& part : facts.parts) {
    parts[std::string(model::model_part_name(part.part))] = part_json(part);
  }
  const auto generated = static_cast<double>(facts.sum.generated_work);
  const Json out = {{"config", facts.config_path},
                    {"mode", model::numerics_mode_name(facts.mode)},
                    {"replay", engine::replay_mode_name(facts.replay)},
                    {"context", facts.context},
                    {"replayed_tokens", facts.replayed},
                    {"boundary", facts.config.boundary},
                    {"layers", layers_json(facts)},
                    {"memory", memory_json(facts)},
                    {"parts", std::move(parts)},
                    {"sum", part_json(facts.sum)},
                    {"prompt_token_work", work_json(facts.prompt_token_work)},
                    {"generated_token_work", work_json(facts.generated_token_work)},
                    {"prompt_work", work_json(facts.prompt_work)},
                    {"prompt_token_ratio", static_cast<double>(facts.sum.prompt_work) / generated},
                    {"prompt_average_ratio", facts.prompt_average_work() / generated}};
  return out.dump(2) + "\n";
}

}  // namespace locket::cli
