#include <fmt/format.h>
#include <utility>
#include <vector>

#include "cache/disk_catalog.h"
#include "checkpoint/safetensors_stream.h"
#include "engine/internal/prefix_file_format.h"
#include "engine/prefix_file.h"

namespace locket::engine {
namespace {

using checkpoint::PlannedTensor;
using checkpoint::SafetensorsStream;

// No payload is that large; a record that says so is damaged.
constexpr std::uint64_t kMostValueBytes = std::uint64_t{1} << 30;
// Read together: of the prefix no more is in memory.
constexpr std::uint64_t kBatchBytes = std::uint64_t{16} << 20;

struct Prefix {
  std::vector<cache::StoredPage> pages;
  std::vector<cache::StoredSnapshot> snapshots;
  cache::RootLabel root;
};

// A payload and what it is called in messages and in the file.
struct Payload {
  std::string tensor;
  cache::StoredValue value;
};

std::vector<Payload> payloads_of(const Prefix& prefix) {
  std::vector<Payload> payloads;
  for (std::size_t i = 0; i < prefix.pages.size(); ++i) {
    const auto page = static_cast<std::int64_t>(i);
    payloads.push_back({internal::keys_tensor(page), prefix.pages[i].keys});
    payloads.push_back({internal::rows_tensor(page), prefix.pages[i].rows});
  }
  for (const cache::StoredSnapshot& snapshot : prefix.snapshots) {
    payloads.push_back({internal::snapshot_tensor(snapshot.point.position), snapshot.value});
  }
  return payloads;
}

internal::PrefixFileTables tables_of(const Prefix& prefix, const std::vector<Payload>& payloads) {
  internal::PrefixFileTables tables;
  for (const cache::StoredPage& page : prefix.pages) {
    tables.tokens.insert(tables.tokens.end(), page.tokens.begin(), page.tokens.end());
    tables.names.push_back(page.end.name);
  }
  for (const cache::StoredSnapshot& snapshot : prefix.snapshots) {
    tables.positions.push_back(snapshot.point.position);
  }
  for (const Payload& payload : payloads) tables.checksums.push_back(payload.value.checksum);
  return tables;
}

std::vector<PlannedTensor> plan(const internal::PrefixFileTables& tables,
                                const std::vector<Payload>& payloads) {
  using numerics::Dtype;
  const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  const auto name_bytes = static_cast<std::int64_t>(sizeof(cache::PageName));
  std::vector<PlannedTensor> tensors = {
      {std::string(internal::kTokensTensor), Dtype::kI32, {count(tables.tokens)}},
      {std::string(internal::kNamesTensor), Dtype::kU8, {count(tables.names), name_bytes}},
      {std::string(internal::kPositionsTensor), Dtype::kI64, {count(tables.positions)}},
      {std::string(internal::kChecksumsTensor),
       Dtype::kU8,
       {count(tables.checksums), internal::kChecksumBytes}}};
  for (const Payload& payload : payloads) {
    tensors.push_back(
        {payload.tensor, Dtype::kU8, {static_cast<std::int64_t>(payload.value.bytes)}});
  }
  return tensors;
}

// Payloads from `first` on that are read together; the index after them.
Result<std::size_t> append_batch(cache::DiskStore& store, std::span<const Payload> payloads,
                                 std::size_t first, SafetensorsStream& stream) {
  std::size_t end = first;
  std::uint64_t bytes = 0;
  while (end < payloads.size() &&
         (end == first || bytes + payloads[end].value.bytes <= kBatchBytes)) {
    bytes += payloads[end].value.bytes;
    ++end;
  }
  std::vector<std::byte> buffer(bytes);
  std::span<std::byte> rest(buffer);
  std::vector<cache::PayloadLoad> loads;
  for (std::size_t i = first; i < end; ++i) {
    loads.push_back({payloads[i].value, rest.first(payloads[i].value.bytes)});
    rest = rest.subspan(payloads[i].value.bytes);
  }
  const std::vector<std::size_t> damaged = store.load(loads);
  if (!damaged.empty()) {
    return fail(ErrorCode::kBadMemory,
                fmt::format("{} of this prefix is damaged or was removed meanwhile; the memory can "
                            "be checked with: locket cache verify",
                            payloads[first + damaged.front()].tensor));
  }
  LOCKET_TRY_STATUS(stream.append(buffer));
  return end;
}

Result<Prefix> find(cache::DiskStore& store, const cache::PageName& name) {
  Prefix prefix;
  LOCKET_TRY(prefix.pages, cache::pages_of(store, name));
  prefix.snapshots = cache::snapshots_of(store, prefix.pages);
  prefix.root = cache::label_of(store, prefix.pages.front().parent.name);
  if (!prefix.root.identity.numerics_mode.empty()) return prefix;
  return fail(ErrorCode::kBadMemory,
              fmt::format("the record that says whose memory {} is cannot be read", to_hex(name)));
}

}  // namespace

Result<PrefixFileFacts> export_prefix(cache::DiskStore& store, const cache::PageName& name,
                                      const std::filesystem::path& file,
                                      const PrefixFileProgress& progress) {
  LOCKET_TRY(const Prefix prefix, find(store, name));
  const std::vector<Payload> payloads = payloads_of(prefix);
  PrefixFileFacts facts = {.model = prefix.root.model,
                           .identity = prefix.root.identity,
                           .tokens = prefix.pages.back().end.position,
                           .pages = static_cast<std::int64_t>(prefix.pages.size()),
                           .snapshots = static_cast<std::int64_t>(prefix.snapshots.size())};
  for (const Payload& payload : payloads) {
    if (payload.value.bytes > kMostValueBytes) {
      return fail(ErrorCode::kBadMemory, fmt::format("{} of this prefix has {} bytes: damaged",
                                                     payload.tensor, payload.value.bytes));
    }
    facts.payload_bytes += payload.value.bytes;
  }
  const internal::PrefixFileTables tables = tables_of(prefix, payloads);
  const internal::TableBytes bytes = internal::encode_tables(tables);
  const internal::PrefixFileHead head = {
      .model = prefix.root.model, .identity = prefix.root.identity, .root = prefix.root.root};
  LOCKET_TRY(
      SafetensorsStream stream,
      SafetensorsStream::create(file, plan(tables, payloads), internal::encode_head(head, bytes)));
  for (const std::string* table :
       {&bytes.tokens, &bytes.names, &bytes.positions, &bytes.checksums}) {
    LOCKET_TRY_STATUS(stream.append(std::as_bytes(std::span(*table))));
  }
  std::uint64_t done = 0;
  for (std::size_t first = 0; first < payloads.size();) {
    LOCKET_TRY(const std::size_t end, append_batch(store, payloads, first, stream));
    for (; first < end; ++first) done += payloads[first].value.bytes;
    if (progress) progress(done, facts.payload_bytes);
  }
  LOCKET_TRY_STATUS(stream.finish());
  return facts;
}

}  // namespace locket::engine
