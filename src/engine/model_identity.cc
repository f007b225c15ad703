#include "engine/model_identity.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/generations/generation.h"
#include "numerics/dtype.h"

namespace locket::engine {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
// A sample: so many blocks of this size, spread evenly over the tensor, its ends among them.
constexpr std::uint64_t kSampleBytes = 4096;
constexpr std::uint64_t kSamples = 8;

void add(Sha256& hash, std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  hash.update(std::as_bytes(std::span(&size, 1)));
  hash.update(bytes);
}

void add(Sha256& hash, std::string_view text) { add(hash, std::as_bytes(std::span(text))); }

Status add_range(Sha256& hash, const checkpoint::StoredTensor& tensor, std::uint64_t first,
                 std::uint64_t bytes) {
  std::vector<std::byte> block(std::min(bytes, kBlockBytes));
  while (bytes > 0) {
    const std::span part(block.data(), std::min(bytes, kBlockBytes));
    LOCKET_TRY_STATUS(tensor.read_range(first, part));
    hash.update(part);
    first += part.size();
    bytes -= part.size();
  }
  return {};
}

Status add_content(Sha256& hash, const model::Generation& generation,
                   const checkpoint::StoredTensor& tensor) {
  const std::uint64_t bytes = tensor.byte_count();
  const bool is_sampled = generation.is_sampled(tensor.name()) && bytes > kSamples * kSampleBytes;
  if (!is_sampled) return add_range(hash, tensor, 0, bytes);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t first = (bytes - kSampleBytes) / (kSamples - 1) * i;
    LOCKET_TRY_STATUS(add_range(hash, tensor, first, kSampleBytes));
  }
  return {};
}

Result<Sha256Digest> tensor_digest(const model::Generation& generation,
                                   const checkpoint::StoredTensor& tensor) {
  Sha256 hash;
  add(hash, tensor.name());
  add(hash, numerics::dtype_name(tensor.dtype));
  for (const std::int64_t size : tensor.shape) {
    hash.update(std::as_bytes(std::span(&size, 1)));
  }
  LOCKET_TRY_STATUS(add_content(hash, generation, tensor));
  return hash.finish();
}

Status add_file(Sha256& hash, const std::filesystem::path& path) {
  const Result<std::string> content = read_whole_file(path);
  if (!content && content.error().code != ErrorCode::kNotFound) {
    return tl::make_unexpected(content.error());
  }
  add(hash, content ? *content : std::string());
  return {};
}

}  // namespace

Result<Sha256Digest> model_identity(const checkpoint::Checkpoint& checkpoint, WorkerPool& workers) {
  LOCKET_TRY(const model::Generation* generation,
             model::find_generation(checkpoint.config().root()));
  Sha256 hash;
  if (checkpoint.gguf() != nullptr) {
    add(hash, checkpoint.gguf()->header_digest());
  } else {
    LOCKET_TRY_STATUS(add_file(hash, checkpoint.folder() / "config.json"));
    LOCKET_TRY_STATUS(add_file(hash, checkpoint.folder() / "tokenizer.json"));
  }
  const std::vector<checkpoint::StoredTensor> tensors = checkpoint.tensors();
  std::vector<Result<Sha256Digest>> digests(tensors.size());
  workers.parallel_for(tensors.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) digests[i] = tensor_digest(*generation, tensors[i]);
  });
  for (const Result<Sha256Digest>& digest : digests) {
    if (!digest) return tl::make_unexpected(digest.error());
    hash.update(*digest);
  }
  return hash.finish();
}

}  // namespace locket::engine
