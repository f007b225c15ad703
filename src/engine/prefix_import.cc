#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "cache/kv_layout.h"
#include "checkpoint/safetensors.h"
#include "engine/internal/prefix_file_format.h"
#include "engine/prefix_file.h"

namespace locket::engine {
namespace {

using cache::kTokensPerPage;
using checkpoint::SafetensorsFile;
using checkpoint::TensorEntry;
using internal::PrefixFileHead;
using internal::PrefixFileTables;
using numerics::Dtype;

// Stored together, so that a file of any length takes this much memory, and no turn is huge.
constexpr std::size_t kTurnBytes = std::size_t{32} << 20;

tl::unexpected<Error> bad_file(std::string message) {
  return fail(ErrorCode::kBadMemory, std::move(message));
}

// A file that does not fit this model, named by the field.
Status check_field(const char* field, const std::string& found, const std::string& wanted) {
  if (found == wanted) return {};
  return bad_file(fmt::format("{} is {}, here it is {}", field, found, wanted));
}

class PrefixImport {
 public:
  PrefixImport(const ImportTarget& target, SafetensorsFile file)
      : target_(target),
        file_(std::move(file)),
        sizes_(target.memory.page_sizes()),
        root_(target.memory.root_label(target.store, target.tenant)) {}

  // Everything but the payloads.
  [[nodiscard]] Status check();
  [[nodiscard]] Result<ImportReport> store(const PrefixFileProgress& progress);

 private:
  // What the next turn writes; spans of `turn` point into `buffers`.
  struct Batch {
    cache::TurnWrite turn;
    std::vector<std::vector<std::byte>> buffers;
    std::size_t bytes = 0;
  };

  std::int64_t tokens() const { return static_cast<std::int64_t>(tables_.tokens.size()); }
  std::span<const std::int32_t> page_tokens(std::int64_t page) const;

  [[nodiscard]] Result<std::string> read_table(std::string_view name, Dtype dtype,
                                               std::int64_t most, std::int64_t width) const;
  [[nodiscard]] Status read_tables();
  [[nodiscard]] Status check_identity(const PrefixFileHead& head) const;
  [[nodiscard]] Status check_tables() const;
  [[nodiscard]] Status check_names(const cache::PageName& root) const;
  [[nodiscard]] Status check_payload(const std::string& name, std::size_t wanted);
  [[nodiscard]] Status check_payloads();

  [[nodiscard]] Result<std::span<const std::byte>> read_payload(const std::string& name,
                                                                std::size_t checksum,
                                                                Batch& batch) const;
  [[nodiscard]] Status add_page(std::int64_t page, const cache::PrefixPoint& parent,
                                const cache::PrefixPoint& end, Batch& batch);
  [[nodiscard]] Status add_snapshot(const cache::PrefixPoint& point, Batch& batch);
  [[nodiscard]] Status write(Batch& batch);
  // Whether the page between two points is stored.
  bool is_stored(std::span<const cache::PrefixPoint> points, std::size_t page) const;

  const ImportTarget& target_;
  SafetensorsFile file_;
  cache::PageSizes sizes_;
  cache::RootLabel root_;
  internal::TableBytes bytes_;
  PrefixFileTables tables_;
  ImportReport report_;
};

std::span<const std::int32_t> PrefixImport::page_tokens(std::int64_t page) const {
  const auto first = static_cast<std::size_t>(page * kTokensPerPage);
  const std::size_t count =
      std::min(static_cast<std::size_t>(kTokensPerPage), tables_.tokens.size() - first);
  return std::span(tables_.tokens).subspan(first, count);
}

// A list of at most `most` entries; each has `width` elements (0: the list has one dimension).
Result<std::string> PrefixImport::read_table(std::string_view name, Dtype dtype, std::int64_t most,
                                             std::int64_t width) const {
  const TensorEntry* const entry = file_.find(name);
  if (entry == nullptr) return bad_file(fmt::format("tensor {} is missing", name));
  const bool is_shape =
      width == 0 ? entry->shape.size() == 1 : entry->shape.size() == 2 && entry->shape[1] == width;
  if (entry->dtype != dtype || !is_shape || entry->shape[0] > most) {
    return bad_file(fmt::format("tensor {} is {} {}, expected {} with at most {} entries{}", name,
                                numerics::dtype_name(entry->dtype), tensor::to_string(entry->shape),
                                numerics::dtype_name(dtype), most,
                                width == 0 ? "" : fmt::format(" of {}", width)));
  }
  std::string bytes(static_cast<std::size_t>(entry->byte_count), '\0');
  LOCKET_TRY_STATUS(file_.read_into(*entry, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

Status PrefixImport::read_tables() {
  const std::int64_t most_tokens = target_.memory.max_positions;
  const std::int64_t most_pages = cache::page_count(most_tokens);
  LOCKET_TRY(bytes_.tokens, read_table(internal::kTokensTensor, Dtype::kI32, most_tokens, 0));
  LOCKET_TRY(bytes_.names, read_table(internal::kNamesTensor, Dtype::kU8, most_pages,
                                      static_cast<std::int64_t>(sizeof(cache::PageName))));
  LOCKET_TRY(bytes_.positions, read_table(internal::kPositionsTensor, Dtype::kI64, most_pages, 0));
  LOCKET_TRY(bytes_.checksums, read_table(internal::kChecksumsTensor, Dtype::kU8, 3 * most_pages,
                                          internal::kChecksumBytes));
  tables_ = internal::decode_tables(bytes_);
  return {};
}

Status PrefixImport::check() {
  LOCKET_TRY_STATUS(internal::check_format(file_.metadata()));
  LOCKET_TRY_STATUS(read_tables());
  LOCKET_TRY(const PrefixFileHead head, internal::decode_head(file_.metadata(), bytes_));
  LOCKET_TRY_STATUS(check_identity(head));
  LOCKET_TRY_STATUS(check_tables());
  LOCKET_TRY_STATUS(check_names(head.root));
  LOCKET_TRY_STATUS(check_payloads());
  report_.facts.model = head.model;
  report_.facts.identity = head.identity;
  report_.facts.tokens = tokens();
  report_.facts.pages = static_cast<std::int64_t>(tables_.names.size());
  report_.facts.snapshots = static_cast<std::int64_t>(tables_.positions.size());
  return {};
}

Status PrefixImport::check_identity(const PrefixFileHead& head) const {
  const cache::MemoryIdentity& wanted = target_.memory.identity;
  LOCKET_TRY_STATUS(check_field("memory_format", std::to_string(head.memory_format),
                                std::to_string(cache::kMemoryFormat)));
  LOCKET_TRY_STATUS(
      check_field("numerics_mode", head.identity.numerics_mode, wanted.numerics_mode));
  LOCKET_TRY_STATUS(check_field("numerics_revision",
                                std::to_string(head.identity.numerics_revision),
                                std::to_string(wanted.numerics_revision)));
  const std::string found = to_hex(head.identity.model);
  if (head.identity.model == wanted.model) return {};
  return bad_file(
      fmt::format("model_identity is {} (\"{}\"), the model here is {} (\"{}\"): this "
                  "memory is another model's",
                  found, head.model, to_hex(wanted.model), target_.memory.label));
}

Status PrefixImport::check_tables() const {
  const std::int64_t pages = cache::page_count(tokens());
  if (tokens() == 0) return bad_file("tensor tokens is empty: there is nothing to store");
  for (std::size_t i = 0; i < tables_.tokens.size(); ++i) {
    const std::int32_t id = tables_.tokens[i];
    if (id >= 0 && id < target_.memory.vocabulary_size) continue;
    return bad_file(fmt::format("token {} is id {}, the model knows 0 to {}", i, id,
                                target_.memory.vocabulary_size - 1));
  }
  if (static_cast<std::int64_t>(tables_.names.size()) != pages) {
    return bad_file(fmt::format("tensor names has {} entries, {} tokens make {} pages",
                                tables_.names.size(), tokens(), pages));
  }
  std::int64_t before = 0;
  for (const std::int64_t position : tables_.positions) {
    if (position <= before || position > tokens() || position % kTokensPerPage != 0) {
      return bad_file(
          fmt::format("a snapshot stands at token {}, expected ascending multiples of "
                      "{} up to {}",
                      position, kTokensPerPage, tokens()));
    }
    before = position;
  }
  const std::size_t values = 2 * tables_.names.size() + tables_.positions.size();
  if (tables_.checksums.size() == values) return {};
  return bad_file(fmt::format("tensor checksums has {} entries, expected {}",
                              tables_.checksums.size(), values));
}

// The exporter's names hold the token ids together.
Status PrefixImport::check_names(const cache::PageName& root) const {
  cache::PrefixPoint point = cache::root_point(root);
  for (std::size_t i = 0; i < tables_.names.size(); ++i) {
    point = cache::next_point(point, page_tokens(static_cast<std::int64_t>(i)));
    if (point.name == tables_.names[i]) continue;
    return bad_file(fmt::format("the name of page {} is {}, its token ids give {}", i,
                                to_hex(tables_.names[i]), to_hex(point.name)));
  }
  return {};
}

Status PrefixImport::check_payload(const std::string& name, std::size_t wanted) {
  const TensorEntry* const entry = file_.find(name);
  if (entry == nullptr) return bad_file(fmt::format("tensor {} is missing", name));
  if (entry->dtype == Dtype::kU8 && entry->shape.size() == 1 && entry->byte_count == wanted) {
    report_.facts.payload_bytes += wanted;
    return {};
  }
  return bad_file(fmt::format("tensor {} is {} {}, expected U8 [{}]", name,
                              numerics::dtype_name(entry->dtype), tensor::to_string(entry->shape),
                              wanted));
}

Status PrefixImport::check_payloads() {
  const std::size_t tensors = internal::kTableTensors + tables_.checksums.size();
  if (file_.tensors().size() != tensors) {
    return bad_file(
        fmt::format("the file has {} tensors, expected {}", file_.tensors().size(), tensors));
  }
  for (std::size_t i = 0; i < tables_.names.size(); ++i) {
    const auto page = static_cast<std::int64_t>(i);
    const auto count = static_cast<std::int64_t>(page_tokens(page).size());
    LOCKET_TRY_STATUS(check_payload(internal::keys_tensor(page), sizes_.key_bytes(count)));
    LOCKET_TRY_STATUS(check_payload(internal::rows_tensor(page), sizes_.row_bytes(count)));
  }
  for (const std::int64_t position : tables_.positions) {
    LOCKET_TRY_STATUS(check_payload(internal::snapshot_tensor(position), sizes_.snapshot_bytes));
  }
  return {};
}

Result<std::span<const std::byte>> PrefixImport::read_payload(const std::string& name,
                                                              std::size_t checksum,
                                                              Batch& batch) const {
  const TensorEntry& entry = *file_.find(name);
  std::vector<std::byte> buffer(static_cast<std::size_t>(entry.byte_count));
  LOCKET_TRY_STATUS(file_.read_into(entry, buffer));
  if (xxh3_128(buffer) != tables_.checksums[checksum]) {
    return bad_file(fmt::format("tensor {} does not fit its checksum: the file is damaged", name));
  }
  batch.bytes += buffer.size();
  batch.buffers.push_back(std::move(buffer));
  return std::span<const std::byte>(batch.buffers.back());
}

Status PrefixImport::add_page(std::int64_t page, const cache::PrefixPoint& parent,
                              const cache::PrefixPoint& end, Batch& batch) {
  const auto checksum = static_cast<std::size_t>(2 * page);
  LOCKET_TRY(const std::span<const std::byte> keys,
             read_payload(internal::keys_tensor(page), checksum, batch));
  LOCKET_TRY(const std::span<const std::byte> rows,
             read_payload(internal::rows_tensor(page), checksum + 1, batch));
  if (target_.store.has_pages({&parent, 1}, {&end, 1}).front()) {
    ++report_.pages_known;
    return {};
  }
  const auto tokens = page_tokens(page);
  batch.turn.pages.push_back({.parent = parent,
                              .end = end,
                              .tokens = {tokens.begin(), tokens.end()},
                              .keys = keys,
                              .rows = rows});
  return {};
}

Status PrefixImport::add_snapshot(const cache::PrefixPoint& point, Batch& batch) {
  const auto found = std::ranges::lower_bound(tables_.positions, point.position);
  if (found == tables_.positions.end() || *found != point.position) return {};
  const auto index = static_cast<std::size_t>(found - tables_.positions.begin());
  LOCKET_TRY(const std::span<const std::byte> rings,
             read_payload(internal::snapshot_tensor(point.position),
                          2 * tables_.names.size() + index, batch));
  if (target_.store.find_snapshot(point, sizes_)) return {};
  batch.turn.snapshots.push_back({.point = point, .rings = rings});
  return {};
}

Status PrefixImport::write(Batch& batch) {
  batch.turn.root = root_;
  batch.turn.restart_tokens = target_.memory.geometry.encoder_reach();
  LOCKET_TRY_STATUS(target_.store.write_turn(batch.turn));
  batch = {};
  return {};
}

bool PrefixImport::is_stored(std::span<const cache::PrefixPoint> points, std::size_t page) const {
  return target_.store.has_pages(points.subspan(page, 1), points.subspan(page + 1, 1)).front();
}

Result<ImportReport> PrefixImport::store(const PrefixFileProgress& progress) {
  Batch batch;
  std::uint64_t done = 0;
  std::vector<cache::PrefixPoint> points = {cache::root_point(root_.root)};
  for (std::size_t i = 0; i < tables_.names.size(); ++i) {
    const auto page = static_cast<std::int64_t>(i);
    points.push_back(cache::next_point(points.back(), page_tokens(page)));
    const std::size_t before = batch.bytes;
    LOCKET_TRY_STATUS(add_page(page, points[i], points.back(), batch));
    LOCKET_TRY_STATUS(add_snapshot(points.back(), batch));
    batch.turn.newest = points.back().name;
    done += batch.bytes - before;
    if (progress) progress(done, report_.facts.payload_bytes);
    if (batch.bytes < kTurnBytes) continue;
    LOCKET_TRY_STATUS(write(batch));
    // Without room for this one there is none for those after it.
    if (!is_stored(points, i)) break;
  }
  LOCKET_TRY_STATUS(write(batch));
  std::size_t stored = 0;
  while (stored + 1 < points.size() && is_stored(points, stored)) ++stored;
  report_.pages_left_out = static_cast<std::int64_t>(tables_.names.size() - stored);
  report_.name = points[stored].name;
  return std::move(report_);
}

}  // namespace

Result<ImportReport> import_prefix(const ImportTarget& target, const std::filesystem::path& file,
                                   const PrefixFileProgress& progress) {
  if (!target.store.is_writable()) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("the memory in {} can only be read here: {}",
                            target.store.directory().string(), target.store.read_only_reason()));
  }
  Result<SafetensorsFile> opened = SafetensorsFile::open(file);
  if (!opened) {
    Error error = std::move(opened.error());
    if (error.code == ErrorCode::kBadCheckpoint || error.code == ErrorCode::kUnsupported) {
      error.code = ErrorCode::kBadMemory;
    }
    return tl::make_unexpected(std::move(error));
  }
  PrefixImport import(target, std::move(*opened));
  Result<ImportReport> report = tl::make_unexpected(Error{});
  if (Status status = import.check(); status) {
    report = import.store(progress);
  } else {
    report = tl::make_unexpected(std::move(status.error()));
  }
  if (!report && report.error().code == ErrorCode::kBadMemory) {
    report.error().message = fmt::format("{}: {}", file.string(), report.error().message);
  }
  return report;
}

}  // namespace locket::engine
