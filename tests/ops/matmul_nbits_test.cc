#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// A product of small numbers, exact in floats, computed here as the definition says.
struct Product {
  int bits = 4;
  int64_t rows = 1;
  int64_t k = 40;  // the last block of 16 is half full
  int64_t n = 18;  // more than one panel
  enum class Zeros { kNone, kPacked, kFloats } zeros = Zeros::kNone;
  bool grouped = false;
  int accuracy = 0;
  int64_t block = 16;
  bool biased = true;
  DType dtype = DType::kFloat;

  int64_t blocks() const { return (k + block - 1) / block; }
  int code(int64_t j, int64_t p) const { return static_cast<int>((7 * j + 5 * p) % (1 << bits)); }
  float a(int64_t i, int64_t p) const {
    // With every block's largest at 127, rounding to 8 bits changes nothing.
    return p % block == 0 ? 127.0f : static_cast<float>((i + 3 * p) % 9 - 4);
  }
  float scale(int64_t j, int64_t b) const { return 0.25f * static_cast<float>(1 + (j + b) % 4); }
  int zero(int64_t j, int64_t b) const {
    return zeros == Zeros::kNone ? 1 << (bits - 1) : static_cast<int>((j + 2 * b) % (1 << bits));
  }
  int64_t group(int64_t p) const { return grouped ? (p * 5) % blocks() : p / block; }

  std::vector<uint8_t> packed_codes() const {
    std::vector<uint8_t> out(static_cast<size_t>(n * blocks() * block * bits / 8));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < blocks() * block; ++p) {
        const int64_t bit = (j * blocks() * block + p) * bits;
        out[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(code(j, p) << bit % 8);
      }
    }
    return out;
  }

  void run() const {
    OpTester t("MatMulNBits", 1, "com.microsoft");
    t.attr("K", k).attr("N", n).attr("bits", bits).attr("block_size", block);
    t.attr("accuracy_level", accuracy);
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> scales;
    std::vector<double> float_zeros;
    const int64_t zero_bytes = (blocks() * bits + 7) / 8;
    std::vector<uint8_t> byte_zeros(static_cast<size_t>(n * zero_bytes));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t b = 0; b < blocks(); ++b) {
        scales.push_back(scale(j, b));
        float_zeros.push_back(zero(j, b));
        byte_zeros[static_cast<size_t>(j * zero_bytes + b * bits / 8)] |=
            static_cast<uint8_t>(zero(j, b) << b * bits % 8);
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t p = 0; p < k; ++p) x.push_back(a(i, p));
      for (int64_t j = 0; j < n; ++j) {
        double sum = biased ? static_cast<double>(j) : 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += a(i, p) * (code(j, p) - zero(j, group(p))) * scale(j, group(p));
        }
        y.push_back(sum);
      }
    }
    t.input_as(dtype, {1, rows, k}, x);
    t.input<uint8_t>({n, blocks(), block * bits / 8}, packed_codes());
    t.input_as(dtype, {n, blocks()}, scales);
    if (zeros == Zeros::kNone) t.input_absent();
    if (zeros == Zeros::kPacked) t.input<uint8_t>({n, zero_bytes}, byte_zeros);
    if (zeros == Zeros::kFloats) t.input_as(dtype, {n, blocks()}, float_zeros);
    if (grouped) {
      std::vector<int32_t> groups;
      for (int64_t p = 0; p < k; ++p) groups.push_back(static_cast<int32_t>(group(p)));
      t.input<int32_t>({k}, groups);
    } else {
      t.input_absent();
    }
    std::vector<double> bias;
    for (int64_t j = 0; j < n; ++j) bias.push_back(static_cast<double>(j));
    if (biased) t.input_as(dtype, {n}, bias);
    const double last_place = dtype == DType::kFloat     ? 1e-5
                              : dtype == DType::kFloat16 ? 0x1p-10
                                                         : 0x1p-7;
    t.expect_as(0, dtype, {1, rows, n}, y, last_place);
    t.run();
  }
};

TEST(MatMulNBits, MultipliesByWidenedWeights) {
  for (const int bits : {2, 4, 8}) {
    for (const int64_t rows : {1, 7}) {  // dot products, panels
      for (const auto zeros :
           {Product::Zeros::kNone, Product::Zeros::kPacked, Product::Zeros::kFloats}) {
        SCOPED_TRACE(bits);
        Product p;
        p.bits = bits;
        p.rows = rows;
        p.zeros = zeros;
        p.run();
      }
    }
  }
}

TEST(MatMulNBits, TakesBlocksOfEveryLength) {
  for (const int accuracy : {0, 4}) {
    for (const int bits : {2, 4, 8}) {
      for (const int64_t block : {16, 32, 64, 128, 256, 512}) {
        for (const int64_t rows : {1, 3, 20}) {
          SCOPED_TRACE(testing::Message()
                       << accuracy << ' ' << bits << ' ' << block << ' ' << rows);
          Product p;
          p.bits = bits;
          p.rows = rows;
          p.block = block;
          p.k = 5 * block / 2 + 3;
          p.accuracy = accuracy;
          p.biased = rows != 3;
          p.zeros = rows == 1 ? Product::Zeros::kNone : Product::Zeros::kPacked;
          p.run();
        }
      }
    }
  }
}

TEST(MatMulNBits, ComputesHalvesAsFloats) {
  for (const auto dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (const int accuracy : {0, 4}) {
      for (const int64_t rows : {1, 7, 20}) {
        for (const auto zeros : {Product::Zeros::kNone, Product::Zeros::kFloats}) {
          Product p;
          p.dtype = dtype;
          p.rows = rows;
          p.block = 32;
          p.k = 96;
          p.n = 70;
          p.accuracy = accuracy;
          p.zeros = zeros;
          p.run();
        }
      }
    }
  }
}

// Columns are taken a task at a time: scales and zero points begin inside their tensors.
TEST(MatMulNBits, EveryTaskFindsItsScalesAndZeros) {
  for (const int accuracy : {0, 4}) {
    for (const int64_t rows : {1, 5}) {
      Product p;
      p.k = 20000;
      p.n = 70;
      p.rows = rows;
      p.accuracy = accuracy;
      p.zeros = Product::Zeros::kPacked;
      p.run();
    }
  }
}

// More rows than kernels take at a time, and so many blocks that levels with tiles take their rows.
TEST(MatMulNBits, ManyRowsAreTakenABatchAtATime) {
  for (const int bits : {4, 8}) {
    for (const auto zeros :
         {Product::Zeros::kNone, Product::Zeros::kPacked, Product::Zeros::kFloats}) {
      Product p;
      p.bits = bits;
      p.zeros = zeros;
      p.rows = 133;
      p.block = 32;
      p.k = 12 * 32 - 5;
      p.n = 300;
      p.run();
    }
  }
}

TEST(MatMulNBits, GroupsNameTheBlockOfEachElement) {
  for (const int accuracy : {0, 4}) {
    for (const int64_t rows : {1, 7}) {
      Product p;
      p.rows = rows;
      p.grouped = true;
      p.accuracy = accuracy;
      p.zeros = Product::Zeros::kPacked;
      p.run();
    }
  }
}

TEST(MatMulNBits, AccuracyLevelFourTakesEightBitsOfA) {
  for (const int64_t rows : {1, 70}) {
    Product p;
    p.rows = rows;
    p.accuracy = 4;
    p.zeros = Product::Zeros::kPacked;
    p.run();
  }
  // 0.4 of 127 steps of 1 is lost, and only there.
  for (const int level : {0, 4}) {
    OpTester t("MatMulNBits", 1, "com.microsoft");
    t.attr("K", 16).attr("N", 1).attr("bits", 8).attr("block_size", 16);
    t.attr("accuracy_level", level);
    std::vector<float> x(16, 0);
    x[0] = 127;
    x[1] = 3.4f;
    std::vector<uint8_t> codes(16, 128);
    codes[1] = 129;
    t.input<float>({1, 16}, x);
    t.input<uint8_t>({1, 1, 16}, codes);
    t.input<float>({1, 1}, {1});
    t.expect<float>(0, {1, 1}, {level == 4 ? 3.0f : 3.4f}, 1e-6);
    t.run();
  }
}

TEST(MatMulNBits, HostileAttributesAndGroupsAreRefused) {
  const auto tester = [](int64_t k, int64_t n, int64_t block, int32_t group) {
    OpTester t("MatMulNBits", 1, "com.microsoft");
    t.attr("K", k).attr("N", n).attr("bits", 4).attr("block_size", block);
    t.input<float>({1, 16}, std::vector<float>(16, 1));
    t.input<uint8_t>({1, 1, 8}, std::vector<uint8_t>(8, 0));
    t.input<float>({1, 1}, {1});
    t.input_absent();
    t.input<int32_t>({16}, std::vector<int32_t>(16, group));
    t.outputs(1);
    return t;
  };
  tester(16, 1, 17, 0).fails("power of two");
  tester(INT64_MAX, 1, 16, 0).fails("'K'");
  tester(16, -1, 16, 0).fails("'N'");
  tester(16, 1 << 20, 16, 0).fails("expected");
  tester(16, 1, 16, 1).fails("g_idx");
  tester(16, 1, 16, -1).fails("g_idx");
}

}  // namespace
}  // namespace folio
