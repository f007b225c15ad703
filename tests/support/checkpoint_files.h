// Checkpoint files for tests: a folder of its own that goes away again, and plain writers for
// safetensors, index and config text. The writers check nothing, so that tests can write broken
// files, and share no code with the program's own writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace locket::test_support {

// A new empty folder; removed with all its content at the end of its life. Fails the running test
// if the folder or a file cannot be written.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Returns the path of the file written.
  std::filesystem::path write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

// One tensor of a file; bytes are the content as stored.
struct FileTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

// `header` with its length in front, then `data`.
std::string frame_safetensors(std::string_view header, std::string_view data);

// A whole safetensors file, tensors one after the other.
std::string safetensors_text(const std::vector<FileTensor>& tensors,
                             const std::map<std::string, std::string>& metadata = {});

// The index of tensors by file: file name to tensor names.
std::string index_text(const std::map<std::string, std::vector<std::string>>& names_by_file);

struct CheckpointText {
  std::string config = "{}";
  std::map<std::string, std::vector<FileTensor>> files;  // by file name
};

// Writes config.json, the files and model.safetensors.index.json. A checkpoint whose only file is
// model.safetensors gets no index.
void write_checkpoint(const TempFolder& folder, const CheckpointText& checkpoint);

// Bytes 0, 1, 2, ... 250, 0, 1, ... for content that shows where it came from.
std::string counting_bytes(std::size_t count);

}  // namespace locket::test_support
