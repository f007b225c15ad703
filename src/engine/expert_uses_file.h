// The use counts of experts of one model in the folder of the memory, for the next start; private,
// and replaced as a whole. Not thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>

#include "base/hash.h"
#include "base/result.h"
#include "model/expert_uses.h"

namespace locket::engine {

class ExpertUsesFile {
 public:
  ExpertUsesFile(const std::filesystem::path& folder, const Sha256Digest& model);

  const std::filesystem::path& path() const { return path_; }
  // kNotFound if there is none; kBadMemory, with the path, if it is damaged, of another version or
  // of another model.
  [[nodiscard]] Result<model::ExpertUses> read(std::size_t layers, std::size_t experts) const;
  // REQUIRES: one writer of the folder.
  [[nodiscard]] Status write(const model::ExpertUses& uses) const;

 private:
  std::filesystem::path path_;
  Sha256Digest model_;
};

}  // namespace locket::engine
