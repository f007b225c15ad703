#include "tests/support/checkpoint_files.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>
#include <system_error>

namespace locket::test_support {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "locket_test_XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  if (made == nullptr) {
    ADD_FAILURE() << "cannot make a folder like " << pattern;
    return;
  }
  path_ = made;
}

TempFolder::~TempFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

fs::path TempFolder::write(std::string_view name, std::string_view content) const {
  const fs::path path = path_ / name;
  std::ofstream stream(path, std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) ADD_FAILURE() << "cannot write " << path;
  return path;
}

std::string frame_safetensors(std::string_view header, std::string_view data) {
  std::string text;
  for (int byte = 0; byte < 8; ++byte) {
    text.push_back(static_cast<char>(header.size() >> (8 * byte) & 0xff));
  }
  text += header;
  text += data;
  return text;
}

std::string safetensors_text(const std::vector<FileTensor>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::string data;
  for (const FileTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return frame_safetensors(header.dump(), data);
}

std::string index_text(const std::map<std::string, std::vector<std::string>>& names_by_file) {
  ordered_json map = ordered_json::object();
  for (const auto& [file, names] : names_by_file) {
    for (const std::string& name : names) map[name] = file;
  }
  return ordered_json{{"metadata", {{"total_size", 0}}}, {"weight_map", map}}.dump(2);
}

void write_checkpoint(const TempFolder& folder, const CheckpointText& checkpoint) {
  folder.write("config.json", checkpoint.config);
  std::map<std::string, std::vector<std::string>> names_by_file;
  for (const auto& [file, tensors] : checkpoint.files) {
    folder.write(file, safetensors_text(tensors));
    for (const FileTensor& tensor : tensors) names_by_file[file].push_back(tensor.name);
  }
  if (checkpoint.files.size() == 1 && checkpoint.files.contains("model.safetensors")) return;
  folder.write("model.safetensors.index.json", index_text(names_by_file));
}

std::string counting_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t place = 0; place < count; ++place) {
    bytes[place] = static_cast<char>(place % 251);
  }
  return bytes;
}

}  // namespace locket::test_support
