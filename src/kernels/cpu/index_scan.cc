#include "kernels/cpu/index_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

namespace locket::kernels::cpu {
namespace {

// Blocks that are decoded before they are multiplied: in integers they stay in the first cache
// level, else a query is packed for all of them.
constexpr std::size_t kPanelBlocks = 2;
constexpr std::size_t kExactBlocks = 16;

// Cuts runs into blocks of 64 rows: in place where they lie together, else copied.
class BlockCutter {
 public:
  BlockCutter(std::span<const KeyRun> runs, std::size_t row_bytes)
      : runs_(runs), row_bytes_(row_bytes), copies_(kBlockKeys * row_bytes) {}

  // The next rows, at most 64; valid until the next call. Behind the last there are bytes up to
  // 64 rows, of no meaning.
  struct Rows {
    const std::byte* bytes = nullptr;
    const std::byte* ahead = nullptr;  // where the rows behind them begin, as far as it is known
    std::size_t count = 0;
  };
  Rows next() {
    skip_ended();
    if (runs_.empty()) return {};
    const KeyRun run = runs_.front();
    if (run.count - at_ >= kBlockKeys) {
      const std::byte* bytes = run.rows + at_ * row_bytes_;
      at_ += kBlockKeys;
      skip_ended();
      const std::byte* ahead = runs_.empty() ? bytes : runs_.front().rows + at_ * row_bytes_;
      return {.bytes = bytes, .ahead = ahead, .count = kBlockKeys};
    }
    return copy_rows();
  }

 private:
  void skip_ended() {
    while (!runs_.empty() && at_ == runs_.front().count) {
      runs_ = runs_.subspan(1);
      at_ = 0;
    }
  }

  Rows copy_rows() {
    std::size_t count = 0;
    while (!runs_.empty() && count < kBlockKeys) {
      fetch_ahead();
      const std::size_t taken = std::min(kBlockKeys - count, runs_.front().count - at_);
      std::memcpy(copies_.data() + count * row_bytes_, runs_.front().rows + at_ * row_bytes_,
                  taken * row_bytes_);
      count += taken;
      at_ += taken;
      skip_ended();
    }
    const std::byte* ahead = runs_.empty() ? copies_.data() : runs_.front().rows + at_ * row_bytes_;
    return {.bytes = copies_.data(), .ahead = ahead, .count = count};
  }

  // Short runs lie anywhere: those of about a block further on are asked for in time.
  void fetch_ahead() const {
    if (runs_.size() <= kRunsAhead) return;
    const KeyRun& run = runs_[kRunsAhead];
    const std::size_t bytes = std::min(run.count, kBlockKeys) * row_bytes_;
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(run.rows + at);
    __builtin_prefetch(run.rows + bytes - 1);
  }

  static constexpr std::size_t kRunsAhead = 8;

  std::span<const KeyRun> runs_;
  std::size_t row_bytes_;
  std::size_t at_ = 0;  // rows of the first run that are done
  std::vector<std::byte> copies_;
};

// Keys as float32, and where their scores belong.
struct DecodedKeys {
  std::vector<float> values;  // [places][dim]
  std::vector<std::size_t> places;

  void clear() {
    values.clear();
    places.clear();
  }

  void add(RowFormat format, std::span<const std::byte> row, std::size_t dim, std::size_t place) {
    values.resize(values.size() + dim);
    decode_row(format, row, std::span(values).last(dim));
    places.push_back(place);
  }
};

// The keys of vectors that hold a wide key.
std::uint64_t wide_vectors(const KeyBlock& block) {
  std::uint64_t keys = 0;
  for (std::size_t vector = 0; vector < kBlockVectors; ++vector) {
    if (block.is_wide(vector)) keys |= std::uint64_t{0xFFFF} << (vector * kVectorKeys);
  }
  return keys;
}

// Scores of queries that either all have integers or all go without.
class Scanner {
 public:
  Scanner(const IndexScanKernels& kernels, const IndexScan& scan, bool in_integers)
      : kernels_(kernels),
        scan_(scan),
        dim_(scan.queries.front().dim),
        row_bytes_(row_bytes(scan.format, dim_)),
        capacity_(!in_integers               ? kExactBlocks
                  : scan.queries.size() == 1 ? 1
                                             : kPanelBlocks) {
    if (in_integers) panel_ = std::make_unique_for_overwrite<Panel>();
    for (const IndexQuery& query : scan.queries) two_planes_ |= query.integers.planes == 2;
  }
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;
  ~Scanner() { close_blocks(); }

  void run() {
    BlockCutter cutter(scan_.runs, row_bytes_);
    std::size_t first = 0;
    for (auto rows = cutter.next(); rows.count > 0; rows = cutter.next()) {
      if (filled_ == capacity_) {
        score_panel(first);
        first += capacity_ * kBlockKeys;
      }
      add_rows(rows);
    }
    if (filled_ > 0) score_panel(first);
  }

 private:
  using Panel = std::array<KeyBlock, kPanelBlocks>;

  // Another block; only the last of a scan holds less than 64 keys.
  void add_rows(const BlockCutter::Rows& rows) {
    const std::size_t place = filled_ * kBlockKeys;
    std::uint64_t exact = ~std::uint64_t{0};
    if (panel_ != nullptr) {
      KeyBlock& block = (*panel_)[filled_];
      kernels_.blocks->decode(rows.bytes, rows.ahead, block);
      exact = block.unfit | (two_planes_ ? wide_vectors(block) : 0);
    }
    if (rows.count < kBlockKeys) exact &= (std::uint64_t{1} << rows.count) - 1;
    for (; exact != 0; exact &= exact - 1) {
      const auto key = static_cast<std::size_t>(std::countr_zero(exact));
      exact_.add(scan_.format, {rows.bytes + key * row_bytes_, row_bytes_}, dim_, place + key);
    }
    ++filled_;
    count_ = place + rows.count;
  }

  void open_blocks() {
    if (!is_open_) kernels_.blocks->begin();
    is_open_ = true;
  }

  void close_blocks() {
    if (is_open_) kernels_.blocks->end();
    is_open_ = false;
  }

  // The keys from `first` on, of all queries.
  void score_panel(std::size_t first) {
    const auto scores_of = [&](std::size_t q) { return scan_.scores + q * scan_.stride + first; };
    if (panel_ != nullptr) {
      open_blocks();
      for (std::size_t q = 0; q < scan_.queries.size(); ++q) {
        multiply(scan_.queries[q], scores_of(q));
      }
    }
    if (!exact_.places.empty()) {
      close_blocks();
      for (std::size_t q = 0; q < scan_.queries.size(); ++q) {
        score_exactly(scan_.queries[q], scores_of(q));
      }
    }
    exact_.clear();
    filled_ = 0;
  }

  void multiply(const IndexQuery& query, float* scores) const {
    const std::size_t whole = count_ / kBlockKeys;
    const std::span<const KeyBlock> blocks(panel_->data(), filled_);
    if (whole > 0) kernels_.blocks->multiply(query, blocks.first(whole), scores);
    if (whole == filled_) return;
    std::array<float, kBlockKeys> last;
    kernels_.blocks->multiply(query, blocks.subspan(whole), last.data());
    std::copy_n(last.data(), count_ % kBlockKeys, scores + whole * kBlockKeys);
  }

  void score_exactly(const IndexQuery& query, float* scores) {
    exact_scores_.resize(exact_.places.size());
    kernels_.exact({.heads = query.heads,
                    .dim = dim_,
                    .query = query.values,
                    .weights = query.weights,
                    .keys = exact_.values,
                    .rounding = query.rounding},
                   exact_scores_);
    for (std::size_t i = 0; i < exact_scores_.size(); ++i) {
      scores[exact_.places[i]] = exact_scores_[i];
    }
  }

  const IndexScanKernels& kernels_;
  const IndexScan& scan_;
  std::size_t dim_;
  std::size_t row_bytes_;
  std::size_t capacity_;  // blocks of a panel
  bool two_planes_ = false;
  bool is_open_ = false;
  std::unique_ptr<Panel> panel_;  // none: without integers
  std::size_t filled_ = 0;        // blocks of the panel
  std::size_t count_ = 0;         // their keys
  DecodedKeys exact_;             // keys of the panel for the kernels of any values
  std::vector<float> exact_scores_;
};

bool has_integers(const IndexScanKernels& kernels, const IndexScan& scan, std::size_t query) {
  return kernels.blocks != nullptr && scan.format == RowFormat::kFp4Index &&
         scan.queries[query].integers.planes > 0;
}

}  // namespace

void scan_keys(const IndexScanKernels& kernels, const IndexScan& scan) {
  std::size_t first = 0;
  while (first < scan.queries.size()) {
    const bool in_integers = has_integers(kernels, scan, first);
    std::size_t last = first + 1;
    while (last < scan.queries.size() && has_integers(kernels, scan, last) == in_integers) ++last;
    IndexScan part = scan;
    part.queries = scan.queries.subspan(first, last - first);
    part.scores = scan.scores + first * scan.stride;
    Scanner(kernels, part, in_integers).run();
    first = last;
  }
}

}  // namespace locket::kernels::cpu
