#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MatMul, BroadcastsBatches) {
  OpTester t("MatMul", 13);
  t.input<float>({2, 1, 2}, {1, 2, 3, 4});
  t.input<float>({2, 1}, {10, 1});
  t.expect<float>(0, {2, 1, 1}, {12, 34});
  t.run();
}

TEST(MatMul, VectorsDropTheirDim) {
  OpTester t("MatMul", 13);
  t.input<int32_t>({2}, {1, 2});
  t.input<int32_t>({2, 2}, {1, 2, 3, 4});
  t.expect<int32_t>(0, {2}, {7, 10});
  t.run();
}

TEST(MatMul, ScalarsAreAnError) {
  OpTester t("MatMul", 13);
  t.input<float>({}, {1});
  t.input<float>({1}, {1});
  t.outputs(1).fails("scalar");
}

TEST(MatMul, ShapesThatDoNotMatchAreNamed) {
  OpTester t("MatMul", 13);
  t.input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  t.input<float>({2, 1}, {1, 2});
  t.outputs(1).fails("shapes [2,3] and [2,1] do not match: k is 3 and 2");
}

// The attribute is set by passes for one constant matrix, but a model may hold anything.
TEST(MatMul, TakesBatchesOfHalvesForFloats) {
  OpTester t("MatMul", 13);
  t.attr("half_weights", 1);
  t.input<float>({2, 1, 2}, {1, 2, 3, 4});
  t.input_as(DType::kFloat16, {2, 2, 3}, {1, 0, 0, 0, 1, 0, 1, 1, 1, 2, 0, 2});
  t.expect<float>(0, {2, 1, 3}, {1, 2, 0, 11, 3, 11});
  t.run();
}

TEST(FusedMatMul, TransposesBothAndScales) {
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    OpTester t("FusedMatMul", 1, "com.microsoft");
    t.attr("transA", 1).attr("transB", 1).attr("alpha", 0.5F);
    t.input_as(dtype, {2, 2, 1}, {2, 4, 6, 8});
    t.input_as(dtype, {1, 2}, {1, 10});
    t.expect_as(0, dtype, {2, 1, 1}, {21, 43});
    t.run();
  }
}

TEST(FusedMatMul, TransBatchPutsDimZeroBeforeTheLast) {
  // A [m=2, batch=2, k=1] is read as [batch, m, k].
  OpTester t("FusedMatMul", 1, "com.microsoft");
  t.attr("transBatchA", 1);
  t.input<float>({2, 2, 1}, {1, 2, 3, 4});
  t.input<float>({2, 1, 1}, {10, 100});
  t.expect<float>(0, {2, 2, 1}, {10, 30, 200, 400});
  t.run();
}

TEST(FusedMatMul, RefusesIntegers) {
  OpTester t("FusedMatMul", 1, "com.microsoft");
  t.input<int32_t>({1, 1}, {1});
  t.input<int32_t>({1, 1}, {1});
  t.outputs(1).fails("int32");
}

// Small integers: every order of a sum gives it exactly.
void expect_definition(int64_t m, int64_t n, int64_t k, int64_t trans) {
  SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << ", transB " << trans);
  OpTester t("FusedMatMul", 1, "com.microsoft");
  t.attr("transB", trans).attr("alpha", 0.5F);
  std::vector<float> a;
  std::vector<float> b(static_cast<size_t>(k * n));
  std::vector<float> y;
  const auto b_at = [](int64_t p, int64_t j) {
    return static_cast<float>((5 * p + 3 * j) % 13 - 6);
  };
  for (int64_t i = 0; i < m * k; ++i) a.push_back(static_cast<float>(i % 7 - 3));
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j) {
      b[static_cast<size_t>(trans ? j * k + p : p * n + j)] = b_at(p, j);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[static_cast<size_t>(i * k + p)] * b_at(p, j);
      y.push_back(0.5F * sum);
    }
  }
  t.input<float>({m, k}, a);
  t.input<float>({trans ? n : k, trans ? k : n}, b);
  t.expect<float>(0, {m, n}, y);
  t.run();
}

// Few rows read B where it lies, in pieces when it is transposed.
TEST(FusedMatMul, FewRowsTimesAnyBIsTheDefinition) {
  for (const int64_t m : {1, 2, 3, 4, 5}) {
    for (const int64_t trans : {0, 1}) expect_definition(m, 70, 300, trans);
  }
}

// Few columns are sums over neighbours, and of depth 1 rows of B are multiplied.
TEST(FusedMatMul, FewColumnsAndLittleDepthAreTheDefinition) {
  for (const int64_t m : {1, 5, 17, 40}) {
    for (const int64_t n : {1, 2, 4, 5, 70}) {
      for (const int64_t k : {1, 3, 8, 300}) {
        for (const int64_t trans : {0, 1}) expect_definition(m, n, k, trans);
      }
    }
  }
}

// Points: few numbers in many rows, times few columns; B constant (and packed) or not, and turned.
TEST(MatMul, TurnsPoints) {
  for (const int64_t m : {63, 64, 65, 511, 513, 5000}) {
    for (int64_t k = 1; k <= 5; ++k) {
      for (int64_t n = 1; n <= 5; ++n) {
        std::vector<float> a(static_cast<size_t>(m * k));
        std::vector<float> b(static_cast<size_t>(k * n));
        for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 37 % 101) / 8 - 6;
        for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 13 % 17) / 4 - 2;
        std::vector<float> want;  // exact: numbers of few bits
        std::vector<float> turned;
        for (int64_t i = 0; i < m * n; ++i) {
          float sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            sum += a[static_cast<size_t>(i / n * k + p)] * b[static_cast<size_t>(p * n + i % n)];
          }
          want.push_back(sum);
        }
        for (int64_t j = 0; j < n * k; ++j) {
          turned.push_back(b[static_cast<size_t>(j % k * n + j / k)]);
        }
        for (const bool is_constant : {false, true}) {
          OpTester t("MatMul", 13);
          t.threads(2).input<float>({m, k}, a);
          is_constant ? t.constant<float>({k, n}, b) : t.input<float>({k, n}, b);
          t.expect<float>(0, {m, n}, want).run();
          OpTester gemm("Gemm", 13);
          gemm.attr("transB", int64_t{1}).threads(2).input<float>({m, k}, a);
          is_constant ? gemm.constant<float>({n, k}, turned) : gemm.input<float>({n, k}, turned);
          gemm.input<float>({1}, {0.5F});
          std::vector<float> more;
          for (const float each : want) more.push_back(each + 0.5F);
          gemm.expect<float>(0, {m, n}, more).run();
        }
      }
    }
  }
}

}  // namespace
}  // namespace folio
