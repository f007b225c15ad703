#include "service/kept_records.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "service/record_file.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;

// What an entry and each of its names take beside their bytes, about.
constexpr std::size_t kEntryBytes = 128;
constexpr std::size_t kNameBytes = 96;
// The file is written anew when it is twice what is alive, and this.
constexpr std::uint64_t kCompactSlackBytes = std::uint64_t{1} << 20;

void append_size(std::size_t size, std::string& out) {
  const auto number = static_cast<std::uint32_t>(size);
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::optional<std::size_t> take_size(std::string_view& rest) {
  std::uint32_t number = 0;
  if (rest.size() < sizeof(number)) return std::nullopt;
  std::memcpy(&number, rest.data(), sizeof(number));
  rest.remove_prefix(sizeof(number));
  return number;
}

struct Entry {
  std::vector<std::string> names;
  std::shared_ptr<const std::string> value;

  std::size_t memory_bytes() const {
    std::size_t bytes = kEntryBytes + value->size();
    for (const std::string& name : names) bytes += kNameBytes + 2 * name.size();
    return bytes;
  }
  std::size_t file_bytes() const {
    std::size_t bytes = RecordFile::kFrameBytes + sizeof(std::uint32_t) + value->size();
    for (const std::string& name : names) bytes += sizeof(std::uint32_t) + name.size();
    return bytes;
  }
};

std::string to_payload(const Entry& entry) {
  std::string payload;
  append_size(entry.names.size(), payload);
  for (const std::string& name : entry.names) {
    append_size(name.size(), payload);
    payload.append(name);
  }
  payload.append(*entry.value);
  return payload;
}

std::optional<Entry> from_payload(std::string_view payload) {
  Entry entry;
  const std::optional<std::size_t> count = take_size(payload);
  if (!count || *count == 0) return std::nullopt;
  for (std::size_t index = 0; index < *count; ++index) {
    const std::optional<std::size_t> bytes = take_size(payload);
    if (!bytes || *bytes > payload.size()) return std::nullopt;
    entry.names.emplace_back(payload.substr(0, *bytes));
    payload.remove_prefix(*bytes);
  }
  entry.value = std::make_shared<const std::string>(payload);
  return entry;
}

}  // namespace

struct KeptRecords::State {
  using Place = std::list<Entry>::iterator;

  bool has_room_for(const Entry& entry) const { return entry.memory_bytes() <= max_bytes; }

  // REQUIRES: has_room_for(entry).
  void insert(Entry entry) {
    for (const std::string& name : entry.names) {
      const auto found = places.find(name);
      if (found != places.end()) forget(found->second);
    }
    use.bytes += entry.memory_bytes();
    file_bytes += entry.file_bytes();
    entries.push_front(std::move(entry));
    for (const std::string& name : entries.front().names) places[name] = entries.begin();
    while (use.bytes > max_bytes) {
      forget(std::prev(entries.end()));
      ++use.evicted;
    }
    use.values = entries.size();
  }

  void forget(Place place) {
    use.bytes -= place->memory_bytes();
    file_bytes -= place->file_bytes();
    for (const std::string& name : place->names) places.erase(name);
    entries.erase(place);
  }

  void write(const std::string& payload) {
    if (!file) return;
    count(file->append(payload));
    const std::uint64_t most = 2 * file_bytes + kCompactSlackBytes;
    if (file->size_bytes() <= std::max(most, compact_above)) return;
    std::vector<std::string> payloads;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      payloads.push_back(to_payload(*entry));
    }
    const Status status = file->rewrite({payloads.begin(), payloads.end()});
    // A disk that is full is not asked again at once.
    compact_above = status ? 0 : file->size_bytes() + kCompactSlackBytes;
    count(status);
  }

  void count(const Status& status) {
    if (status) return;
    if (use.write_failures == 0)
      log_warning("answers are kept in memory only: " + status.error().message);
    ++use.write_failures;
  }

  mutable std::mutex mutex;
  std::size_t max_bytes = 0;
  std::list<Entry> entries;  // last used first
  std::unordered_map<std::string, Place> places;
  std::uint64_t file_bytes = 0;  // that the entries take in the file
  std::uint64_t compact_above = 0;
  std::optional<RecordFile> file;
  KeptUse use;
};

KeptRecords::KeptRecords(std::unique_ptr<State> state) : state_(std::move(state)) {}
KeptRecords::KeptRecords(KeptRecords&&) noexcept = default;
KeptRecords& KeptRecords::operator=(KeptRecords&&) noexcept = default;
KeptRecords::~KeptRecords() = default;

Result<KeptRecords> KeptRecords::open(const KeptOptions& options, std::string_view kind) {
  if (options.max_bytes > kMostKeptBytes) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} bytes for old answers are too many; {} is the most",
                            options.max_bytes, kMostKeptBytes));
  }
  auto state = std::make_unique<State>();
  state->max_bytes = options.max_bytes;
  if (options.memory.empty()) return KeptRecords(std::move(state));
  const fs::path folder = options.memory / "answers";
  LOCKET_TRY_STATUS(make_private_folder(folder));
  LOCKET_TRY_STATUS(check_private_folder(folder));
  const std::string stem = to_hex(sha256(std::as_bytes(std::span(options.model))));
  std::size_t unreadable = 0;
  const auto on_record = [&](std::string_view payload) {
    std::optional<Entry> entry = from_payload(payload);
    if (!entry) {
      ++unreadable;
    } else if (state->has_room_for(*entry)) {
      state->insert(std::move(*entry));
    }
  };
  LOCKET_TRY(RecordFile file,
             RecordFile::open(folder / fmt::format("{}.{}", stem, kind), on_record));
  state->use.evicted = 0;
  state->use.dropped = file.dropped() + unreadable;
  state->file.emplace(std::move(file));
  return KeptRecords(std::move(state));
}

void KeptRecords::keep(const std::vector<std::string>& names, std::string value) {
  Entry entry = {.names = names, .value = std::make_shared<const std::string>(std::move(value))};
  const std::string payload = to_payload(entry);
  const std::lock_guard lock(state_->mutex);
  if (!state_->has_room_for(entry)) return;
  state_->insert(std::move(entry));
  state_->write(payload);
}

std::shared_ptr<const std::string> KeptRecords::find(const std::string& name) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->places.find(name);
  if (found == state_->places.end()) return nullptr;
  state_->entries.splice(state_->entries.begin(), state_->entries, found->second);
  return found->second->value;
}

KeptUse KeptRecords::use() const {
  const std::lock_guard lock(state_->mutex);
  return state_->use;
}

std::string tenant_name(std::string_view tenant, std::string_view id) {
  return fmt::format("{}:{}{}", tenant.size(), tenant, id);
}

}  // namespace locket::service
