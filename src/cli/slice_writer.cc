#include "cli/slice_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "checkpoint/config_json.h"
#include "checkpoint/safetensors_stream.h"
#include "cli/text_table.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;
// Headers, index and tokenizer, and what a file system needs for itself.
constexpr std::uint64_t kSpareBytes = std::uint64_t{256} << 20;

Status prepare_folder(const fs::path& folder, std::uint64_t bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  }
  const bool is_empty = fs::is_empty(folder, error);
  if (error || !is_empty) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("{} is not empty; a slice is made in a new or empty folder", folder.string()));
  }
  const fs::space_info space = fs::space(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, fmt::format("cannot ask how much room {} has: {}", folder.string(),
                                            error.message()));
  }
  if (space.available >= bytes + kSpareBytes) return {};
  return fail(ErrorCode::kOverBudget,
              fmt::format("{} has room for {} bytes; the slice needs {}", folder.string(),
                          grouped(space.available), grouped(bytes + kSpareBytes)));
}

Status write_text(const fs::path& path, const std::string& text) {
  return write_whole_file(path, std::as_bytes(std::span(text)));
}

// Entries are added to the vocabulary until it has `size` ids.
Result<std::string> extended_tokenizer(const fs::path& path, std::int64_t size) {
  LOCKET_TRY(const std::string text, read_whole_file(path));
  nlohmann::ordered_json tokenizer = nlohmann::ordered_json::parse(text, nullptr, false);
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: {}", path.string(), what));
  };
  if (tokenizer.is_discarded()) return refuse("this is no JSON");
  try {
    std::int64_t next = 0;
    for (const auto& token : tokenizer.at("added_tokens")) {
      next = std::max(next, token.at("id").get<std::int64_t>() + 1);
    }
    auto& vocabulary = tokenizer.at("model").at("vocab");
    for (const auto& [token, id] : vocabulary.items()) {
      next = std::max(next, id.get<std::int64_t>() + 1);
    }
    if (next > size) {
      return refuse(fmt::format("{} ids are more than the slice's {}", next, size));
    }
    for (; next < size; ++next) vocabulary[fmt::format("slice{}", next)] = next;
    return tokenizer.dump();
  } catch (const nlohmann::json::exception& error) {
    return refuse(error.what());
  }
}

Status write_tokenizer(const fs::path& folder, const SliceWish& wish) {
  LOCKET_TRY(const std::string text,
             extended_tokenizer(wish.tokenizer_folder / "tokenizer.json", wish.shape.vocabulary));
  LOCKET_TRY_STATUS(write_text(folder / "tokenizer.json", text));
  LOCKET_TRY(const std::string settings,
             read_whole_file(wish.tokenizer_folder / "tokenizer_config.json"));
  return write_text(folder / "tokenizer_config.json", settings);
}

Status write_index(const fs::path& folder, const std::vector<SliceFile>& files,
                   std::uint64_t bytes) {
  nlohmann::json map = nlohmann::json::object();
  for (const SliceFile& file : files) {
    for (const SliceTensor& tensor : file.tensors) map[tensor.plan.name] = file.name;
  }
  const nlohmann::json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  return write_text(folder / "model.safetensors.index.json", index.dump(1) + "\n");
}

class FileWriter {
 public:
  FileWriter(const SliceWish& wish, std::uint64_t total)
      : wish_(wish), total_(total), piece_(kPieceBytes) {}

  Status write(const fs::path& folder, const SliceFile& file) {
    std::vector<checkpoint::PlannedTensor> plans;
    for (const SliceTensor& tensor : file.tensors) plans.push_back(tensor.plan);
    LOCKET_TRY(auto stream, checkpoint::SafetensorsStream::create(folder / file.name, plans, {}));
    for (const SliceTensor& tensor : file.tensors) {
      LOCKET_TRY_STATUS(write_tensor(tensor, stream));
    }
    return stream.finish();
  }

 private:
  Status write_tensor(const SliceTensor& tensor, checkpoint::SafetensorsStream& stream) {
    SliceNoise noise(wish_.seed, tensor);
    std::uint64_t left = SliceFile{.name = {}, .tensors = {tensor}}.data_bytes();
    while (left > 0) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPieceBytes));
      const auto piece = std::span(piece_).first(count);
      noise.fill(piece);
      LOCKET_TRY_STATUS(stream.append(piece));
      left -= count;
      done_ += count;
      if (wish_.progress) wish_.progress(done_, total_);
    }
    return {};
  }

  const SliceWish& wish_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::vector<std::byte> piece_;
};

}  // namespace

Result<WrittenSlice> write_slice(const fs::path& folder, const SliceWish& wish) {
  const std::string config_text = slice_config_text(wish.shape);
  LOCKET_TRY(const checkpoint::ConfigFile file,
             checkpoint::ConfigFile::parse(config_text, "config.json"));
  LOCKET_TRY(const model::V41Config config, model::read_v41_config(file.root()));
  const std::vector<SliceFile> files = slice_files(config);
  WrittenSlice written;
  for (const SliceFile& part : files) {
    written.bytes += part.data_bytes();
    written.tensors += part.tensors.size();
  }
  LOCKET_TRY_STATUS(prepare_folder(folder, written.bytes));
  LOCKET_TRY_STATUS(write_tokenizer(folder, wish));
  FileWriter writer(wish, written.bytes);
  for (const SliceFile& part : files) LOCKET_TRY_STATUS(writer.write(folder, part));
  LOCKET_TRY_STATUS(write_index(folder, files, written.bytes));
  LOCKET_TRY_STATUS(write_text(folder / "config.json", config_text));
  return written;
}

}  // namespace locket::cli
