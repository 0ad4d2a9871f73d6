#include <gtest/gtest.h>

#include "core/ops/op_gemm.h"

namespace folio {
namespace {

constexpr ChunkRule kRule = {4 << 20, 1 << 17, 128, 512, kThreadMacs, 1 << 14};

struct Product {
  int64_t m, n, k;
};

class ProductChunks : public testing::TestWithParam<Product> {};

// The pool gives each of two threads half of the chunks, in the order of rows, then columns.
TEST_P(ProductChunks, GiveTwoThreadsHalfEach) {
  const auto [m, n, k] = GetParam();
  const ProductChunk chunk = product_chunk(kRule, m, n, k, 2);
  ASSERT_GT(chunk.rows, 0);
  ASSERT_TRUE(chunk.columns % 16 == 0 && chunk.columns > 0) << chunk.columns;
  std::vector<int64_t> work;
  for (int64_t row = 0; row < m; row += chunk.rows) {
    for (int64_t column = 0; column < n; column += chunk.columns) {
      work.push_back(std::min(chunk.rows, m - row) * std::min(chunk.columns, n - column));
    }
  }
  int64_t first = 0;
  for (size_t i = 0; i < work.size() / 2; ++i) first += work[i];
  const double share = static_cast<double>(first) / static_cast<double>(m * n);
  EXPECT_GT(share, 0.45) << work.size() << " chunks";
  EXPECT_LT(share, 0.55) << work.size() << " chunks";
}

// Layers of transformers and 1x1 convolutions.
INSTANTIATE_TEST_SUITE_P(Shapes, ProductChunks,
                         testing::Values(Product{128, 768, 3072}, Product{128, 768, 768},
                                         Product{128, 3072, 768}, Product{512, 768, 3072},
                                         Product{784, 64, 512}, Product{3136, 64, 64},
                                         Product{1024, 1024, 1024}, Product{333, 111, 777},
                                         Product{200, 1000, 2048}));

// 48 to 95 rows are no two parts: columns are cut, into an even number of blocks.
INSTANTIATE_TEST_SUITE_P(SomeRows, ProductChunks,
                         testing::Values(Product{50, 256, 256}, Product{77, 192, 192},
                                         Product{64, 384, 384}, Product{64, 384, 1536},
                                         Product{64, 1536, 384}, Product{50, 1024, 256},
                                         Product{50, 256, 1024}, Product{77, 768, 192},
                                         Product{197, 384, 384}, Product{197, 1536, 384},
                                         Product{64, 768, 768}, Product{95, 320, 320}));

// Layers of small transformers, a few tokens or one; small convolutions.
INSTANTIATE_TEST_SUITE_P(SmallShapes, ProductChunks,
                         testing::Values(Product{11, 384, 192}, Product{11, 192, 192},
                                         Product{1, 384, 192}, Product{1, 600, 192},
                                         Product{16, 1536, 384}, Product{75, 160, 64},
                                         Product{128, 64, 64}, Product{100, 256, 128}));

TEST(ProductChunks, OfSomeRowsAreEnoughForTwoThreads) {
  for (const Product& p : {Product{50, 256, 256}, Product{77, 192, 192}, Product{64, 1536, 384}}) {
    const ProductChunk chunk = product_chunk(kRule, p.m, p.n, p.k, 2);
    EXPECT_LE(2 * chunk.columns, p.n);
    EXPECT_EQ(product_chunk(kRule, p.m, p.n, p.k, 1).rows, p.m);
  }
}

TEST(ProductChunks, SmallProductsAreOne) {
  const ProductChunk chunk = product_chunk(kRule, 150, 60, 32, 1);
  EXPECT_EQ(chunk.rows, 150);
  EXPECT_EQ(chunk.columns, 64);
}

TEST(ProductChunks, TakeSizesOfZeroAndHugeOnes) {
  EXPECT_GT(product_chunk(kRule, 48, 0, 0, 2).rows, 0);
  EXPECT_EQ(product_chunk(kRule, 48, 1 << 20, int64_t{1} << 40, 2).columns, 128);
}

}  // namespace
}  // namespace folio
