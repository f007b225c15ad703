// The step of all experts against their mixture one token and one expert at a time: the same bits
// for any number of tokens and threads, every kernel table and every way in which experts arrive.
#include "model/expert_step.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <vector>

#include "numerics/bf16.h"
#include "tests/model/expert_inputs.h"

namespace locket::model {
namespace {

using kernels::KernelTable;
using kernels::RandomValues;
using kernels::WeightFormat;

constexpr std::size_t kHidden = 96;
constexpr std::size_t kSize = 160;
constexpr std::size_t kExperts = 7;

struct Model {
  MoeWeights weights;
  std::unique_ptr<ExpertSource> experts;
};

struct Formats {
  WeightFormat routed = WeightFormat::kFp4;
  WeightFormat shared = WeightFormat::kFp8;
};

Model make_model(const Formats& formats, std::size_t hidden, std::size_t size) {
  RandomValues random(static_cast<std::uint32_t>(hidden + size));
  Model model;
  model.weights.router = {.gate = random_weights(1, kExperts, hidden),
                          .bias = std::vector<float>(kExperts, 0.0f)};
  model.weights.shared = random_expert(formats.shared, hidden, size, random);
  std::vector<ExpertWeights> experts;
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    experts.push_back(random_expert(formats.routed, hidden, size, random));
  }
  model.experts = one_layer(std::move(experts));
  return model;
}

MoeConfig config_with(std::size_t experts_per_token) {
  return {.router = {.experts_per_token = experts_per_token, .scaling_factor = 1.5f},
          .swiglu_limit = 10.0f};
}

tensor::FloatMatrix bf16_matrix(std::uint32_t seed, std::size_t rows, std::size_t columns) {
  tensor::FloatMatrix matrix = random_matrix(seed, rows, columns);
  for (float& value : matrix.values()) value = numerics::round_to_bf16(value);
  return matrix;
}

void expect_one_by_one(Model& model, const MoeConfig& config, NumericsMode mode,
                       const tensor::FloatMatrix& u) {
  TestContext alone(mode);
  const tensor::FloatMatrix expected =
      one_by_one(alone.context, config, model.weights, *model.experts, u);
  for (const std::size_t threads : {1, 2, 3}) {
    TestContext test(mode, threads);
    const auto sums = moe_forward(test.context, config, model.weights, *model.experts, u, 0);
    ASSERT_TRUE(sums);
    EXPECT_TRUE(kernels::same_bits(sums->values(), expected.values()))
        << u.rows() << " tokens, " << threads << " threads";
  }
}

class ExpertStepTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override { kernels::set_active_kernels(GetParam()); }
  void TearDown() override { kernels::set_active_kernels(nullptr); }
};

TEST_P(ExpertStepTest, AnyNumberOfTokensGivesTheBitsOfOneByOne) {
  Model model = make_model({}, kHidden, kSize);
  const std::size_t most = GetParam() == &kernels::reference_kernels() ? 8 : 130;
  for (const std::size_t tokens : {1, 2, 3, 5, 6, 7, 8, 12, 17, 40, 130}) {
    if (tokens > most) break;
    const tensor::FloatMatrix u = bf16_matrix(9, tokens, kHidden);
    expect_one_by_one(model, config_with(3), NumericsMode::kReference, u);
    expect_one_by_one(model, config_with(3), NumericsMode::kWide, u);
  }
}

TEST_P(ExpertStepTest, ExpertsOfAnyFormatAndWidthGiveTheBitsOfOneByOne) {
  for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kF32, WeightFormat::kFp8}) {
    for (const std::size_t size : {32, 64, 352}) {
      Model model = make_model({.routed = format, .shared = format}, 64, size);
      expect_one_by_one(model, config_with(2), NumericsMode::kReference, bf16_matrix(3, 9, 64));
    }
    for (const std::size_t size : {1, 15, 17, 33, 100}) {
      Model model = make_model({.routed = format, .shared = format}, 41, size);
      expect_one_by_one(model, config_with(2), NumericsMode::kWide, bf16_matrix(4, 9, 41));
    }
  }
}

TEST_P(ExpertStepTest, ExpertsMayHaveAllTokensOrNone) {
  Model model = make_model({}, kHidden, kSize);
  const tensor::FloatMatrix u = bf16_matrix(5, 20, kHidden);
  for (const std::size_t favourite : {std::size_t{0}, kExperts - 1}) {
    model.weights.router.bias.assign(kExperts, 0.0f);
    model.weights.router.bias[favourite] = 1000.0f;
    expect_one_by_one(model, config_with(1), NumericsMode::kReference, u);
    expect_one_by_one(model, config_with(2), NumericsMode::kReference, u);
  }
  expect_one_by_one(model, config_with(kExperts), NumericsMode::kReference, u);
}

INSTANTIATE_TEST_SUITE_P(Tables, ExpertStepTest, ::testing::ValuesIn(kernels::available_kernels()),
                         kernels::table_name);

TEST(ExpertStepTest, CountsTheProductsWhateverTheThreads) {
  Model model = make_model({}, kHidden, kSize);
  for (const std::size_t threads : {1, 2}) {
    TestContext test(NumericsMode::kReference, threads);
    ASSERT_TRUE(moe_forward(test.context, config_with(3), model.weights, *model.experts,
                            bf16_matrix(9, 5, kHidden), 0));
    EXPECT_EQ(test.context.work.matmul, 5 * (4 * 3 * kHidden * kSize + kExperts * kHidden));
  }
}

// Experts of another source that come late: what is_ready() says, the order in which they are
// waited for, and how many are held at a time.
class LateExperts : public ExpertSource {
 public:
  explicit LateExperts(ExpertSource& source) : source_(source) {}

  std::size_t expert_count() const override { return source_.expert_count(); }
  std::size_t experts_at_once() const override { return at_once; }

  std::unique_ptr<Lease> fetch(std::int64_t layer, std::span<const std::int32_t> ids) override {
    EXPECT_LE(ids.size(), at_once);
    EXPECT_TRUE(std::ranges::is_sorted(ids));
    EXPECT_EQ(std::set<std::int32_t>(ids.begin(), ids.end()).size(), ids.size());
    most_leases = std::max(most_leases, ++leases);
    return std::make_unique<LateLease>(*this, layer, ids);
  }

  std::size_t at_once = kExperts;
  std::set<std::int32_t> ready;
  std::vector<std::int32_t> comes;  // in this order, before all others
  std::int32_t broken = -1;
  std::vector<std::int32_t> waited;
  int leases = 0;
  int most_leases = 0;

 private:
  class LateLease : public Lease {
   public:
    LateLease(LateExperts& owner, std::int64_t layer, std::span<const std::int32_t> ids)
        : owner_(owner), ids_(ids.begin(), ids.end()), lease_(owner.source_.fetch(layer, ids)) {}
    LateLease(const LateLease&) = delete;
    LateLease& operator=(const LateLease&) = delete;
    ~LateLease() override { --owner_.leases; }

    bool is_ready(std::size_t index) const override { return owner_.ready.contains(ids_[index]); }
    Result<const ExpertWeights*> wait(std::size_t index) override {
      owner_.waited.push_back(ids_[index]);
      if (ids_[index] == owner_.broken) return fail(ErrorCode::kIo, "expert 4 cannot be read");
      return lease_->wait(index);
    }
    std::size_t wait_any(std::span<const std::size_t> indices) override {
      for (const std::int32_t id : owner_.comes) {
        for (const std::size_t index : indices) {
          if (ids_[index] == id) return index;
        }
      }
      return indices.front();
    }

   private:
    LateExperts& owner_;
    std::vector<std::int32_t> ids_;
    std::unique_ptr<Lease> lease_;
  };

  ExpertSource& source_;
};

class LateExpertsTest : public ::testing::Test {
 protected:
  Result<tensor::FloatMatrix> forward(ExpertSource& source) {
    return moe_forward(test_.context, config_with(kExperts - 1), model_.weights, source, u_, 0);
  }

  void expect_same_bits() {
    const auto sums = forward(late_);
    ASSERT_TRUE(sums);
    EXPECT_TRUE(kernels::same_bits(sums->values(), forward(*model_.experts)->values()));
    EXPECT_EQ(late_.leases, 0);
  }

  Model model_ = make_model({}, kHidden, kSize);
  LateExperts late_{*model_.experts};
  TestContext test_{NumericsMode::kReference, 2};
  tensor::FloatMatrix u_ = bf16_matrix(8, 12, kHidden);
};

// With few rows the down products are done while others are missing.
TEST_F(LateExpertsTest, FewTokensGiveTheSameBitsHoweverTheirExpertsCome) {
  for (const NumericsMode mode :
       {NumericsMode::kReference, NumericsMode::kWide, NumericsMode::kFast}) {
    for (const std::size_t tokens : {1, 2, 9, 10}) {
      u_ = bf16_matrix(8, tokens, kHidden);
      TestContext test(mode, 2);
      const auto run = [&](ExpertSource& source) {
        test.context.work = {};
        return *moe_forward(test.context, config_with(kExperts - 1), model_.weights, source, u_, 0);
      };
      const tensor::FloatMatrix expected = run(*model_.experts);
      const std::uint64_t products = test.context.work.matmul;
      for (const std::set<std::int32_t>& ready :
           {std::set<std::int32_t>{}, {0, 3}, {1, 2, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}}) {
        late_.ready = ready;
        EXPECT_TRUE(kernels::same_bits(run(late_).values(), expected.values()))
            << tokens << " tokens, " << ready.size() << " experts are there";
        EXPECT_EQ(test.context.work.matmul, products);
      }
    }
  }
}

TEST_F(LateExpertsTest, WhatComesFirstIsComputedFirst) {
  u_ = bf16_matrix(8, 1, kHidden);
  late_.comes = {5, 3};
  ASSERT_TRUE(forward(late_));
  ASSERT_GE(late_.waited.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(late_.waited.begin() + 2, late_.waited.end()));
  EXPECT_GT(late_.waited[0], late_.waited[1]);
}

TEST_F(LateExpertsTest, WhatIsThereIsComputedFirstAndTheBitsAreTheSame) {
  late_.ready = {2, 5};
  expect_same_bits();
  EXPECT_EQ(late_.waited, (std::vector<std::int32_t>{2, 5, 0, 1, 3, 4, 6}));
}

TEST_F(LateExpertsTest, ExpertsThatDoNotFitAtOnceComeGroupByGroup) {
  for (const std::size_t at_once : {1, 2, 3, 6}) {
    late_.at_once = at_once;
    late_.most_leases = 0;
    expect_same_bits();
    EXPECT_EQ(late_.most_leases, 2) << "the next group is fetched while one is computed";
  }
}

TEST_F(LateExpertsTest, AnExpertThatCannotBeReadFailsTheStep) {
  late_.broken = 4;
  for (const std::size_t at_once : {std::size_t{2}, kExperts}) {
    late_.at_once = at_once;
    const auto sums = forward(late_);
    ASSERT_FALSE(sums);
    EXPECT_EQ(sums.error().code, ErrorCode::kIo);
    EXPECT_EQ(sums.error().message, "expert 4 cannot be read");
    EXPECT_EQ(late_.leases, 0);
  }
}

}  // namespace
}  // namespace locket::model
