// What the program says about folders that are no whole, sane checkpoint: exit code 1 and one line
// that names the thing, what was found and what is needed.
#include <functional>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using test_support::FileTensor;
using test_support::run_program;
using test_support::TempFolder;

constexpr const char* kSecondShard = "model-00002-of-00003.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n";

class BadCheckpointTest : public testing::Test {
 protected:
  void SetUp() override { copy_checkpoint(tiny_folder("micro"), folder_); }

  test_support::ProgramResult run() const {
    return run_program({"run", folder_.path().string(), "-p", "Hi", "--max-tokens", "1"});
  }

  nlohmann::ordered_json read_json(const std::string& name) const {
    return nlohmann::ordered_json::parse(read_whole_file(folder_ / name).value());
  }
  void write_json(const std::string& name, const nlohmann::ordered_json& value) const {
    folder_.write(name, value.dump(1));
  }

  // A shard of micro, to be written back changed.
  std::vector<FileTensor> read_shard(const std::string& name) const {
    const auto file = checkpoint::SafetensorsFile::open(folder_ / name).value();
    std::vector<FileTensor> tensors;
    for (const checkpoint::TensorEntry& entry : file.tensors()) {
      std::string bytes(entry.byte_count, '\0');
      EXPECT_TRUE(file.read_into(entry, std::as_writable_bytes(std::span(bytes))));
      tensors.push_back({entry.name, std::string(numerics::dtype_name(entry.dtype)), entry.shape,
                         std::move(bytes)});
    }
    return tensors;
  }
  void change_shard(const std::string& name,
                    const std::function<void(std::vector<FileTensor>&)>& change) const {
    std::vector<FileTensor> tensors = read_shard(name);
    change(tensors);
    folder_.write(name, test_support::safetensors_text(tensors));
  }

  void change_config(const std::string& key, const nlohmann::ordered_json& value) const {
    nlohmann::ordered_json config = read_json("config.json");
    (config.at("text_config").contains(key) ? config["text_config"][key] : config[key]) = value;
    write_json("config.json", config);
  }

  TempFolder folder_;
};

TEST_F(BadCheckpointTest, TheCopyItselfRuns) {
  const test_support::ProgramResult result = run();
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST_F(BadCheckpointTest, NamesAShardThatIsMissing) {
  fs::remove(folder_ / kSecondShard);
  expect_failure(run(), {"not_found", kIndex, kSecondShard});
}

TEST_F(BadCheckpointTest, NamesAShardThatIsCutOff) {
  const fs::path path = folder_ / kSecondShard;
  const std::uintmax_t size = fs::file_size(path);
  for (const std::uintmax_t kept : {size - 1, size / 2}) {
    fs::resize_file(path, kept);
    expect_failure(run(), {"bad_checkpoint", kSecondShard, "tensor ", "is it complete?"});
  }
  for (const std::uintmax_t kept : {100, 8, 7, 0}) {
    fs::resize_file(path, kept);
    expect_failure(run(), {"bad_checkpoint", kSecondShard});
  }
}

TEST_F(BadCheckpointTest, NamesBytesBehindTheLastTensor) {
  fs::resize_file(folder_ / kSecondShard, fs::file_size(folder_ / kSecondShard) + 3);
  expect_failure(run(), {"bad_checkpoint", kSecondShard});
}

TEST_F(BadCheckpointTest, KnowsGitLfsPointers) {
  for (const char* name : {kSecondShard, "tokenizer.json", "config.json", kIndex}) {
    SCOPED_TRACE(name);
    const std::string content = read_whole_file(folder_ / name).value();
    folder_.write(name, kPointer);
    expect_failure(run(), {"bad_checkpoint", name, "Git LFS pointer"});
    folder_.write(name, content);
  }
}

TEST_F(BadCheckpointTest, NamesFilesThatAreNotThere) {
  for (const char* name : {"tokenizer.json", "config.json"}) {
    SCOPED_TRACE(name);
    const std::string content = read_whole_file(folder_ / name).value();
    fs::remove(folder_ / name);
    expect_failure(run(), {"not_found", name});
    folder_.write(name, content);
  }
  fs::remove(folder_ / kIndex);
  expect_failure(run(), {"not_found", kIndex, "model.safetensors"});
}

TEST_F(BadCheckpointTest, NamesAFolderThatIsNone) {
  expect_failure(run_program({"run", "/nowhere", "-p", "Hi"}), {"not_found", "/nowhere"});
  const std::string file = (folder_ / "config.json").string();
  expect_failure(run_program({"run", file, "-p", "Hi"}), {file});
}

TEST_F(BadCheckpointTest, NamesAFileThatIsNotJson) {
  for (const char* name : {"tokenizer.json", "config.json", kIndex}) {
    SCOPED_TRACE(name);
    const std::string content = read_whole_file(folder_ / name).value();
    for (const std::string& broken : {content.substr(0, content.size() / 2), std::string(),
                                      std::string(200'000, '['), std::string("null")}) {
      folder_.write(name, broken);
      expect_failure(run(), {"bad_checkpoint", name});
    }
    folder_.write(name, content);
  }
}

TEST_F(BadCheckpointTest, NamesATensorThatNobodyAskedFor) {
  change_shard(kSecondShard, [](std::vector<FileTensor>& tensors) {
    tensors.push_back({"layers.3.attn.surprise.weight", "BF16", {2}, std::string(4, '\0')});
  });
  expect_failure(run(), {"bad_checkpoint", "layers.3.attn.surprise.weight"});
  // The same with an index that knows it.
  nlohmann::ordered_json index = read_json(kIndex);
  index["weight_map"]["layers.3.attn.surprise.weight"] = kSecondShard;
  write_json(kIndex, index);
  expect_failure(run(), {"bad_checkpoint", "layers.3.attn.surprise.weight"});
}

TEST_F(BadCheckpointTest, NamesATensorThatIsMissing) {
  std::string name;
  change_shard(kSecondShard, [&name](std::vector<FileTensor>& tensors) {
    name = tensors.front().name;
    tensors.erase(tensors.begin());
  });
  expect_failure(run(), {"bad_checkpoint", name, kSecondShard});
  // The same with an index that does not know it.
  nlohmann::ordered_json index = read_json(kIndex);
  index["weight_map"].erase(name);
  write_json(kIndex, index);
  expect_failure(run(), {"bad_checkpoint", name});
}

TEST_F(BadCheckpointTest, NamesShapeFoundAndShapeNeeded) {
  change_shard("model-00001-of-00003.safetensors", [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) {
      if (tensor.name == "embed.weight") std::swap(tensor.shape[0], tensor.shape[1]);
    }
  });
  expect_failure(run(), {"bad_checkpoint", "model-00001-of-00003.safetensors", "embed.weight",
                         "[128, 480]", "[480, 128]"});
}

TEST_F(BadCheckpointTest, NamesTypeFoundAndTypeNeeded) {
  change_shard("model-00001-of-00003.safetensors", [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) {
      if (tensor.name == "embed.weight") tensor.dtype = "F16";
    }
  });
  expect_failure(run(), {"bad_checkpoint", "embed.weight", "F16", "BF16"});
}

TEST_F(BadCheckpointTest, NamesKeysOfTheConfigWithUnknownValues) {
  struct Row {
    std::string key;
    nlohmann::ordered_json value;
    std::vector<std::string> parts;
  };
  const std::vector<Row> rows = {
      {"model_type", "deepseek_v9", {"deepseek_v9", "deepseek_v41"}},
      {"scoring_func", "sigmoid", {"scoring_func", "sigmoid", "sqrtsoftplus"}},
      {"hidden_act", "relu", {"hidden_act", "relu", "silu"}},
      {"topk_method", "greedy", {"topk_method", "greedy", "noaux_tc"}},
      {"hidden_size", "128", {"hidden_size", "\"128\""}},
      {"hidden_size", -128, {"hidden_size", "-128"}},
      {"hidden_size", 1e30, {"hidden_size"}},
      {"hidden_size", nullptr, {"hidden_size"}},
      {"num_hidden_layers", 0, {"num_hidden_layers", "0"}},
      {"sliding_window", 0, {"sliding_window", "0"}},
      {"compress_ratios", nlohmann::ordered_json::array(), {"compress_ratios"}},
      {"kv_source_layer_ids", {2, 4, 99}, {"kv_source_layer_ids"}},
      {"vocab_size", 481, {"vocab_size", "481", "480"}}};
  const std::string content = read_whole_file(folder_ / "config.json").value();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.key + " " + row.value.dump());
    change_config(row.key, row.value);
    std::vector<std::string> parts = row.parts;
    parts.emplace_back("config.json");
    expect_failure(run(), parts);
    folder_.write("config.json", content);
  }
}

TEST_F(BadCheckpointTest, NamesEveryKeyOfTheConfigThatIsMissing) {
  const nlohmann::ordered_json whole = read_json("config.json");
  std::size_t needed = 0;
  for (const auto& [key, value] : whole.at("text_config").items()) {
    nlohmann::ordered_json config = whole;
    config["text_config"].erase(key);
    write_json("config.json", config);
    const test_support::ProgramResult result = run();
    if (result.exit_code == 0) continue;
    ++needed;
    expect_failure(result, {"bad_checkpoint", "config.json", key});
  }
  EXPECT_GT(needed, 40U);
}

TEST_F(BadCheckpointTest, IgnoresFilesThatTheIndexDoesNotName) {
  const std::string answer = run().output;
  fs::copy_file(fs::path(tiny_folder("odd")) / "model-00001-of-00003.safetensors",
                folder_ / "stray.safetensors");
  EXPECT_EQ(run().output, answer);
}

TEST_F(BadCheckpointTest, ReadsAFolderThatCannotBeWritten) {
  const std::string answer = run().output;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    fs::permissions(entry.path(), fs::perms::owner_read);
  }
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  std::vector<std::string> before;
  for (const auto& entry : fs::directory_iterator(folder_.path())) before.push_back(entry.path());
  const test_support::ProgramResult result =
      run_program({.arguments = {"run", folder_.path().string(), "-p", "Hi", "--max-tokens", "1"},
                   .environment = {{"HOME", "/nowhere"}}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, answer);
  std::vector<std::string> after;
  for (const auto& entry : fs::directory_iterator(folder_.path())) after.push_back(entry.path());
  EXPECT_EQ(after, before);
  fs::permissions(folder_.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace locket::cli
