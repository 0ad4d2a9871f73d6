#include "tests/kernels/gemm_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace folio {

size_t panel_floats(int64_t k, int64_t n) { return static_cast<size_t>((n + 15) / 16 * 16 * k); }

GemmProblem::GemmProblem(int64_t m_, int64_t n_, int64_t k_, uint32_t seed)
    : m(m_),
      n(n_),
      k(k_),
      a(random_floats(static_cast<size_t>(m * k), seed)),
      b(random_floats(static_cast<size_t>(k * n), seed + 1)),
      c(random_floats(static_cast<size_t>(m * n), seed + 2)),
      col_bias(random_floats(static_cast<size_t>(n), seed + 3)),
      row_bias(random_floats(static_cast<size_t>(m), seed + 4)),
      col_scale(random_floats(static_cast<size_t>(n), seed + 5)),
      addend(random_floats(static_cast<size_t>(m * (n + kAddendGap)), seed + 6)),
      packed(panel_floats(k, n)) {
  pack();
}

std::vector<float> GemmProblem::turned_a() const {
  std::vector<float> turned(a.size());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t q = 0; q < k; ++q) {
      turned[static_cast<size_t>(q * m + i)] = a[static_cast<size_t>(i * k + q)];
    }
  }
  return turned;
}

FolioGemmF32 GemmProblem::args(int32_t precision) const {
  FolioGemmF32 args = {};
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.a_row_stride = k;
  args.a_col_stride = 1;
  args.b = packed.data();
  args.alpha = 1;
  args.precision = precision;
  return args;
}

std::vector<float> run_gemm(const LevelUnderTest& level, const GemmProblem& problem,
                            FolioGemmF32 args, int64_t gap) {
  const int64_t stride = problem.n + gap;
  const size_t count =
      problem.m == 0 ? 0 : static_cast<size_t>((problem.m - 1) * stride + problem.n);
  std::vector<float> start(count, 777.0f);
  for (int64_t i = 0; i < problem.m; ++i) {
    std::copy_n(problem.c.begin() + i * problem.n, problem.n, start.begin() + i * stride);
  }
  Guarded c(start, static_cast<size_t>(gap) % 5);
  args.c = c.data();
  args.c_row_stride = stride;
  level.kernels.gemm_f32(&args);
  EXPECT_TRUE(c.intact()) << level.name;
  std::vector<float> result;
  for (int64_t i = 0; i < problem.m; ++i) {
    for (int64_t j = 0; j < stride && (i + 1 < problem.m || j < problem.n); ++j) {
      const float value = c.data()[i * stride + j];
      if (j < problem.n) {
        result.push_back(value);
      } else {
        EXPECT_EQ(value, 777.0f) << level.name << " wrote between the rows";
      }
    }
  }
  return result;
}

std::vector<float> run_in_blocks(const LevelUnderTest& level, const GemmProblem& p,
                                 const FolioGemmF32& whole, int64_t rows, int64_t columns) {
  std::vector<float> c(static_cast<size_t>(p.m * p.n));
  for (int64_t i = 0; i < p.m; i += rows) {
    for (int64_t j = 0; j < p.n; j += columns) {
      FolioGemmF32 args = whole;
      args.m = std::min(rows, p.m - i);
      args.n = std::min(columns, p.n - j);
      args.a += i * p.k;
      args.b += j * p.k;
      args.c = c.data() + i * p.n + j;
      args.c_row_stride = p.n;
      level.kernels.gemm_f32(&args);
    }
  }
  return c;
}

std::vector<float> run_in_depth(const LevelUnderTest& level, const GemmProblem& p,
                                const FolioGemmF32& whole, const std::vector<int64_t>& ends) {
  std::vector<float> c(static_cast<size_t>(p.m * p.n), std::numeric_limits<float>::quiet_NaN());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    std::vector<float> panels(panel_floats(end - begin, p.n));
    level.kernels.pack_f32p16(end - begin, p.n, p.b.data() + begin * p.n, p.n, 1, panels.data());
    FolioGemmF32 args = whole;
    args.k = end - begin;
    args.a += begin;
    args.b = panels.data();
    args.accumulate = begin > 0;
    args.c = c.data();
    args.c_row_stride = p.n;
    level.kernels.gemm_f32(&args);
    begin = end;
  }
  return c;
}

std::vector<const float*> row_pieces(const GemmProblem& p, int64_t pieces) {
  std::vector<const float*> starts;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    for (int64_t i = 0; i < p.m; ++i) starts.push_back(p.a.data() + i * p.k + piece * p.k / pieces);
  }
  return starts;
}

void expect_near_product(const LevelUnderTest& level, const GemmProblem& p,
                         const FolioGemmF32& args, const std::vector<float>& got) {
  ASSERT_EQ(got.size(), static_cast<size_t>(p.m * p.n));
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const auto at = static_cast<size_t>(i * p.n + j);
      double sum = args.accumulate ? p.c[at] : 0;
      double size = std::fabs(sum);
      for (int64_t q = 0; q < p.k; ++q) {
        const double product = double{args.a[i * args.a_row_stride + q * args.a_col_stride]} *
                               p.b[static_cast<size_t>(q * p.n + j)];
        sum += product;
        size += std::fabs(product);
      }
      const double scale = args.col_scale ? double{args.alpha} * args.col_scale[j] : args.alpha;
      double want = scale * sum;
      size *= std::fabs(scale);
      if (args.addend) {
        const double addend = args.addend[i * args.addend_row_stride + j];
        want += addend, size += std::fabs(addend);
      }
      if (args.col_bias) want += args.col_bias[j], size += std::fabs(args.col_bias[j]);
      if (args.row_bias) want += args.row_bias[i], size += std::fabs(args.row_bias[i]);
      if (args.activation == kFolioActRelu) want = std::max(want, 0.0);
      if (args.activation == kFolioActLeakyRelu && want < 0) want *= args.clip_lo;
      if (args.activation == kFolioActClip) {
        want = std::min<double>(std::max<double>(want, args.clip_lo), args.clip_hi);
      }
      const int64_t further = (args.col_scale ? 1 : 0) + (args.addend ? 1 : 0);
      const double bound = static_cast<double>(p.k + 5 + further) * 0x1p-24 * size + 0x1p-140;
      ASSERT_LE(std::fabs(got[at] - want), bound)
          << level.name << ' ' << p.m << 'x' << p.n << 'x' << p.k << " at " << i << ", " << j;
    }
  }
}

}  // namespace folio
