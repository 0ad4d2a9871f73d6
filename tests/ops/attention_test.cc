#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

using Floats = std::vector<float>;

TEST(Attention, WeighsValuesBySoftmaxOfScaledProducts) {
  // scores ln 3 and 0: weights 3/4 and 1/4
  OpTester t("Attention", 23);
  t.attr("scale", 1.0f);
  t.input<float>({1, 1, 1, 1}, {1.0986123f});
  t.input<float>({1, 1, 2, 1}, {1, 0});
  t.input<float>({1, 1, 2, 1}, {1, 5});
  t.expect<float>(0, {1, 1, 1, 1}, {2}, 1e-6);
  t.run();
}

TEST(Attention, CausalQueriesSeeThePastAndThemselves) {
  OpTester t("Attention", 23);
  t.attr("is_causal", 1).attr("q_num_heads", 2).attr("kv_num_heads", 1);
  t.input<float>({1, 2, 2}, {0, 0, 0, 0});  // two heads share one key head
  t.input<float>({1, 2, 1}, {0, 0});
  t.input<float>({1, 2, 1}, {4, 9});
  t.input_absent();
  t.input<float>({1, 1, 1, 1}, {7});
  t.input<float>({1, 1, 1, 1}, {2});
  t.expect<float>(0, {1, 2, 2}, {3, 3, 5, 5}, 1e-6);
  t.expect<float>(1, {1, 1, 3, 1}, {7, 0, 0});
  t.expect<float>(2, {1, 1, 3, 1}, {2, 4, 9});
  t.run();
}

TEST(Attention, ManyQueriesGiveTheSameAsFew) {
  // Seven causal queries go through packed panels, fewer through dot products.
  OpTester t("Attention", 23);
  t.attr("is_causal", 1);
  t.input<float>({1, 1, 7, 2}, Floats(14, 0));
  t.input<float>({1, 1, 7, 2}, Floats(14, 1));
  t.input<float>({1, 1, 7, 1}, {1, 2, 3, 4, 5, 6, 7});
  t.expect<float>(0, {1, 1, 7, 1}, {1, 1.5f, 2, 2.5f, 3, 3.5f, 4}, 1e-6);
  t.run();
}

// [heads, seq, size], from -1 to 1.
Floats numbers(int64_t count, int step) {
  Floats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i) * step % 2003 - 1001) / 1001;
  }
  return values;
}

// y of heads [seq, size] in double.
Floats attended(int64_t heads, int64_t seq, int64_t size, const Floats& q, const Floats& k,
                const Floats& v) {
  Floats y;
  std::vector<double> weights(static_cast<size_t>(seq));
  const auto row = [&](const Floats& x, int64_t h, int64_t i) { return &x[(h * seq + i) * size]; };
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < seq; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < seq; ++j) {
        const float* const a = row(q, h, i);
        const double score = std::inner_product(a, a + size, row(k, h, j), 0.0);
        sum += weights[j] = std::exp(score / std::sqrt(static_cast<double>(size)));
      }
      for (int64_t c = 0; c < size; ++c) {
        double value = 0;
        for (int64_t j = 0; j < seq; ++j) value += weights[j] * row(v, h, j)[c];
        y.push_back(static_cast<float>(value / sum));
      }
    }
  }
  return y;
}

// Eight heads of 300 queries: a block of 256 and one of 44 where products are made in parts, else
// blocks of 64.
TEST(Attention, LongSequencesAreThoseOfDoubles) {
  constexpr int64_t kHeads = 8, kSeq = 300, kSize = 64;
  const Shape shape{1, kHeads, kSeq, kSize};
  const Floats q = numbers(kHeads * kSeq * kSize, 37);
  const Floats k = numbers(kHeads * kSeq * kSize, 41);
  const Floats v = numbers(kHeads * kSeq * kSize, 43);
  OpTester t("Attention", 23);
  for (const Floats* x : {&q, &k, &v}) t.input<float>(shape, *x);
  t.expect<float>(0, shape, attended(kHeads, kSeq, kSize, q, k, v), 2e-6);
  t.run();
}

TEST(Attention, AQueryThatSeesNothingGivesZeros) {
  OpTester t("Attention", 24);
  t.attr("qk_matmul_output_mode", 3);
  t.input<float>({1, 1, 2, 1}, {1, 1});
  t.input<float>({1, 1, 2, 1}, {1, 1});
  t.input<float>({1, 1, 2, 1}, {3, 5});
  t.input<bool>({2, 2}, {false, false, true, true});
  t.outputs(4);
  t.expect<float>(0, {1, 1, 2, 1}, {0, 4}, 1e-6);
  t.expect<float>(3, {1, 1, 2, 2}, {0, 0, 0.5f, 0.5f}, 1e-6);
  t.run();
}

// The mask alone decides: scores of the keys it hides may be infinite, or none.
template <typename T>
void check_hidden_row(T hidden) {
  const T inf = std::numeric_limits<T>::infinity();
  const int64_t n = 1;
  OpTester t("Attention", 24);
  t.attr("qk_matmul_output_mode", 3);
  t.input<T>({n, n, 2, n}, {1, 1});
  t.input<T>({n, n, 2, n}, {hidden, 1});
  t.input<T>({n, n, 2, n}, {3, 5});
  t.input<T>({2, 2}, {-inf, -inf, -inf, -inf});
  t.outputs(4);
  t.expect<T>(0, {n, n, 2, n}, {0, 0});
  t.expect<T>(3, {n, n, 2, 2}, {0, 0, 0, 0});
  t.run();
}

TEST(Attention, ARowThatNumbersMaskGivesZerosWhateverItsScores) {
  check_hidden_row<float>(std::numeric_limits<float>::infinity());
  check_hidden_row<float>(std::nanf(""));
  check_hidden_row<double>(std::numeric_limits<double>::infinity());
  check_hidden_row<double>(std::nan(""));
}

// Queries that see the same number of keys become weights together: 20 and more at a time. One that
// sees no key is none of them, wherever it stands.
TEST(Attention, HiddenRowsBesideOthersChangeNoneOfThem) {
  constexpr int64_t kQueries = 50, kKeys = 200;
  const float inf = std::numeric_limits<float>::infinity();
  Floats mask(kQueries * kKeys, 0), expected(kQueries);
  for (const int64_t hidden : {0, 7, 8, 19, 20, 33, 49}) {
    std::fill_n(&mask[hidden * kKeys], kKeys, -inf);
  }
  for (int64_t i = 0; i < kQueries; ++i) {
    if (i % 3 == 0) mask[i * kKeys] = -inf;  // a row that only begins so is not hidden
    const bool is_hidden = mask[i * kKeys + 1] == -inf;
    const float first = i % 3 == 0 ? 1.0F : 0.0F;  // values are 0 to 199, all of one weight
    expected[i] = is_hidden ? 0 : (kKeys - 1 + first) / 2;
  }
  Floats values(kKeys);
  std::iota(values.begin(), values.end(), 0.0F);
  OpTester t("Attention", 23);
  t.input<float>({1, 1, kQueries, 1}, Floats(kQueries, 1));
  t.input<float>({1, 1, kKeys, 1}, Floats(kKeys, 1));
  t.input<float>({1, 1, kKeys, 1}, values);
  t.input<float>({kQueries, kKeys}, mask);
  t.expect<float>(0, {1, 1, kQueries, 1}, expected, 1e-4);
  t.run();
}

// Of the keys that a causal query sees.
TEST(Attention, ACausalRowMaskedAsFarAsItSeesGivesZeros) {
  const float inf = std::numeric_limits<float>::infinity();
  OpTester t("Attention", 23);
  t.attr("is_causal", 1);
  t.input<float>({1, 1, 2, 1}, {1, 0}).input<float>({1, 1, 2, 1}, {inf, 1});
  t.input<float>({1, 1, 2, 1}, {3, 5}).input<float>({2, 2}, {-inf, 0, -inf, -inf});
  t.expect<float>(0, {1, 1, 2, 1}, {0, 0}).run();
}

TEST(Attention, CausalQueriesBeforeTheKeysGiveZeros) {
  // 3 queries stand at positions -1, 0, 1 of a cache with 2 valid keys
  OpTester t("Attention", 24);
  t.attr("is_causal", 1);
  t.input<float>({1, 1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 1, 4, 1}, {0, 0, 0, 0});
  t.input<float>({1, 1, 4, 1}, {2, 4, 100, 100});
  for (int i = 0; i < 3; ++i) t.input_absent();
  t.input<int64_t>({1}, {2});
  t.expect<float>(0, {1, 1, 3, 1}, {0, 2, 3}, 1e-6);
  t.run();
}

TEST(Attention, WindowsBoundBothSides) {
  OpTester t("Attention", 25);
  t.attr("left_window_size", 1).attr("right_window_size", 0);
  t.input<float>({1, 1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 1, 3, 1}, {1, 3, 8});
  t.expect<float>(0, {1, 1, 3, 1}, {1, 2, 5.5f}, 1e-6);
  t.run();
}

TEST(Attention, HostileWindowsAndLengthsStayInBounds) {
  OpTester t("Attention", 25);
  t.attr("left_window_size", INT64_MAX).attr("right_window_size", INT64_MAX);
  t.input<float>({1, 1, 1, 1}, {0});
  t.input<float>({1, 1, 1, 1}, {0});
  t.input<float>({1, 1, 1, 1}, {6});
  for (int i = 0; i < 3; ++i) t.input_absent();
  t.input<int64_t>({1}, {INT64_MAX});
  t.expect<float>(0, {1, 1, 1, 1}, {6}, 1e-6);
  t.run();
}

TEST(Attention, EmptyHeadsAndEnormousEmptyBatchesAreRefused) {
  const int64_t huge = int64_t{1} << 40;
  for (const Shape& shape : {Shape{1, 1, 2, 0}, Shape{huge, 1, 0, 1}}) {
    OpTester t("Attention", 23);
    for (int i = 0; i < 3; ++i) t.input<float>(shape, {});
    t.outputs(3).fails("supported");
  }
}

TEST(Attention, HeadsThatDoNotDivideAreRefused) {
  OpTester t("Attention", 23);
  t.input<float>({1, 3, 1, 1}, {0, 0, 0});
  t.input<float>({1, 2, 1, 1}, {0, 0});
  t.input<float>({1, 2, 1, 1}, {0, 0});
  t.outputs(1).fails("do not agree");
}

TEST(Attention, OfDoublesNeedsAllThree) {
  OpTester t("Attention", 23);
  t.input<double>({1, 1, 1, 1}, {1}).input<double>({1, 1, 1, 1}, {1}).input_absent();
  t.outputs(1).fails("input 2");
}

// V's type is its own: the cache of values has it, all else has Q's.
TEST(Attention, ValuesHaveTheirOwnType) {
  OpTester t("Attention", 24);
  t.input<double>({1, 1, 1, 1}, {0}).input<double>({1, 1, 2, 1}, {1, 2});
  t.input<float>({1, 1, 2, 1}, {3, 5}).outputs(3);
  t.expect<double>(0, {1, 1, 1, 1}, {4}, 1e-12);
  t.expect<double>(1, {1, 1, 2, 1}, {1, 2}).expect<float>(2, {1, 1, 2, 1}, {3, 5});
  t.run();
  OpTester half("Attention", 24);
  half.input<float>({1, 1, 1, 1}, {0}).input<float>({1, 1, 2, 1}, {1, 2});
  half.input_as(DType::kFloat16, {1, 1, 2, 1}, {3, 5}).outputs(3);
  half.expect<float>(0, {1, 1, 1, 1}, {4}, 1e-6);
  half.expect_as(2, DType::kFloat16, {1, 1, 2, 1}, {3, 5});
  half.run();
}

// Version 24: the last dim "can also be shorter than total_sequence_length and will be padded ...
// with negative infinity"; before, 1 broadcasts as any other.
TEST(Attention, AMaskOfOneKeyIsPaddedFromVersion24On) {
  for (const auto& [version, y] : {std::pair<int64_t, float>{23, 4}, {24, 3}}) {
    OpTester t("Attention", version);
    t.input<float>({1, 1, 1, 1}, {0}).input<float>({1, 1, 2, 1}, {1, 2});
    t.input<float>({1, 1, 2, 1}, {3, 5}).input<float>({1, 1}, {0});
    t.expect<float>(0, {1, 1, 1, 1}, {y}, 1e-6);
    t.run();
  }
}

TEST(Attention, MasksOfIntegersAreAdded) {
  OpTester t("Attention", 23);
  t.input<float>({1, 1, 1, 1}, {0}).input<float>({1, 1, 2, 1}, {1, 2});
  t.input<float>({1, 1, 2, 1}, {3, 5}).input<int32_t>({1, 2}, {0, -100});
  t.expect<float>(0, {1, 1, 1, 1}, {3}, 1e-6);
  t.run();
}

}  // namespace
}  // namespace folio
