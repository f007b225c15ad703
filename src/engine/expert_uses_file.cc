#include "engine/expert_uses_file.h"

#include <cstdint>
#include <fmt/format.h>
#include <span>
#include <string>

#include "base/folder.h"

namespace locket::engine {
namespace {

constexpr std::size_t kNameBytes = 8;  // of the model's digest
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

}  // namespace

ExpertUsesFile::ExpertUsesFile(const std::filesystem::path& folder, const Sha256Digest& model)
    : path_(folder / ("experts-" + to_hex(std::span(model).first(kNameBytes)))), model_(model) {}

Result<model::ExpertUses> ExpertUsesFile::read(std::size_t layers, std::size_t experts) const {
  LOCKET_TRY(const std::string bytes, read_private_file(path_, kMostBytes));
  Result<model::ExpertUses> uses = model::ExpertUses::from_bytes(bytes, model_, layers, experts);
  if (uses) return uses;
  return fail(uses.error().code, fmt::format("{}: {}", path_.string(), uses.error().message));
}

Status ExpertUsesFile::write(const model::ExpertUses& uses) const {
  return replace_private_file(path_, uses.to_bytes(model_));
}

}  // namespace locket::engine
