// Reductions, softmax, normalisations and conversions of every usable level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
const size_t kRowCounts[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 1000};

int64_t wide(size_t n) { return static_cast<int64_t>(n); }

TEST(Reduction, SumsStayWithinTheBound) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t n : kRowCounts) {
      const std::vector<float> values = random_floats(n, 21, -1.0f, 3.0f);
      const std::vector<float> others = random_floats(n, 22);
      const BeforeUnreadable x(values);
      const BeforeUnreadable y(others);
      double sum = 0, size = 0, squares = 0, dot = 0, dot_size = 0;
      for (size_t i = 0; i < n; ++i) {
        sum += values[i];
        size += std::fabs(values[i]);
        squares += double{values[i]} * values[i];
        dot += double{values[i]} * others[i];
        dot_size += std::fabs(double{values[i]} * others[i]);
      }
      const double bound = static_cast<double>(n) * 0x1p-24;
      const FolioKernels& k = level.kernels;
      EXPECT_NEAR(k.sum_f32(wide(n), x.data()), sum, bound * size) << level.name << ' ' << n;
      EXPECT_NEAR(k.sum_squares_f32(wide(n), x.data()), squares, bound * squares) << level.name;
      EXPECT_NEAR(k.dot_f32(wide(n), x.data(), y.data()), dot, bound * dot_size) << level.name;
    }
  }
}

double joined(FolioReduce how, double acc, double x) {
  switch (how) {
    case kFolioReduceSquares:
      return acc + x * x;
    case kFolioReduceMagnitudes:
      return acc + std::fabs(x);
    case kFolioReduceProd:
      return acc * x;
    case kFolioReduceMax:
      return std::isnan(acc) || acc > x ? acc : x;
    case kFolioReduceMin:
      return std::isnan(acc) || acc < x ? acc : x;
    default:
      return acc + x;
  }
}

constexpr FolioReduce kReductions[] = {kFolioReduceSum,        kFolioReduceSquares,
                                       kFolioReduceMagnitudes, kFolioReduceProd,
                                       kFolioReduceMax,        kFolioReduceMin};

// Rows end where memory does and are some floats apart; results stand between guards. Around 1, so
// that a product of many stays a number; sums of up to n such are off by n 2^-24 n.
void check_reduction(const LevelUnderTest& level, FolioReduce how, size_t rows, size_t n,
                     size_t gap) {
  const size_t stride = n + gap;
  const std::vector<float> values = random_floats(rows * stride, 41, 0.96F, 1.04F);
  const BeforeUnreadable x(
      {values.begin(), values.begin() + static_cast<ptrdiff_t>((rows - 1) * stride + n)});
  const std::vector<float> before = random_floats(std::max(rows, n), 42, 0.5F, 1.5F);
  for (const bool by_row : {true, false}) {
    const size_t count = by_row ? rows : n;
    Guarded acc({before.begin(), before.begin() + static_cast<ptrdiff_t>(count)}, n % 5);
    const auto* table = by_row ? level.kernels.reduce_rows_f32 : level.kernels.reduce_columns_f32;
    table[how](wide(rows), wide(n), x.data(), wide(stride), acc.data());
    ASSERT_TRUE(acc.intact()) << level.name << ' ' << how << ' ' << rows << ' ' << n;
    for (size_t o = 0; o < count; ++o) {
      double want = before[o];
      for (size_t i = 0; i < (by_row ? n : rows); ++i) {
        want = joined(how, want, values[by_row ? o * stride + i : i * stride + o]);
      }
      const double terms = static_cast<double>(by_row ? n : rows) + 1;
      const bool is_exact = how == kFolioReduceMax || how == kFolioReduceMin;
      const double bound = is_exact ? 0 : terms * 0x1p-24 * std::max(std::fabs(want), terms);
      ASSERT_NEAR(acc.data()[o], want, bound)
          << level.name << ' ' << how << " rows " << rows << " of " << n << " at " << o;
    }
  }
}

TEST(Reduction, JoinsRowsAndColumnsToWhatIsThere) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const FolioReduce how : kReductions) {
      for (const size_t rows : {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33}) {
        for (const size_t n :
             {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 49, 63, 64, 100, 127, 128, 200}) {
          check_reduction(level, how, rows, n, 3);
        }
      }
      for (const size_t rows : {1, 4, 5, 6, 16, 31, 32, 67, 130}) {  // without gaps
        for (const size_t n : {2, 4, 9}) check_reduction(level, how, rows, n, 0);
      }
    }
  }
}

template <typename T>
T joined_exactly(FolioReduce how, T acc, T x) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, T,
                                 std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;
  const auto a = static_cast<Sum>(acc);
  const auto b = static_cast<Sum>(x);
  switch (how) {
    case kFolioReduceSquares:
      return static_cast<T>(a + b * b);
    case kFolioReduceMagnitudes:
      return static_cast<T>(a + (x < 0 ? 0 - b : b));
    case kFolioReduceProd:
      return static_cast<T>(a * b);
    case kFolioReduceMax:
      return acc != acc || acc > x ? acc : x;
    case kFolioReduceMin:
      return acc != acc || acc < x ? acc : x;
    default:
      return static_cast<T>(a + b);
  }
}

// Integers of all bits, and doubles that are small whole numbers (products: 1, -1 and some 2): any
// order has the same result.
template <typename T>
std::vector<T> exact_numbers(FolioReduce how, size_t count, uint32_t seed) {
  std::vector<T> values(count);
  uint64_t state = seed;
  for (T& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const uint64_t bits = state ^ state >> 29;
    value = static_cast<T>(bits);
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(static_cast<int64_t>(bits >> 40 & 1023) - 512);
      if (how == kFolioReduceProd) value = (bits >> 40 & 31) == 0 ? 2 : (bits >> 50 & 1) ? -1 : 1;
    }
  }
  return values;
}

template <typename T, typename Slots>
void check_exactly(const LevelUnderTest& level, const Slots& by_rows, const Slots& by_columns,
                   FolioReduce how, size_t rows, size_t n, size_t gap) {
  const size_t stride = n + gap;
  const std::vector<T> x = exact_numbers<T>(how, rows * stride, 45);
  const std::vector<T> before = exact_numbers<T>(how, std::max(rows, n), 46);
  for (const bool by_row : {true, false}) {
    std::vector<T> acc = before;
    std::vector<T> want = before;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < n; ++j) {
        T& to = want[by_row ? i : j];
        to = joined_exactly(how, to, x[i * stride + j]);
      }
    }
    (by_row ? by_rows : by_columns)[how](wide(rows), wide(n), x.data(), wide(stride), acc.data());
    ASSERT_EQ(acc, want) << level.name << ' ' << how << ' ' << rows << " rows of " << n
                         << (by_row ? " by row" : " by column");
  }
}

TEST(Reduction, OfDoublesAndIntegersIsExactForWholeNumbers) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const FolioKernels& k = level.kernels;
    for (const FolioReduce how : kReductions) {
      for (const size_t rows : {1, 2, 3, 4, 5, 8, 11, 12, 13, 17, 33}) {
        for (const size_t n : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 200}) {
          for (const size_t gap : {0, 3}) {
            check_exactly<double>(level, k.reduce_rows_f64, k.reduce_columns_f64, how, rows, n,
                                  gap);
            check_exactly<int32_t>(level, k.reduce_rows_s32, k.reduce_columns_s32, how, rows, n,
                                   gap);
            check_exactly<int64_t>(level, k.reduce_rows_s64, k.reduce_columns_s64, how, rows, n,
                                   gap);
          }
        }
      }
    }
  }
}

TEST(Reduction, OfDoublesKeepsNanAtEveryPlace) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const FolioReduce how : {kFolioReduceMax, kFolioReduceMin}) {
      for (const auto& [count, n] : {std::pair<int64_t, int64_t>{3, 3},
                                     {3, 5},
                                     {3, 8},
                                     {3, 20},
                                     {3, 70},
                                     {3, 150},
                                     {25, 2},
                                     {25, 4}}) {
        for (int64_t at = 0; at < count * n; ++at) {
          std::vector<double> x(static_cast<size_t>(count * n), 0.5);
          x[static_cast<size_t>(at)] = std::numeric_limits<double>::quiet_NaN();
          std::vector<double> rows(static_cast<size_t>(count), 0.0);
          std::vector<double> columns(static_cast<size_t>(n), 0.0);
          level.kernels.reduce_rows_f64[how](count, n, x.data(), n, rows.data());
          level.kernels.reduce_columns_f64[how](count, n, x.data(), n, columns.data());
          for (int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(std::isnan(rows[static_cast<size_t>(i)]), i == at / n) << level.name << n;
          }
          for (int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(std::isnan(columns[static_cast<size_t>(j)]), j == at % n) << level.name << n;
          }
        }
      }
    }
  }
}

// A row's bits do not depend on the rows beside it, nor a column's on how rows are split.
TEST(Reduction, DoesNotDependOnHowItIsSplit) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const FolioReduce how : kReductions) {
      for (const int64_t n : {3, 8, 20, 96, 300}) {
        constexpr int64_t kRows = 37;
        const std::vector<float> x = random_floats(static_cast<size_t>(kRows * n), 43, 0.5F, 1.5F);
        std::vector<float> whole(kRows, 1.0F), split(kRows, 1.0F);
        level.kernels.reduce_rows_f32[how](kRows, n, x.data(), n, whole.data());
        std::vector<float> columns(static_cast<size_t>(n), 1.0F), parts = columns;
        level.kernels.reduce_columns_f32[how](kRows, n, x.data(), n, columns.data());
        for (int64_t i = 0; i < kRows;) {
          const int64_t count = std::min<int64_t>(kRows - i, 1 + i % 6);
          level.kernels.reduce_rows_f32[how](count, n, x.data() + i * n, n, split.data() + i);
          level.kernels.reduce_columns_f32[how](count, n, x.data() + i * n, n, parts.data());
          i += count;
        }
        ASSERT_TRUE(same_bits(whole, split)) << level.name << ' ' << how << ' ' << n;
        ASSERT_TRUE(same_bits(columns, parts)) << level.name << ' ' << how << ' ' << n;
      }
    }
  }
}

TEST(Reduction, RowsAndColumnsKeepNanAtEveryPlace) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const FolioReduce how : {kFolioReduceMax, kFolioReduceMin}) {
      for (const int64_t n : {3, 8, 20, 70, 150}) {
        for (int64_t at = 0; at<3 * n; at += n> 8 ? 7 : 1) {
          std::vector<float> x = random_floats(static_cast<size_t>(3 * n), 44);
          x[static_cast<size_t>(at)] = kNan;
          std::vector<float> rows(3, 0.0F), columns(static_cast<size_t>(n), 0.0F);
          level.kernels.reduce_rows_f32[how](3, n, x.data(), n, rows.data());
          level.kernels.reduce_columns_f32[how](3, n, x.data(), n, columns.data());
          for (int64_t i = 0; i < 3; ++i) {
            ASSERT_EQ(std::isnan(rows[static_cast<size_t>(i)]), i == at / n) << level.name << n;
          }
          for (int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(std::isnan(columns[static_cast<size_t>(j)]), j == at % n) << level.name << n;
          }
        }
      }
      std::vector<float> acc = {kNan, kNan, kNan};
      const std::vector<float> x(60, 1.0F);
      level.kernels.reduce_rows_f32[how](3, 20, x.data(), 20, acc.data());
      level.kernels.reduce_columns_f32[how](20, 3, x.data(), 3, acc.data());
      for (const float each : acc) ASSERT_TRUE(std::isnan(each)) << level.name;
    }
  }
}

TEST(ShiftedSum, AddsEveryTapToEveryElement) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t n : {0, 1, 3, 8, 15, 16, 17, 33, 64, 127, 128, 129, 300}) {
      for (const size_t taps : {0, 1, 9, 25}) {
        const std::vector<float> w = random_floats(taps, 31);
        std::vector<int64_t> offsets;
        for (size_t t = 0; t < taps; ++t) offsets.push_back(static_cast<int64_t>(t * 37 % 50));
        const int64_t reach = taps > 0 ? *std::max_element(offsets.begin(), offsets.end()) : 0;
        const std::vector<float> values = random_floats(n + static_cast<size_t>(reach), 32);
        const BeforeUnreadable x(values);
        std::vector<float> y(n + 1, 7.0F);
        level.kernels.shifted_sum_f32(wide(n), wide(taps), w.data(), offsets.data(), x.data(), 0.5F,
                                      y.data());
        for (size_t i = 0; i < n; ++i) {
          double sum = 0.5, size = 0.5;
          for (size_t t = 0; t < taps; ++t) {
            const double part = double{w[t]} * values[static_cast<size_t>(offsets[t]) + i];
            sum += part;
            size += std::fabs(part);
          }
          ASSERT_NEAR(y[i], sum, static_cast<double>(taps + 1) * 0x1p-24 * size)
              << level.name << ' ' << n << ' ' << taps << ' ' << i;
        }
        ASSERT_EQ(y[n], 7.0F) << level.name << " wrote past the row";
      }
    }
  }
}

TEST(Reduction, OfNothingIsTheNeutralElement) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const FolioKernels& k = level.kernels;
    EXPECT_EQ(k.sum_f32(0, nullptr), 0) << level.name;
    EXPECT_EQ(k.sum_squares_f32(0, nullptr), 0) << level.name;
    EXPECT_EQ(k.dot_f32(0, nullptr, nullptr), 0) << level.name;
    EXPECT_EQ(k.max_f32(0, nullptr), -kInf) << level.name;
    EXPECT_EQ(k.min_f32(0, nullptr), kInf) << level.name;
  }
}

TEST(Reduction, FindsExtremesAtEveryPlace) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t n : {1, 5, 16, 17, 40, 70}) {
      for (size_t at = 0; at < n; ++at) {
        std::vector<float> values = random_floats(n, 23);
        values[at] = 5;
        const BeforeUnreadable high(values);
        ASSERT_EQ(level.kernels.max_f32(wide(n), high.data()), 5) << level.name << ' ' << at;
        values[at] = -5;
        const BeforeUnreadable low(values);
        ASSERT_EQ(level.kernels.min_f32(wide(n), low.data()), -5) << level.name << ' ' << at;
      }
    }
  }
}

TEST(Reduction, ExtremesAreNanWhenAnyIsAndAcceptInf) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (size_t at = 0; at < 70; ++at) {
      std::vector<float> values = random_floats(70, 24);
      values[at] = kNan;
      ASSERT_TRUE(std::isnan(level.kernels.max_f32(70, values.data()))) << level.name << ' ' << at;
      ASSERT_TRUE(std::isnan(level.kernels.min_f32(70, values.data()))) << level.name << ' ' << at;
      values[at] = kInf;
      ASSERT_EQ(level.kernels.max_f32(70, values.data()), kInf) << level.name << ' ' << at;
      values[at] = -kInf;
      ASSERT_EQ(level.kernels.min_f32(70, values.data()), -kInf) << level.name << ' ' << at;
    }
    const std::vector<float> all(20, -kInf);
    EXPECT_EQ(level.kernels.max_f32(20, all.data()), -kInf) << level.name;
  }
}

// exp: 2 ulp; x - max: half an ulp of up to |x - max| <= 20, so 20 * 2^-24 relative in exp; the
// sum: n 2^-24; the division: 1 ulp. Together below (n + 26) 2^-24 relative.
TEST(Softmax, StaysWithinTheBound) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t n : kRowCounts) {
      const std::vector<float> x = random_floats(n, 25, -10.0f, 10.0f);
      double max = -INFINITY, sum = 0;
      for (const float value : x) max = std::max<double>(max, value);
      for (const float value : x) sum += std::exp(value - max);
      Guarded y(x, n % 3);
      level.kernels.softmax_f32(1, wide(n), y.data(), y.data());
      Guarded logs(n, 1);
      level.kernels.log_softmax_f32(1, wide(n), x.data(), logs.data());
      ASSERT_TRUE(y.intact() && logs.intact()) << level.name;
      const double relative = static_cast<double>(n + 26) * 0x1p-24;
      for (size_t i = 0; i < n; ++i) {
        const double want = std::exp(x[i] - max) / sum;
        ASSERT_NEAR(y.data()[i], want, relative * want) << level.name << ' ' << n;
        // A relative error of the sum is an absolute one of its logarithm; |x - max| rounds twice.
        ASSERT_NEAR(logs.data()[i], std::log(want), relative + 60 * 0x1p-24) << level.name;
      }
    }
  }
}

TEST(Softmax, HandlesMaskedAndUndefinedRows) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t n : {3, 20, 70}) {
      std::vector<float> x(n, -kInf);
      x[1] = 2;
      std::vector<float> y(n);
      level.kernels.softmax_f32(1, wide(n), x.data(), y.data());
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], i == 1 ? 1.0f : 0.0f) << level.name;
      for (const float bad : {kNan, kInf}) {
        x[2] = bad;
        level.kernels.softmax_f32(1, wide(n), x.data(), y.data());
        EXPECT_TRUE(std::isnan(y[2])) << level.name;
      }
      const std::vector<float> masked(n, -kInf);
      level.kernels.softmax_f32(1, wide(n), masked.data(), y.data());
      EXPECT_TRUE(std::isnan(y[0])) << level.name;
    }
  }
}

// Rows and columns of all counts: each within the bound, whatever stands beside it, in place, with
// the bits that it has alone; a row that is not a number is that alone.
void check_softmax(const LevelUnderTest& level, bool is_log, int64_t rows, int64_t n) {
  const FolioKernels& k = level.kernels;
  const auto by_rows = is_log ? k.log_softmax_f32 : k.softmax_f32;
  const auto by_columns = is_log ? k.log_softmax_columns_f32 : k.softmax_columns_f32;
  std::vector<float> x = random_floats(static_cast<size_t>(rows * n), 27, -10.0F, 10.0F);
  const int64_t lost = rows / 2;
  x[static_cast<size_t>(lost * n + n / 2)] = kNan;
  if (n > 1) x[0] = -kInf;
  Guarded y(x, 1);
  by_rows(rows, n, y.data(), y.data());
  std::vector<float> turned(x.size());
  for (int64_t i = 0; i < rows * n; ++i) {
    turned[static_cast<size_t>(i % n * rows + i / n)] = x[static_cast<size_t>(i)];
  }
  Guarded z(turned, 2);
  by_columns(n, rows, z.data(), rows, z.data(), rows);
  ASSERT_TRUE(y.intact() && z.intact()) << level.name << ' ' << rows << " of " << n;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + r * n;
    std::vector<float> alone(static_cast<size_t>(n));
    by_rows(1, n, row, alone.data());
    ASSERT_TRUE(r == lost || std::equal(alone.begin(), alone.end(), y.data() + r * n))
        << level.name << " row " << r << " of " << rows << " of " << n;
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) max = std::max<double>(max, row[i]);
    for (int64_t i = 0; i < n; ++i) sum += std::exp(row[i] - max);
    for (int64_t i = 0; i < n; ++i) {
      const float of_row = y.data()[r * n + i];
      const float of_column = z.data()[i * rows + r];
      if (r == lost) {
        ASSERT_TRUE(std::isnan(of_row) && std::isnan(of_column)) << level.name << ' ' << n;
        continue;
      }
      const double share = std::exp(row[i] - max) / sum;
      const double want = is_log ? row[i] - max - std::log(sum) : share;
      const double relative = static_cast<double>(n + 26) * 0x1p-24;
      const double bound = is_log ? relative + 60 * 0x1p-24 : relative * want;
      if (std::isinf(want)) {
        ASSERT_EQ(of_row, want) << level.name;
        ASSERT_EQ(of_column, want) << level.name;
        continue;
      }
      ASSERT_NEAR(of_row, want, bound) << level.name << " row " << r << " of " << rows << ' ' << n;
      ASSERT_NEAR(of_column, want, bound) << level.name << " column " << r << ' ' << n;
    }
  }
}

TEST(Softmax, RowsAndColumnsDoNotDependOnTheirNeighbours) {
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const bool is_log : {false, true}) {
      for (const int64_t rows : {1, 2, 7, 8, 15, 16, 17, 23, 24, 25, 33, 64, 65, 70}) {
        for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 17, 40, 130, 600}) {
          check_softmax(level, is_log, rows, n);
        }
      }
    }
  }
}

struct NormTruth {
  double mean, inv_std, inv_rms;
};
NormTruth norm_truth(const std::vector<float>& x, double eps) {
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0, centered = 0;
  for (const float v : x) sum += v;
  for (const float v : x) squares += double{v} * v;
  for (const float v : x) centered += (v - sum / n) * (v - sum / n);
  return {sum / n, 1 / std::sqrt(centered / n + eps), 1 / std::sqrt(squares / n + eps)};
}

// |x| < 4: mean is off by n 2^-24 * 4, inv_std by n 2^-24 relative (errors of a sum of squares are
// halved by the root), the last steps by a few units; y is below 4 inv_std * 2 + 1.
TEST(Normalisation, StaysWithinTheBoundWithAndWithoutGammaAndBeta) {
  constexpr float kEps = 1e-3f;
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const size_t n : kRowCounts) {
      const std::vector<float> x = random_floats(n, 26, -2.0f, 4.0f);
      const std::vector<float> gamma = random_floats(n, 27, -2.0f, 2.0f);
      const std::vector<float> beta = random_floats(n, 28);
      const NormTruth truth = norm_truth(x, kEps);
      for (int variant = 0; variant < 4; ++variant) {
        const float* g = variant & 1 ? gamma.data() : nullptr;
        const float* b = variant & 2 ? beta.data() : nullptr;
        Guarded y(x, n % 4);
        Guarded rms(n, n % 5);
        float mean = 0, inv_std = 0, inv_rms = 0;
        level.kernels.layer_norm_f32(wide(n), y.data(), g, b, kEps, y.data(), &mean, &inv_std);
        level.kernels.rms_norm_f32(wide(n), x.data(), g, kEps, rms.data(), &inv_rms);
        ASSERT_TRUE(y.intact() && rms.intact()) << level.name;
        const double unit = static_cast<double>(n + 8) * 0x1p-24;
        ASSERT_NEAR(mean, truth.mean, 4 * unit) << level.name << ' ' << n;
        // A mean off by d adds d^2 to the variance and its own error to every difference.
        ASSERT_NEAR(inv_std, truth.inv_std, 8 * unit * truth.inv_std) << level.name << ' ' << n;
        ASSERT_NEAR(inv_rms, truth.inv_rms, unit * truth.inv_rms) << level.name;
        for (size_t i = 0; i < n; ++i) {
          const double scale = g ? g[i] : 1.0;
          const double want = (x[i] - truth.mean) * truth.inv_std * scale + (b ? b[i] : 0.0);
          ASSERT_NEAR(y.data()[i], want, 64 * unit * truth.inv_std + unit) << level.name;
          ASSERT_NEAR(rms.data()[i], x[i] * truth.inv_rms * scale, 8 * unit * truth.inv_rms);
        }
      }
    }
  }
}

TEST(Normalisation, AcceptsNoStatisticsOutputs) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const std::vector<float> x(9, 3.0f);
    std::vector<float> y(9, kNan);
    level.kernels.layer_norm_f32(9, x.data(), nullptr, nullptr, 1.0f, y.data(), nullptr, nullptr);
    EXPECT_EQ(y, std::vector<float>(9, 0.0f)) << level.name;
    level.kernels.rms_norm_f32(9, x.data(), nullptr, 0.0f, y.data(), nullptr);
    EXPECT_FLOAT_EQ(y[8], 1.0f) << level.name;
  }
}

TEST(Convert, HalfGivesEveryValueAndComesBack) {
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  for (const LevelUnderTest& level : levels_under_test()) {
    std::vector<float> floats(halves.size());
    level.kernels.f16_to_f32(wide(halves.size()), halves.data(), floats.data());
    std::vector<uint16_t> back(halves.size());
    level.kernels.f32_to_f16(wide(halves.size()), floats.data(), back.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      const int exponent = (halves[i] >> 10) & 31;
      const int mantissa = halves[i] & 1023;
      const float sign = halves[i] & 0x8000 ? -1.0f : 1.0f;
      if (exponent == 31 && mantissa != 0) {
        ASSERT_TRUE(std::isnan(floats[i])) << level.name << ' ' << i;
        ASSERT_EQ(back[i], halves[i] | 0x200) << level.name << ' ' << i;
        continue;
      }
      const float want = exponent == 31 ? kInf
                         : exponent == 0
                             ? std::ldexp(static_cast<float>(mantissa), -24)
                             : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
      ASSERT_EQ(bits_of(floats[i]), bits_of(sign * want)) << level.name << ' ' << i;
      ASSERT_EQ(back[i], halves[i]) << level.name << ' ' << i;
    }
  }
}

// Floats around every half and every tie between two halves, against the nearest in double.
TEST(Convert, NarrowingRoundsToNearestEven) {
  std::vector<float> values;
  for (uint32_t half = 0; half < 0x7c00; ++half) {
    const uint16_t pair[2] = {static_cast<uint16_t>(half), static_cast<uint16_t>(half + 1)};
    float ends[2];
    ref_kernels().f16_to_f32(2, pair, ends);
    const float tie = half == 0x7bff ? 65520.0f : (ends[0] + ends[1]) / 2;
    for (const float x : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, kInf)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  for (const LevelUnderTest& level : levels_under_test()) {
    std::vector<uint16_t> got(values.size());
    level.kernels.f32_to_f16(wide(values.size()), values.data(), got.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto half = static_cast<uint32_t>(i / 6);
      const uint32_t up = i % 6 / 2 == 2 || (i % 6 / 2 == 1 && (half & 1)) ? 1 : 0;
      ASSERT_EQ(got[i], (half + up) | (i % 2 ? 0x8000u : 0u)) << level.name << ' ' << values[i];
    }
  }
}

TEST(Convert, Bfloat16RoundsToNearestEvenAndWidensExactly) {
  for (const LevelUnderTest& level : levels_under_test()) {
    const std::pair<uint32_t, uint16_t> cases[] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
        {0x3f807fff, 0x3f80}, {0x7f7fffff, 0x7f80}, {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80},
        {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, {0x00000000, 0x0000}, {0x80000000, 0x8000},
        {0x00008000, 0x0000}, {0x00018000, 0x0002}, {0x7fa00000, 0x7fe0}};
    for (const auto& [bits, want] : cases) {
      const std::vector<float> x(21, from_bits(bits));
      std::vector<uint16_t> got(21);
      level.kernels.f32_to_bf16(21, x.data(), got.data());
      EXPECT_EQ(got[0], want) << level.name << std::hex << ' ' << bits;
      EXPECT_EQ(got[20], want) << level.name << std::hex << ' ' << bits;
    }
    const uint16_t narrow[] = {0x3f80, 0x0001, 0xff80, 0x7f81};
    float floats[4];
    level.kernels.bf16_to_f32(4, narrow, floats);
    EXPECT_EQ(floats[0], 1.0f) << level.name;
    EXPECT_EQ(bits_of(floats[1]), 0x00010000u) << level.name;
    EXPECT_EQ(floats[2], -kInf) << level.name;
    EXPECT_EQ(bits_of(floats[3]), 0x7fc10000u) << level.name;
  }
}

}  // namespace
}  // namespace folio
