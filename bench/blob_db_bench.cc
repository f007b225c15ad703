// Can RocksDB's blob files hold page payloads? Restores keys and rows of all pages through BlobDB
// (values of their own, checked, by MultiGet on several threads) and reads the same bytes from a
// plain file (O_DIRECT, 1 MB, 4 threads), in turn, in one process. The decision that rests on it:
// docs/decisions/0005-page-files-beside-rocksdb.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <random>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "measure.h"

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kKeyBytes = 21'760;
constexpr std::size_t kRowBytes = 92'160;
constexpr std::size_t kPlainBlock = std::size_t{1} << 20;
constexpr std::size_t kPlainThreads = 4;
constexpr int kTurns = 20;

struct Wishes {
  std::vector<std::int64_t> tokens = {131'072, 1'048'576};
  int runs = 5;
  std::size_t threads = 4;
  std::size_t batch = 16;
  bool random_names = false;
  std::string directory = "/tmp";
  double benchmark_min_time = 0;
};

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size + 8, '\0');
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  bytes.resize(size);
  return bytes;
}

template <class Work>
double timed_on_threads(std::size_t count, const Work& work) {
  const double begin = locket::monotonic_seconds();
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  threads.clear();
  return locket::monotonic_seconds() - begin;
}

// Two column families, so that keys lie beside keys and rows beside rows.
class BlobStore {
 public:
  BlobStore(const fs::path& folder, const Wishes& wishes) : wishes_(wishes) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.use_direct_reads = true;
    options.max_open_files = -1;
    options.enable_blob_files = true;
    options.min_blob_size = 0;
    options.blob_file_size = std::uint64_t{1} << 30;
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = std::size_t{512} << 20;
    options.disable_auto_compactions = true;
    const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {rocksdb::kDefaultColumnFamilyName, options}, {"rows", options}};
    rocksdb::DB* db = nullptr;
    LOCKET_CHECK(rocksdb::DB::Open(options, folder.string(), families, &families_, &db).ok());
    db_.reset(db);
  }
  ~BlobStore() {
    for (auto* family : families_) db_->DestroyColumnFamilyHandle(family);
  }

  void write(std::int64_t pages) {
    std::mt19937_64 random(7);
    rocksdb::WriteOptions no_log;
    no_log.disableWAL = true;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::int64_t page = pages * turn / kTurns; page < pages * (turn + 1) / kTurns; ++page) {
        names_.push_back(name_of(page, random));
        const std::string keys = random_bytes(random, kKeyBytes);
        const std::string rows = random_bytes(random, kRowBytes);
        LOCKET_CHECK(db_->Put(no_log, families_[0], names_.back(), keys).ok());
        LOCKET_CHECK(db_->Put(no_log, families_[1], names_.back(), rows).ok());
      }
      LOCKET_CHECK(db_->Flush({}, families_).ok());
    }
  }

  // The payloads are looked at, not copied: less than a restore has to do.
  void read(std::size_t thread) const {
    for (std::size_t family = 0; family < 2; ++family) {
      for (std::size_t begin = thread * wishes_.batch; begin < names_.size();
           begin += wishes_.threads * wishes_.batch) {
        read_batch(family, begin, std::min(begin + wishes_.batch, names_.size()));
      }
    }
  }

 private:
  std::string name_of(std::int64_t page, std::mt19937_64& random) const {
    if (wishes_.random_names) return random_bytes(random, 64);
    return fmt::format("{:064}", page);
  }

  void read_batch(std::size_t family, std::size_t begin, std::size_t end) const {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    std::vector<rocksdb::Slice> names(names_.begin() + begin, names_.begin() + end);
    std::vector<rocksdb::PinnableSlice> values(names.size());
    std::vector<rocksdb::Status> statuses(names.size());
    db_->MultiGet(options, families_[family], names.size(), names.data(), values.data(),
                  statuses.data());
    for (std::size_t i = 0; i < names.size(); ++i) {
      LOCKET_CHECK(statuses[i].ok() && values[i].size() == (family == 0 ? kKeyBytes : kRowBytes));
    }
  }

  const Wishes wishes_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::vector<std::string> names_;
};

class PlainFile {
 public:
  PlainFile(const fs::path& path, std::size_t bytes) : bytes_(bytes) {
    std::mt19937_64 random(8);
    std::ofstream file(path, std::ios::binary);
    for (std::size_t at = 0; at < bytes; at += kPlainBlock) {
      const std::string block = random_bytes(random, std::min(kPlainBlock, bytes - at));
      file.write(block.data(), static_cast<std::streamsize>(block.size()));
    }
    file.close();
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_DIRECT);
    LOCKET_CHECK(descriptor_ >= 0);
    LOCKET_CHECK(::fsync(descriptor_) == 0);
  }
  ~PlainFile() { ::close(descriptor_); }

  void read(std::size_t thread) const {
    std::unique_ptr<void, void (*)(void*)> buffer(std::aligned_alloc(4096, kPlainBlock), std::free);
    for (std::size_t at = thread * kPlainBlock; at < bytes_; at += kPlainThreads * kPlainBlock) {
      const ssize_t got = ::pread(descriptor_, buffer.get(), kPlainBlock, static_cast<off_t>(at));
      LOCKET_CHECK(got == static_cast<ssize_t>(std::min(kPlainBlock, bytes_ - at)));
    }
  }

 private:
  std::size_t bytes_;
  int descriptor_ = -1;
};

void compare(const Wishes& wishes, std::int64_t tokens) {
  const std::int64_t pages = tokens / 128;
  const std::size_t bytes = static_cast<std::size_t>(pages) * (kKeyBytes + kRowBytes);
  const fs::path folder = fs::path(wishes.directory) / fmt::format("blob_db_{}", ::getpid());
  fs::create_directories(folder);
  double written = 0;
  {
    std::uint64_t before = locket::written_bytes();
    BlobStore blobs(folder / "db", wishes);
    blobs.write(pages);
    written = static_cast<double>(locket::written_bytes() - before);
    const PlainFile plain(folder / "plain", bytes);
    std::vector<double> blob_seconds, plain_seconds, ratios;
    for (int run = 0; run < wishes.runs; ++run) {
      plain_seconds.push_back(timed_on_threads(kPlainThreads, [&](auto i) { plain.read(i); }));
      blob_seconds.push_back(timed_on_threads(wishes.threads, [&](auto i) { blobs.read(i); }));
      ratios.push_back(blob_seconds.back() / plain_seconds.back());
    }
    fmt::print(
        "{{\"tokens\": {}, \"bytes\": {}, \"names\": \"{}\", \"threads\": {}, \"batch\": {}, "
        "\"blob_seconds\": {:.4f}, \"plain_seconds\": {:.4f}, \"ratio\": {:.2f}, "
        "\"written_per_stored\": {:.3f}}}\n",
        tokens, bytes, wishes.random_names ? "random" : "in order", wishes.threads, wishes.batch,
        locket::median(blob_seconds), locket::median(plain_seconds), locket::median(ratios),
        written / static_cast<double>(bytes));
  }
  fs::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  Wishes wishes;
  CLI::App app("Page payloads in RocksDB blob files against plain reads of the same bytes.");
  app.add_option("--tokens", wishes.tokens, "tokens of the stored prefix")->delimiter(',');
  app.add_option("--runs", wishes.runs, "runs of each, in turn; the median counts");
  app.add_option("--threads", wishes.threads, "threads that read through RocksDB");
  app.add_option("--batch", wishes.batch, "pages per MultiGet");
  app.add_flag("--random-names", wishes.random_names, "names like digests, as the store has them");
  app.add_option("--directory", wishes.directory, "where the files are made");
  app.add_option("--benchmark_min_time", wishes.benchmark_min_time, "given: only a short trial");
  CLI11_PARSE(app, argc, argv);
  if (wishes.benchmark_min_time > 0) {
    wishes.tokens = {4'096};
    wishes.runs = 1;
  }
  for (const std::int64_t tokens : wishes.tokens) compare(wishes, tokens);
  return 0;
}
