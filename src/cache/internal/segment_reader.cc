#include "cache/internal/segment_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/folder.h"
#include "base/hash.h"
#include "cache/internal/segment_format.h"

namespace locket::cache {
namespace {

constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;
// Reading over a gap this long costs less than another read.
constexpr std::uint64_t kGapBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{1} << 40;
constexpr std::size_t kMostOpenFiles = 128;

std::uint64_t end_of(const StoredValue& value) { return value.offset + value.bytes; }

}  // namespace

struct SegmentReader::Run {
  std::shared_ptr<const DirectFile> file;
  std::uint64_t begin = 0;  // aligned
  std::uint64_t end = 0;
  std::vector<std::size_t> loads;
};

SegmentReader::SegmentReader(std::filesystem::path folder, std::size_t threads,
                             std::shared_ptr<StorageFaults> faults)
    : folder_(std::move(folder)),
      threads_(std::max<std::size_t>(1, threads)),
      faults_(std::move(faults)) {}

void SegmentReader::forget_files() {
  const std::lock_guard lock(files_mutex_);
  files_.clear();
}

std::shared_ptr<const DirectFile> SegmentReader::file_of(std::uint32_t segment) const {
  const std::lock_guard lock(files_mutex_);
  const auto found = files_.find(segment);
  if (found != files_.end()) return found->second;
  auto file = open_file(segment);
  if (file == nullptr) return nullptr;
  if (files_.size() >= kMostOpenFiles) files_.erase(files_.begin());
  files_.emplace(segment, file);
  return file;
}

std::shared_ptr<const DirectFile> SegmentReader::open_file(std::uint32_t segment) const {
  for (std::uint32_t kind = 0; kind < kSegmentKinds; ++kind) {
    const SegmentName name = {.kind = static_cast<SegmentKind>(kind), .id = segment};
    auto file = DirectFile::open(folder_ / segment_file_name(name));
    if (!file) continue;
    const DirectBuffer head(kDirectReadAlignment);
    const auto got = file->read(0, head.bytes());
    if (!got || !is_segment_header(head.bytes().first(*got), name)) continue;
    return std::make_shared<const DirectFile>(std::move(*file));
  }
  return nullptr;
}

SegmentReader::Runs SegmentReader::plan(std::span<const PayloadLoad> loads,
                                        std::vector<std::size_t>& bad) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const StoredValue& value = loads[i].value;
    const bool is_sane = value.bytes == loads[i].target.size() &&
                         value.bytes <= kMostPayloadBytes && value.offset <= kMostPayloadBytes;
    (is_sane ? order : bad).push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(loads[a].value.segment, loads[a].value.offset) <
           std::pair(loads[b].value.segment, loads[b].value.offset);
  });
  Runs runs;
  std::uint32_t segment = 0;
  for (const std::size_t i : order) {
    const StoredValue& value = loads[i].value;
    const bool joins = !runs.empty() && segment == value.segment &&
                       value.offset <= runs.back().end + kGapBytes &&
                       end_of(value) <= runs.back().begin + kRunBytes;
    if (!joins) {
      segment = value.segment;
      auto file = file_of(segment);
      runs.push_back({.file = std::move(file),
                      .begin = value.offset / kDirectReadAlignment * kDirectReadAlignment,
                      .end = end_of(value),
                      .loads = {}});
    }
    runs.back().end = std::max(runs.back().end, end_of(value));
    runs.back().loads.push_back(i);
  }
  return runs;
}

bool SegmentReader::fill(const Run& run, std::span<std::byte> target) const {
  if (run.file == nullptr) return false;
  if (faults_ != nullptr) {
    const std::string name = run.file->path().filename().string();
    if (faults_->hook(StorageOperation::kRead, name, target.size()).error != 0) return false;
  }
  const auto got = run.file->read(run.begin, target);
  return got && *got >= run.end - run.begin;
}

bool SegmentReader::read_in_place(const Run& run, std::span<const PayloadLoad> loads) const {
  if (run.file == nullptr || !run.file->is_direct()) return false;
  std::uint64_t next = loads[run.loads.front()].value.offset;
  if (next % kSectorBytes != 0) return false;
  std::vector<std::span<std::byte>> targets;
  for (const std::size_t i : run.loads) {
    const std::span<std::byte> target = loads[i].target;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(target.data()) % kSectorBytes == 0 &&
                            target.size() % kSectorBytes == 0;
    if (!is_aligned || target.empty() || loads[i].value.offset != next) return false;
    targets.push_back(target);
    next += target.size();
  }
  if (faults_ != nullptr) {
    const std::string name = run.file->path().filename().string();
    if (faults_->hook(StorageOperation::kRead, name, next).error != 0) return false;
  }
  return run.file->read_scattered(loads[run.loads.front()].value.offset, targets).has_value();
}

void SegmentReader::read_run(const Run& run, std::span<const PayloadLoad> loads, Lane& lane) const {
  if (read_in_place(run, loads)) {
    for (const std::size_t i : run.loads) {
      if (!(xxh3_128(loads[i].target) == loads[i].value.checksum)) lane.bad.push_back(i);
    }
    return;
  }
  const std::size_t wanted = static_cast<std::size_t>(run.end - run.begin);
  const std::size_t aligned =
      (wanted + kDirectReadAlignment - 1) / kDirectReadAlignment * kDirectReadAlignment;
  if (lane.buffer.bytes().size() < aligned) lane.buffer = DirectBuffer(aligned);
  // A run of several payloads that cannot be read as a whole is tried one by one.
  if (!fill(run, lane.buffer.bytes().first(aligned))) {
    if (run.loads.size() <= 1) {
      lane.bad.insert(lane.bad.end(), run.loads.begin(), run.loads.end());
      return;
    }
    for (const std::size_t i : run.loads) {
      const StoredValue& value = loads[i].value;
      read_run({.file = run.file,
                .begin = value.offset / kDirectReadAlignment * kDirectReadAlignment,
                .end = end_of(value),
                .loads = {i}},
               loads, lane);
    }
    return;
  }
  for (const std::size_t i : run.loads) {
    const std::byte* source = lane.buffer.bytes().data() + (loads[i].value.offset - run.begin);
    if (!loads[i].target.empty()) {
      std::memcpy(loads[i].target.data(), source, loads[i].target.size());
    }
    if (!(xxh3_128(loads[i].target) == loads[i].value.checksum)) lane.bad.push_back(i);
  }
}

std::vector<std::size_t> SegmentReader::load(std::span<const PayloadLoad> loads) const {
  std::vector<std::size_t> bad;
  const Runs runs = plan(loads, bad);
  std::atomic<std::size_t> next = 0;
  const auto work = [&](Lane& lane) {
    for (std::size_t i = next++; i < runs.size(); i = next++) read_run(runs[i], loads, lane);
  };
  std::unique_lock pool_lock(pool_mutex_, std::try_to_lock);
  if (runs.size() <= 1 || threads_ == 1 || !pool_lock.owns_lock()) {
    Lane lane;
    work(lane);
    bad.insert(bad.end(), lane.bad.begin(), lane.bad.end());
  } else {
    if (pool_ == nullptr) pool_ = std::make_unique<WorkerPool>(threads_);
    lanes_.resize(threads_);
    pool_->parallel_for(threads_, 1, [&](std::size_t begin, std::size_t) { work(lanes_[begin]); });
    for (Lane& lane : lanes_) {
      bad.insert(bad.end(), lane.bad.begin(), lane.bad.end());
      lane.bad.clear();
    }
  }
  std::sort(bad.begin(), bad.end());
  return bad;
}

}  // namespace locket::cache
