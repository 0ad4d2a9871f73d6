// Products of bytes of a batch: threads share them, and what they need does not grow with it.
#include "core/ops/op_integer_matmul.h"

#include <gtest/gtest.h>

#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/os/thread_pool.h"
#include "tests/support/no_host.h"

namespace folio {
namespace {

std::vector<uint8_t> some_bytes(int64_t count, int step) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(i * static_cast<size_t>(step) + i / 11);
  }
  return bytes;
}

struct BatchCase {
  Shape a, b;
  DType b_type = DType::kInt8;
  int b_zero = 0;
};

class Batch {
 public:
  explicit Batch(const BatchCase& c) : case_(c) {
    Result<MatMulGeometry> made = matmul_geometry(c.a, c.b);
    EXPECT_TRUE(made.is_ok());
    g_ = std::move(made).take();
    a_ = some_bytes(c.a.count(), 37);
    b_ = some_bytes(c.b.count(), 91);
    b_zero_ = static_cast<uint8_t>(c.b_zero);
  }

  // The sums, by so many threads; *scratch: what the operator asked for.
  std::vector<int32_t> sums(int threads, uint64_t* scratch = nullptr) {
    NoHost host;
    PoolView parallel(threads);
    OpRun run(host, kernels_for(cpu_bits()), parallel);
    run.begin({}, {}, {});
    std::vector<int32_t> y(static_cast<size_t>(g_.out.count()), -1);
    ByteTarget target;
    target.y = y.data();
    const uint64_t before = buffer_bytes_live();
    const ByteOperand a = {a_.data(), case_.a.count(), DType::kUint8, {}};
    ByteZero zero;
    zero.data = &b_zero_;
    const ByteOperand b = {b_.data(), case_.b.count(), case_.b_type, zero};
    EXPECT_TRUE(multiply_bytes(run, g_, a, b, 1, target).is_ok());
    if (scratch) *scratch = buffer_bytes_live() - before;
    return y;
  }

  std::vector<int32_t> expected() const {
    std::vector<int32_t> y;
    for (int64_t i = 0; i < g_.batch.count(); ++i) {
      const uint8_t* const a = a_.data() + g_.index_a(i) * g_.m * g_.k;
      const uint8_t* const b = b_.data() + g_.index_b(i) * g_.k * g_.n;
      for (int64_t row = 0; row < g_.m; ++row) {
        for (int64_t j = 0; j < g_.n; ++j) {
          int32_t sum = 0;
          for (int64_t p = 0; p < g_.k; ++p) {
            const uint8_t code = b[p * g_.n + j];
            const int weight = case_.b_type == DType::kInt8 ? static_cast<int8_t>(code) : code;
            sum += a[row * g_.k + p] * (weight - case_.b_zero);
          }
          y.push_back(sum);
        }
      }
    }
    return y;
  }

 private:
  BatchCase case_;
  MatMulGeometry g_;
  std::vector<uint8_t> a_, b_;
  uint8_t b_zero_ = 0;
};

TEST(ByteBatch, IsTheSameForAnyThreads) {
  const BatchCase cases[] = {
      {{64, 8, 65}, {64, 65, 48}},
      {{64, 1, 120}, {64, 120, 33}, DType::kUint8, 7},
      {{8, 9, 3, 64}, {8, 1, 64, 100}, DType::kUint8, 128},  // nine products share a B
      {{1, 8, 3, 64}, {9, 8, 64, 100}, DType::kInt8, -3},
      {{3, 70, 200}, {3, 200, 90}},  // fewer products than threads
      {{70, 5, 64}, {64, 90}},       // one B
      {{2, 1, 3}, {2, 3, 5}},        // not worth a thread
      {{33, 2, 1}, {33, 1, 700}, DType::kUint8, 1},
  };
  for (const BatchCase& c : cases) {
    SCOPED_TRACE(c.a.to_string() + " x " + c.b.to_string());
    Batch batch(c);
    const std::vector<int32_t> expected = batch.expected();
    for (const int threads : {1, 2, 5}) EXPECT_EQ(batch.sums(threads), expected) << threads;
  }
}

TEST(ByteBatch, NeedsNoMoreScratchThanAThreadsProducts) {
  for (const int threads : {1, 4}) {
    uint64_t of_few = 0, of_many = 0;
    Batch({{8, 8, 64}, {8, 64, 512}}).sums(threads, &of_few);
    Batch({{200, 8, 64}, {200, 64, 512}}).sums(threads, &of_many);
    EXPECT_GT(of_few, 64U * 512);
    EXPECT_EQ(of_many, of_few) << threads;
  }
}

}  // namespace
}  // namespace folio
