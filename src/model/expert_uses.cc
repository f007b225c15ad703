#include "model/expert_uses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace locket::model {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// The file: this head, ranks as float32 relative to the time of writing [layers, experts], and the
// checksum of everything before it. All little-endian.
struct FileHead {
  std::array<char, 8> magic = {};
  std::uint32_t version = 0;
  std::uint32_t layers = 0;
  std::uint32_t experts = 0;
  std::uint32_t unused = 0;
  Sha256Digest model = {};
};
constexpr std::array<char, 8> kMagic = {'l', 'o', 'c', 'k', 'e', 't', 'E', 'U'};
constexpr std::uint32_t kVersion = 1;

double add_use(double rank, double use) {
  const double high = std::max(rank, use);
  const double low = std::min(rank, use);
  return low == kNever ? high : high + std::log2(1.0 + std::exp2(low - high));
}

}  // namespace

ExpertUses::ExpertUses(std::size_t layers, std::size_t experts)
    : layers_(layers), experts_(experts), ranks_(layers * experts, kNever) {
  LOCKET_CHECK(layers > 0 && experts > 0);
}

void ExpertUses::note(std::int64_t layer, std::span<const std::int32_t> experts) {
  const double use = now() / kHalfLife;
  for (const std::int32_t expert : experts) {
    double& rank = ranks_[index({layer, expert})];
    rank = add_use(rank, use);
  }
  visits_ += 1;
}

std::vector<ExpertKey> ExpertUses::most_used(std::size_t most) const {
  std::vector<ExpertKey> keys;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i] == kNever) continue;
    keys.push_back({.layer = static_cast<std::int64_t>(i / experts_),
                    .expert = static_cast<std::int32_t>(i % experts_)});
  }
  std::ranges::stable_sort(
      keys, [&](const ExpertKey& a, const ExpertKey& b) { return rank(a) > rank(b); });
  keys.resize(std::min(keys.size(), most));
  return keys;
}

std::string ExpertUses::to_bytes(const Sha256Digest& model) const {
  FileHead head = {.magic = kMagic,
                   .version = kVersion,
                   .layers = static_cast<std::uint32_t>(layers_),
                   .experts = static_cast<std::uint32_t>(experts_),
                   .model = model};
  std::string bytes(sizeof head + ranks_.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto rank = static_cast<float>(ranks_[i] - now() / kHalfLife);
    std::memcpy(bytes.data() + sizeof head + i * sizeof rank, &rank, sizeof rank);
  }
  const Checksum128 checksum = xxh3_128(std::as_bytes(std::span(bytes)));
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  return bytes;
}

Result<ExpertUses> ExpertUses::from_bytes(std::string_view bytes, const Sha256Digest& model,
                                          std::size_t layers, std::size_t experts) {
  const auto refuse = [](const char* why) {
    return fail(ErrorCode::kBadMemory, std::string("these are no use counts of experts: ") + why);
  };
  ExpertUses uses(layers, experts);
  const std::size_t content = sizeof(FileHead) + uses.ranks_.size() * sizeof(float);
  if (bytes.size() != content + sizeof(Checksum128)) return refuse("the size is wrong");
  Checksum128 checksum;
  std::memcpy(&checksum, bytes.data() + content, sizeof checksum);
  if (checksum != xxh3_128(std::as_bytes(std::span(bytes.substr(0, content))))) {
    return refuse("the checksum is wrong");
  }
  FileHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kMagic || head.version != kVersion) return refuse("the version is not known");
  if (head.layers != layers || head.experts != experts || head.model != model) {
    return refuse("they are of another model");
  }
  for (std::size_t i = 0; i < uses.ranks_.size(); ++i) {
    float rank = 0;
    std::memcpy(&rank, bytes.data() + sizeof head + i * sizeof rank, sizeof rank);
    if (std::isnan(rank) || rank > std::numeric_limits<float>::max()) {
      return refuse("a count is not a number");
    }
    uses.ranks_[i] = rank;
  }
  return uses;
}

}  // namespace locket::model
