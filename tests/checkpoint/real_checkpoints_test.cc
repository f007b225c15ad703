// The checkpoints that other tests run on, opened and read whole.
#include <cstdint>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "checkpoint/checkpoint.h"

namespace locket::checkpoint {
namespace {

using numerics::Dtype;

struct RealCase {
  std::string folder;
  std::size_t file_count;
  std::size_t tensor_count;
  std::uint64_t byte_count;  // the index's total_size
  std::int64_t hidden_size;
};

class RealCheckpointsTest : public ::testing::TestWithParam<RealCase> {};

TEST_P(RealCheckpointsTest, OpensAndReadsEveryTensor) {
  const RealCase& real = GetParam();
  const auto checkpoint = Checkpoint::open(real.folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->files().size(), real.file_count);
  EXPECT_EQ(checkpoint->tensor_count(), real.tensor_count);
  std::uint64_t byte_count = 0;
  std::set<Dtype> dtypes;
  for (const StoredTensor& tensor : checkpoint->tensors()) {
    const std::int64_t count = tensor::element_count(tensor.shape).value();
    EXPECT_GT(count, 0) << tensor.name();
    EXPECT_EQ(tensor.byte_count() * 8,
              static_cast<std::uint64_t>(count) * numerics::bits_of(tensor.dtype));
    const auto bytes = tensor.read();
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_EQ(bytes->size(), tensor.byte_count());
    byte_count += tensor.byte_count();
    dtypes.insert(tensor.dtype);
  }
  EXPECT_EQ(byte_count, real.byte_count);
  EXPECT_EQ(dtypes,
            (std::set{Dtype::kF32, Dtype::kBf16, Dtype::kFp8E4m3, Dtype::kE8m0, Dtype::kI8}));
}

TEST_P(RealCheckpointsTest, HasItsConfigAndTensorsOfKnownShape) {
  auto checkpoint = Checkpoint::open(GetParam().folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ConfigObject root = checkpoint->config().root();
  EXPECT_EQ(root.string("model_type").value(), "deepseek_v41");
  const ConfigObject text = root.object("text_config").value();
  const std::int64_t hidden = text.integer("hidden_size").value();
  EXPECT_EQ(hidden, GetParam().hidden_size);
  const auto require = [&](const char* name, Dtype dtype, const tensor::Shape& shape) {
    const auto tensor = checkpoint->require(name, dtype, shape);
    EXPECT_TRUE(tensor) << tensor.error().message;
  };
  require("embed.weight", Dtype::kBf16, {text.integer("vocab_size").value(), hidden});
  require("layers.0.attn.attn_sink", Dtype::kF32, {text.integer("num_attention_heads").value()});
  const std::int64_t inner = text.integer("moe_intermediate_size").value();
  require("layers.0.ffn.experts.0.w1.weight", Dtype::kFp4E2m1, {inner, hidden});
  require("layers.0.ffn.experts.0.w2.scale", Dtype::kE8m0, {hidden, inner / 32});
  EXPECT_EQ(checkpoint->unclaimed().size(), GetParam().tensor_count - 4);
}

INSTANTIATE_TEST_SUITE_P(
    , RealCheckpointsTest,
    ::testing::Values(RealCase{LOCKET_TEST_DATA "/checkpoints/micro", 3, 936, 4036984, 128},
                      RealCase{LOCKET_TEST_DATA "/checkpoints/odd", 3, 456, 2330836, 96},
                      RealCase{LOCKET_TEST_DATA "/checkpoints/thin", 2, 483, 3684808, 128},
                      RealCase{LOCKET_MODELS "/mini", 2, 821, 5530362, 128}),
    [](const auto& tested) {
      return tested.param.folder.substr(tested.param.folder.find_last_of('/') + 1);
    });

}  // namespace
}  // namespace locket::checkpoint
