#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Softmax, FollowsTheSpecExample) {
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    OpTester t("Softmax", 13);
    t.input_as(dtype, {1, 3}, {-1, 0, 1});
    t.expect_as(0, dtype, {1, 3}, {0.09003058, 0.24472848, 0.66524094}, 1e-6);
    t.run();
  }
}

TEST(Softmax, TakesAnyAxisWithLargeNumbers) {
  OpTester t("Softmax", 13);
  t.attr("axis", 0);
  t.input<float>({2, 2}, {10000, 0, 10000, 10000});
  t.expect<float>(0, {2, 2}, {0.5F, 0, 0.5F, 1});
  t.run();
}

TEST(Softmax, FlattensBeforeOpset13) {
  OpTester t("Softmax", 11);
  t.input<float>({1, 2, 2}, {0, 0, 0, 0});
  t.expect<float>(0, {1, 2, 2}, {0.25F, 0.25F, 0.25F, 0.25F});
  t.run();
}

TEST(LogSoftmax, IsTheLogarithm) {
  OpTester t("LogSoftmax", 13);
  t.input<float>({2}, {0, 0});
  t.expect<float>(0, {2}, {-std::log(2.0F), -std::log(2.0F)}, 1e-6);
  t.run();
}

TEST(Hardmax, TakesTheFirstMaximum) {
  OpTester t("Hardmax", 13);
  t.input<float>({1, 4}, {3, 1, 3, 2});
  t.expect<float>(0, {1, 4}, {1, 0, 0, 0});
  t.run();
}

// Of [outer, n, inner] along the middle, beside the definition; more than a strip of columns.
void check_axis(const char* op, DType dtype, int64_t outer, int64_t n, int64_t inner) {
  std::vector<double> x(static_cast<size_t>(outer * n * inner));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7919 % 101) / 8 - 6;
  std::vector<double> want(x.size());
  for (int64_t column = 0; column < outer * inner; ++column) {
    const auto at = [&](int64_t j) {
      return static_cast<size_t>((column / inner * n + j) * inner + column % inner);
    };
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x[at(j)]);
    for (int64_t j = 0; j < n; ++j) {
      const bool is_log = op == std::string("LogSoftmax");
      want[at(j)] = is_log ? x[at(j)] - std::log(sum) : std::exp(x[at(j)]) / sum;
    }
  }
  OpTester t(op, 13);
  t.attr("axis", 1);
  t.input_as(dtype, {outer, n, inner}, x);
  t.expect_as(0, dtype, {outer, n, inner}, want, 1e-5);
  t.run();
}

TEST(Softmax, EveryAxisFollowsTheDefinition) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      for (const int64_t n : {1, 2, 5, 8, 9, 40}) {
        check_axis(op, dtype, 50, n, 1);
        check_axis(op, dtype, 3, n, 5);
        check_axis(op, dtype, 2, n, 150);
      }
    }
  }
}

TEST(Softmax, AxesOutsideAreAnError) {
  OpTester t("Softmax", 13);
  t.attr("axis", 2);
  t.input<float>({1, 2}, {0, 0});
  t.outputs(1).fails("axis 2 is outside");
}

}  // namespace
}  // namespace folio
