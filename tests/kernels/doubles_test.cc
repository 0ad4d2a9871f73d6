// Slots of doubles at every usable level: functions against long double, whose 64 bits hold their
// errors; products against a loop, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <tuple>
#include <utility>

#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- Functions --------------------------------------------------------------------------------

long double sigmoid(long double x) {
  const long double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

struct Function {
  FolioUnaryF64Function slot;
  const char* name;
  long double (*truth)(long double);
  double max_ulp;  // as kernels.h states
};

const Function kFunctions[] = {
    {kFolioExpF64, "exp", std::exp, 2},       {kFolioLogF64, "log", std::log, 1},
    {kFolioTanhF64, "tanh", std::tanh, 2},    {kFolioSigmoidF64, "sigmoid", sigmoid, 2},
    {kFolioFloorF64, "floor", std::floor, 0}, {kFolioCeilF64, "ceil", std::ceil, 0},
    {kFolioRoundF64, "round", std::rint, 0},
};

// |got - want| in units of the last place of `want` as f64 (at least 2^-1074).
double ulps_between(double got, long double want) {
  const auto rounded = static_cast<double>(want);
  if (std::isnan(got) || std::isnan(rounded)) {
    return std::isnan(got) && std::isnan(rounded) ? 0 : kInf;
  }
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : kInf;
  int exponent = -1074;
  if (rounded != 0) exponent = std::max(std::ilogb(rounded) - 52, exponent);
  return static_cast<double>(std::ldexp(std::abs(got - want), -exponent));
}

// Any bits; numbers around 0 and 1; those where exponentials are in range; edges.
std::vector<double> probes() {
  std::vector<double> x = {0.0,        -0.0,   kInf,   -kInf,   kNan,     5e-324,
                           -5e-324,    1e-310, 709.78, 709.79,  -708.4,   -745.1,
                           -745.2,     -746,   710,    1.7e308, -1.7e308, 0x1p-1022,
                           -0x1p-1022, 1.0,    -1.0,   0x1p-30, -0x1p-30, 19.06};
  std::mt19937_64 random(7);
  for (int i = 0; i < 60000; ++i) {
    const uint64_t bits = random();
    const double part = static_cast<double>(bits >> 11) * 0x1p-52 - 1;  // [-1, 1)
    double any = 0;
    std::memcpy(&any, &bits, sizeof any);
    x.insert(x.end(), {any, part, 1 + part / 2, 20 * part, std::ldexp(part, i % 56), 750 * part,
                       std::abs(part) * 0x1p-1022});
  }
  return x;
}

TEST(UnaryOfDoubles, IsAsExactAsStated) {
  const std::vector<double> x = probes();
  std::vector<double> y(x.size());
  for (const Function& function : kFunctions) {
    std::vector<long double> want;
    for (const double each : x) want.push_back(function.truth(each));
    for (const LevelUnderTest& level : levels_under_test()) {
      if (level.name == "ref") continue;  // the C library's, whatever that is
      level.kernels.unary_f64[function.slot](static_cast<int64_t>(x.size()), x.data(), y.data());
      double worst = 0;
      double worst_x = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = ulps_between(y[i], want[i]);
        if (error > worst) worst_x = x[i];
        worst = std::max(worst, error);
        // A zero's sign, too.
        if (want[i] == 0) {
          ASSERT_EQ(std::signbit(y[i]), std::signbit(want[i])) << function.name;
        }
      }
      EXPECT_LE(worst, function.max_ulp) << level.name << ' ' << function.name << " of " << worst_x;
    }
  }
}

TEST(UnaryOfDoubles, DependsOnTheElementAloneAndMayBeInPlace) {
  const std::vector<double> x = probes();
  for (const Function& function : kFunctions) {
    for (const LevelUnderTest& level : levels_under_test()) {
      const FolioUnaryF64 slot = level.kernels.unary_f64[function.slot];
      std::vector<double> whole(100);
      slot(100, x.data(), whole.data());
      for (int64_t begin = 0; begin < 100; begin += 7) {
        double part[7];
        const int64_t n = std::min<int64_t>(7, 100 - begin);
        std::copy_n(x.data() + begin, n, part);
        slot(n, part, part);
        EXPECT_EQ(std::memcmp(part, whole.data() + begin, static_cast<size_t>(n) * 8), 0)
            << level.name << ' ' << function.name << " from " << begin;
      }
    }
  }
}

// ---- Products ---------------------------------------------------------------------------------

struct Product {
  int64_t m, n, k;
  int64_t a_step, b_step;  // between elements of rows that are contiguous when 1
  bool trans_a, trans_b;
};

// Strides of [rows, cols] with elements `step` apart, and a few elements between rows.
std::pair<int64_t, int64_t> strides_of(int64_t rows, int64_t cols, int64_t step, bool trans) {
  if (trans) return {step, rows * step + 3};
  return {cols * step + 3, step};
}

std::vector<double> numbers_for(int64_t rows, int64_t cols, std::pair<int64_t, int64_t> strides,
                                uint32_t seed) {
  const int64_t count = (rows - 1) * strides.first + (cols - 1) * strides.second + 1;
  const std::vector<float> floats = random_floats(static_cast<size_t>(count) * 2, seed);
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) {  // 53 bits, not 24
    const auto at = static_cast<size_t>(2 * i);
    out.push_back(double{floats[at]} + double{floats[at + 1]} * 0x1p-27);
  }
  return out;
}

void expect_product_is_a_loop(const LevelUnderTest& level, const Product& p) {
  const auto a_strides = strides_of(p.m, p.k, p.a_step, p.trans_a);
  const auto b_strides = strides_of(p.k, p.n, p.b_step, p.trans_b);
  const std::vector<double> a = numbers_for(p.m, p.k, a_strides, 1);
  const std::vector<double> b = numbers_for(p.k, p.n, b_strides, 2);
  FolioGemmF64 args{};
  args.m = p.m, args.n = p.n, args.k = p.k;
  args.a = a.data(), args.b = b.data();
  std::tie(args.a_row_stride, args.a_col_stride) = a_strides;
  std::tie(args.b_row_stride, args.b_col_stride) = b_strides;
  args.c_row_stride = p.n + 2;
  args.alpha = 0.3;
  std::vector<double> c(static_cast<size_t>(p.m * args.c_row_stride), 77);
  std::vector<double> want = c;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        const double a_iq = args.a[i * args.a_row_stride + q * args.a_col_stride];
        const double b_qj = args.b[q * args.b_row_stride + j * args.b_col_stride];
        sum = level.name == "ref" ? sum + a_iq * b_qj : std::fma(a_iq, b_qj, sum);
      }
      want[static_cast<size_t>(i * args.c_row_stride + j)] = args.alpha * sum;
    }
  }
  const auto bytes = static_cast<size_t>(folio_gemm_f64_scratch(&args));
  // Of just this size, so that sanitizers see what is written behind it.
  const std::unique_ptr<void, void (*)(void*)> scratch(
      bytes > 0 ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr, std::free);
  args.scratch = scratch.get();
  args.c = c.data();
  level.kernels.gemm_f64(&args);
  EXPECT_EQ(c, want) << level.name << ' ' << p.m << 'x' << p.k << 'x' << p.n << ", steps "
                     << p.a_step << ' ' << p.b_step << ", transposed " << p.trans_a << p.trans_b;
}

// Sizes around tiles, panels, blocks of k, of rows and of columns, and few rows or columns.
TEST(GemmOfDoubles, IsThatOfALoopBitByBit) {
  const int64_t sizes[][3] = {{1, 1, 1},   {1, 37, 9},   {37, 1, 9},    {4, 19, 10},  {19, 4, 261},
                              {3, 2, 5},   {5, 5, 5},    {6, 8, 16},    {7, 17, 257}, {13, 33, 300},
                              {74, 9, 12}, {20, 530, 7}, {2, 1030, 11}, {145, 40, 6}, {8, 64, 520}};
  for (const LevelUnderTest& level : levels_under_test()) {
    for (const auto& [m, n, k] : sizes) {
      for (int each = 0; each < 16; ++each) {
        expect_product_is_a_loop(level, {m, n, k, 1 + (each & 1), 1 + (each >> 1 & 1),
                                         (each & 4) != 0, (each & 8) != 0});
      }
    }
  }
}

TEST(GemmOfDoubles, CopiesRowsThatAreAMultipleOf4KiBApart) {
  const std::vector<float> floats = random_floats(13 * 512 + 512 * 100, 3);
  std::vector<double> x(floats.begin(), floats.end());
  for (double& each : x) each = std::round(64 * each);  // no level rounds sums of these
  std::vector<double> want;
  for (const LevelUnderTest& level : levels_under_test()) {
    std::vector<double> c(13 * 100);
    FolioGemmF64 args{13,  100, 512,      x.data(), 512, 1,      x.data() + 13 * 512,
                      100, 1,   c.data(), 100,      1,   nullptr};
    std::vector<double> scratch(static_cast<size_t>(folio_gemm_f64_scratch(&args)) / 8 + 8);
    args.scratch = scratch.data();
    level.kernels.gemm_f64(&args);
    if (want.empty()) want = c;
    EXPECT_EQ(c, want) << level.name;
  }
}

TEST(GemmOfDoubles, IsAlphaTimesZeroOfAnEmptySum) {
  for (const LevelUnderTest& level : levels_under_test()) {
    double c[15];
    std::fill_n(c, 15, 7.0);
    FolioGemmF64 args{};
    args.m = 5, args.n = 3, args.c = c, args.c_row_stride = 3, args.alpha = 2;
    level.kernels.gemm_f64(&args);
    for (const double each : c) EXPECT_EQ(each, 0) << level.name;
  }
}

}  // namespace
}  // namespace folio
