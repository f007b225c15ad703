// Loading a whole V4 model: small changes to the files of a tiny checkpoint, and experts that stay
// on disk.
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "cache/page_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "model/generations/generation.h"
#include "model/generations/v4.h"
#include "model/generations/v4_bytes.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/lineage_oracle.h"

namespace locket::model {
namespace {

using test_support::FileTensor;
using test_support::TempFolder;
using ::testing::HasSubstr;

using Tensors = std::map<std::string, FileTensor>;

checkpoint::Checkpoint open(const std::filesystem::path& folder) {
  auto opened = checkpoint::Checkpoint::open(folder);
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

const Tensors& flash_tensors() {
  static const Tensors tensors = [] {
    Tensors found;
    const auto checkpoint = open(test_support::lineage_checkpoint("v4flash"));
    for (const checkpoint::StoredTensor& stored : checkpoint.tensors()) {
      const auto bytes = stored.read();
      if (!bytes) throw std::runtime_error(bytes.error().message);
      found[stored.name()] = {stored.name(),
                              std::string(numerics::dtype_name(stored.entry->dtype)),
                              stored.entry->shape,
                              {reinterpret_cast<const char*>(bytes->data()), bytes->size()}};
    }
    return found;
  }();
  return tensors;
}

class V4LoadTest : public ::testing::Test {
 protected:
  // The checkpoint after a change.
  checkpoint::Checkpoint changed(const std::function<void(Tensors&)>& change) {
    Tensors tensors = flash_tensors();
    change(tensors);
    std::vector<FileTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back(tensor);
    test_support::CheckpointText text;
    text.config = *read_whole_file(test_support::lineage_checkpoint("v4flash") / "config.json");
    text.files = {{"model.safetensors", list}};
    test_support::write_checkpoint(folder_, text);
    return open(folder_.path());
  }

  void expect_refused(const std::function<void(Tensors&)>& change,
                      std::initializer_list<std::string> words) {
    checkpoint::Checkpoint checkpoint = changed(change);
    const auto model = V4Model::load(checkpoint, {});
    ASSERT_FALSE(model);
    for (const std::string& word : words) EXPECT_THAT(model.error().message, HasSubstr(word));
  }

  // Logits after a prompt.
  static std::vector<float> logits_of(const LanguageModel& model) {
    cache::PagePool pool(model.layout().page_bytes(), std::uint64_t{64} << 20);
    WorkerPool workers(2);
    engine::Session session(model, pool, workers, {});
    std::vector<std::int32_t> prompt;
    for (std::int32_t i = 0; i < 40; ++i) prompt.push_back((i * 37 + 5) % 320);
    EXPECT_TRUE(session.prefill(prompt));
    return {session.logits().begin(), session.logits().end()};
  }

  TempFolder folder_;
};

TEST_F(V4LoadTest, DraftsAreRecognisedAndLeftUnread) {
  checkpoint::Checkpoint checkpoint = open(test_support::lineage_checkpoint("v4flash"));
  const auto model = V4Model::load(checkpoint, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(model->skipped_tensors(), HasSubstr("mtp.*"));
  const auto generation = find_generation(checkpoint.config().root());
  ASSERT_TRUE(generation);
  checkpoint::Checkpoint checked = open(test_support::lineage_checkpoint("v4flash"));
  const auto line = (*generation)->check(checked);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, model->skipped_tensors());
}

TEST_F(V4LoadTest, MissingAndUnknownTensorsAreNamed) {
  expect_refused([](Tensors& tensors) { tensors.erase("layers.2.attn.compressor.ape"); },
                 {"layers.2.attn.compressor.ape"});
  expect_refused([](Tensors& tensors) { tensors.erase("layers.1.ffn.gate.tid2eid"); },
                 {"layers.1.ffn.gate.tid2eid"});
  expect_refused([](Tensors& tensors) { tensors.erase("hc_head_fn"); }, {"hc_head_fn"});
  expect_refused(
      [](Tensors& tensors) {
        FileTensor more = tensors.at("norm.weight");
        more.name = "layers.0.attn.compressor.norm.weight";
        tensors[more.name] = more;
      },
      {"layers.0.attn.compressor.norm.weight"});
}

TEST_F(V4LoadTest, ScalesOfAnotherTileAreRefused) {
  expect_refused(
      [](Tensors& tensors) {
        FileTensor& scale = tensors.at("layers.0.attn.wq_b.scale");
        scale.shape = {24, 2};
        scale.bytes.assign(48, '\x7f');
      },
      {"layers.0.attn.wq_b.scale", "[6, 1]"});
}

TEST_F(V4LoadTest, ExpertsThatDoNotExistAreRefused) {
  expect_refused(
      [](Tensors& tensors) {
        const std::int64_t expert = 8;
        std::memcpy(tensors.at("layers.0.ffn.gate.tid2eid").bytes.data() + 8 * 7, &expert, 8);
      },
      {"layers.0.ffn.gate.tid2eid", "entry 7 is 8", "0 to 7"});
}

TEST_F(V4LoadTest, ExpertsOnDiskGiveTheSameBits) {
  checkpoint::Checkpoint checkpoint = open(test_support::lineage_checkpoint("v4flash"));
  const auto resident = V4Model::load(checkpoint, {});
  ASSERT_TRUE(resident) << resident.error().message;
  EXPECT_EQ(resident->streamed_experts(), nullptr);
  const WeightBytes bytes = count_v4_bytes(resident->config(), checkpoint);
  EXPECT_TRUE(bytes.can_stream);
  EXPECT_EQ(bytes.experts, 48U);
  checkpoint::Checkpoint again = open(test_support::lineage_checkpoint("v4flash"));
  const auto streamed =
      V4Model::load(again, {.placement = {.budget_bytes = 12 * bytes.expert, .readers = 2}});
  ASSERT_TRUE(streamed) << streamed.error().message;
  ASSERT_NE(streamed->streamed_experts(), nullptr);
  EXPECT_EQ(logits_of(*streamed), logits_of(*resident));
}

TEST_F(V4LoadTest, OtherModesAreRefusedWithThoseThatAreThere) {
  checkpoint::Checkpoint checkpoint = open(test_support::lineage_checkpoint("v4flash"));
  const auto generation = find_generation(checkpoint.config().root());
  ASSERT_TRUE(generation);
  EXPECT_EQ(choose_mode(**generation, {}), NumericsMode::kWide);
  const auto mode = choose_mode(**generation, NumericsMode::kReference);
  ASSERT_FALSE(mode);
  EXPECT_THAT(mode.error().message, HasSubstr("wide, plain"));
}

}  // namespace
}  // namespace locket::model
