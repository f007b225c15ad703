#include "service/loaded_model.h"

#include <algorithm>

#include "base/file.h"
#include "tests/service/completion_cases.h"
#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kBf16NaN = 0x7fc0;
constexpr std::uint16_t kBf16Infinity = 0x7f80;

void copy_folder(const fs::path& from, const test_support::TempFolder& to) {
  for (const auto& entry : fs::directory_iterator(from)) {
    fs::copy_file(entry.path(), to / entry.path().filename().string());
  }
}

TEST(LoadedModelTest, RefusesATokenizerOfAnotherSize) {
  const test_support::TempFolder folder;
  copy_folder(tiny_folder("odd"), folder);
  fs::copy_file(tiny_folder("micro") / "tokenizer.json", folder / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  const auto loaded = LoadedModel::open(folder.path(), {});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kBadCheckpoint);
  for (const char* part : {"480", "437", "tokenizer.json", "vocab_size"}) {
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
  }
}

TEST(LoadedModelTest, NamesAFolderThatIsNotThere) {
  const auto loaded = LoadedModel::open("/nowhere/at/all", {});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("/nowhere/at/all"), std::string::npos)
      << loaded.error().message;
}

// Weights that spoil logits: the rows of the head, or the norm before it.
class PoisonedModelTest : public testing::Test {
 protected:
  void SetUp() override { copy_folder(tiny_folder("odd"), folder_); }

  // Writes `value` over the bf16 numbers of a tensor from byte `first` on.
  void poison(const std::string& name, std::size_t first, std::size_t count,
              std::uint16_t value) const {
    const auto checkpoint = checkpoint::Checkpoint::open(folder_.path()).value();
    const auto tensor = checkpoint.find(name);
    ASSERT_TRUE(tensor.has_value()) << name;
    ASSERT_EQ(tensor->dtype, numerics::Dtype::kBf16) << name;
    std::string bytes = read_whole_file(tensor->file->path()).value();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = static_cast<std::size_t>(tensor->entry->offset) + first + 2 * i;
      bytes[at] = static_cast<char>(value & 0xff);
      bytes[at + 1] = static_cast<char>(value >> 8);
    }
    ASSERT_TRUE(write_whole_file(tensor->file->path(), std::as_bytes(std::span(bytes))));
  }

  // Makes the logits of these tokens NaN, or infinite with the sign of a value of the last layer.
  void poison_tokens(std::uint16_t value) const {
    for (const engine::TokenId token : kTokens) {
      poison("head.weight", static_cast<std::size_t>(token) * kHidden * 2, 1, value);
    }
  }

  // What the healthy model says if it must not say these tokens.
  static std::vector<engine::TokenId> tokens_without() {
    chat::ChatRequest request = long_request();
    for (const engine::TokenId token : kTokens) {
      request.sampling.logit_bias.push_back({.token = token, .bias = -900.0});
    }
    return completed(odd(), request).token_ids;
  }

  static chat::ChatRequest long_request() {
    chat::ChatRequest request = ask("Hello!");
    request.max_tokens = 40;
    request.ignore_eos = true;
    return request;
  }

  static constexpr std::size_t kHidden = 96;
  static constexpr engine::TokenId kTokens[] = {0, 218, 436};  // the first, one inside, the last
  test_support::TempFolder folder_;
};

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

TEST_F(PoisonedModelTest, BrokenLogitsAreLeftOutAndWarnedOfOnce) {
  poison_tokens(kBf16NaN);
  const LoadedModel model = load(folder_.path());
  testing::internal::CaptureStderr();
  const Completion answer = completed(model, long_request());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.token_ids, tokens_without());
  EXPECT_EQ(count_of("3 logits are NaN or infinite", log), 1U) << log;
}

TEST_F(PoisonedModelTest, InfiniteLogitsNeverWin) {
  poison_tokens(kBf16Infinity);
  const LoadedModel model = load(folder_.path());
  EXPECT_EQ(completed(model, long_request()).token_ids, tokens_without());
  chat::ChatRequest drawn = long_request();
  drawn.sampling.temperature = 2.0;
  for (const engine::TokenId token : completed(model, drawn).token_ids) {
    EXPECT_EQ(std::ranges::count(kTokens, token), 0) << token;
  }
}

TEST_F(PoisonedModelTest, WithoutASingleGoodLogitTheRequestFails) {
  poison("norm.weight", 0, kHidden, kBf16NaN);
  const LoadedModel model = load(folder_.path());
  const auto completion = complete(model, ask("Hello!"), {}, {});
  ASSERT_FALSE(completion.has_value());
  EXPECT_EQ(completion.error().code, ErrorCode::kInternal);
  EXPECT_NE(completion.error().message.find("none of 437 logits"), std::string::npos)
      << completion.error().message;
  EXPECT_EQ(model.engine().pool().used_bytes(), 0U);
}

}  // namespace
}  // namespace locket::service
