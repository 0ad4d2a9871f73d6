#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr int64_t kInput = 3;
constexpr int64_t kHidden = 5;
constexpr int64_t kWidth = 4 * kHidden;

// Pseudo-random bytes of a type, the extremes among them.
template <typename T>
std::vector<T> bytes_of(int64_t count, uint32_t seed) {
  std::vector<T> out;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.push_back(static_cast<T>(seed >> 24));
  }
  out[0] = std::numeric_limits<T>::min();
  out[1] = std::numeric_limits<T>::max();
  return out;
}

// Floats that are codes of 8 bits over their own range, so that rounding them loses nothing.
std::vector<float> coded(int64_t count, float scale, uint32_t seed) {
  std::vector<float> out;
  for (const uint8_t code : bytes_of<uint8_t>(count, seed)) {
    out.push_back(static_cast<float>(code - 100) * scale);
  }
  return out;
}

template <typename T>
struct Weights {
  Weights(int64_t dirs, int64_t k, bool per_column, uint32_t seed)
      : codes(bytes_of<T>(dirs * k * kWidth, seed)) {
    const int64_t parts = per_column ? dirs * kWidth : dirs;
    const bool is_signed = std::is_signed_v<T>;
    for (int64_t i = 0; i < parts; ++i) {
      scales.push_back(0.004f + 0.0005f * static_cast<float>(i % 7));
      zeros.push_back(static_cast<T>(is_signed ? i % 5 : 120 + i % 5));
    }
    shape = per_column ? Shape{dirs, kWidth} : Shape{dirs};
    for (int64_t d = 0; d < dirs; ++d) {  // LSTM's are [dirs, 4 H, k]
      for (int64_t j = 0; j < kWidth; ++j) {
        const auto part = static_cast<size_t>(per_column ? d * kWidth + j : d);
        for (int64_t p = 0; p < k; ++p) {
          const T code = codes[static_cast<size_t>((d * k + p) * kWidth + j)];
          floats.push_back(static_cast<float>(code - zeros[part]) * scales[part]);
        }
      }
    }
  }
  std::vector<T> codes;
  std::vector<float> scales;
  std::vector<T> zeros;
  Shape shape;
  std::vector<float> floats;
};

// One run of a whole node, of bytes or of the same numbers as floats.
template <typename T>
std::vector<std::vector<float>> results(bool of_bytes, int64_t dirs, int64_t seq, bool per_column,
                                        const std::vector<float>& x, bool constant,
                                        OpTester* tester) {
  const Weights<T> w(dirs, kInput, per_column, 11);
  const Weights<T> r(dirs, kHidden, per_column, 12);
  OpTester& t = *tester;
  t.attr("direction", dirs == 2 ? "bidirectional" : "reverse").attr("hidden_size", kHidden);
  t.input<float>({seq, 2, kInput}, x);
  if (of_bytes && constant) {
    t.constant<T>({dirs, kInput, kWidth}, w.codes);
    t.constant<T>({dirs, kHidden, kWidth}, r.codes);
  } else if (of_bytes) {
    t.input<T>({dirs, kInput, kWidth}, w.codes);
    t.input<T>({dirs, kHidden, kWidth}, r.codes);
  } else {
    t.input<float>({dirs, kWidth, kInput}, w.floats);
    t.input<float>({dirs, kWidth, kHidden}, r.floats);
  }
  std::vector<float> bias;
  for (int64_t i = 0; i < dirs * 2 * kWidth; ++i) bias.push_back(0.01f * static_cast<float>(i % 9));
  t.input<float>({dirs, 2 * kWidth}, bias);
  t.input_absent();
  t.input<float>({dirs, 2, kHidden}, coded(dirs * 2 * kHidden, 0.01f, 77));
  t.input<float>({dirs, 2, kHidden}, coded(dirs * 2 * kHidden, 0.02f, 78));
  t.input_absent();
  if (of_bytes) {
    t.input<float>(w.shape, w.scales);
    t.input<T>(w.shape, w.zeros);
    t.input<float>(r.shape, r.scales);
    t.input<T>(r.shape, r.zeros);
  }
  t.outputs(3).run();
  return {t.output_values<float>(0), t.output_values<float>(1), t.output_values<float>(2)};
}

template <typename T>
void expect_lstm(int64_t seq, const std::vector<float>& x, double tolerance) {
  for (const int64_t dirs : {1, 2}) {
    if (dirs == 2 && tolerance < 1e-4) continue;  // the two directions' states have other ranges
    for (const bool per_column : {false, true}) {
      for (const bool constant : {false, true}) {
        SCOPED_TRACE(testing::Message() << dirs << " directions, per column " << per_column);
        OpTester lstm("LSTM", 14);
        OpTester quantized("DynamicQuantizeLSTM", 1, "com.microsoft");
        const auto expected = results<T>(false, dirs, seq, per_column, x, constant, &lstm);
        const auto got = results<T>(true, dirs, seq, per_column, x, constant, &quantized);
        for (size_t i = 0; i < 3; ++i) {
          ASSERT_EQ(got[i].size(), expected[i].size());
          for (size_t j = 0; j < got[i].size(); ++j) {
            EXPECT_NEAR(got[i][j], expected[i][j], tolerance) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(DynamicQuantizeLSTM, IsLstmWhereCodesAreExact) {
  expect_lstm<int8_t>(1, coded(2 * kInput, 0.02f, 5), 2e-5);
  expect_lstm<uint8_t>(1, coded(2 * kInput, 0.02f, 5), 2e-5);
}

TEST(DynamicQuantizeLSTM, StaysNearLstmOverTime) {
  std::vector<float> x;
  for (int i = 0; i < 7 * 2 * kInput; ++i) x.push_back(std::sin(static_cast<float>(i) * 1.7f));
  expect_lstm<int8_t>(7, x, 0.02);
  expect_lstm<uint8_t>(7, x, 0.02);
}

TEST(DynamicQuantizeLSTM, TakesInputsOfNoElements) {
  OpTester t("DynamicQuantizeLSTM", 1, "com.microsoft");
  t.input<float>({2, 1, 0}, {});
  t.input<int8_t>({1, 0, 8}, {}).input<int8_t>({1, 2, 8}, std::vector<int8_t>(16, 3));
  for (int i = 3; i < 8; ++i) t.input_absent();
  for (int i = 0; i < 2; ++i) t.input<float>({1}, {0.1f}).input<int8_t>({1}, {0});
  t.expect<float>(0, {2, 1, 1, 2}, {0, 0, 0, 0});
  t.run();
}

TEST(DynamicQuantizeLSTM, RefusesShapesAndTypesThatDoNotFit) {
  const auto fails = [](const Shape& w, const Shape& r, const Shape& scale, DType zero,
                        const std::string& text) {
    OpTester t("DynamicQuantizeLSTM", 1, "com.microsoft");
    t.input<float>({2, 1, 3}, std::vector<float>(6, 1.0f));
    t.input<int8_t>(w, std::vector<int8_t>(static_cast<size_t>(w.count()), 1));
    t.input<int8_t>(r, std::vector<int8_t>(static_cast<size_t>(r.count()), 1));
    for (int i = 3; i < 8; ++i) t.input_absent();
    for (int i = 0; i < 2; ++i) {
      t.input<float>(scale, std::vector<float>(static_cast<size_t>(scale.count()), 1.0f));
      t.input_value(Value(make_raw_tensor(
          zero, scale, std::vector<uint8_t>(static_cast<size_t>(scale.count()), 0))));
    }
    t.outputs(1).fails(text);
  };
  fails({1, 4, 8}, {1, 2, 8}, {1}, DType::kInt8, "W is [1,4,8], expected [1,3,8]");
  fails({1, 3, 8}, {1, 2, 9}, {1}, DType::kInt8, "R is [1,2,9], expected [1,2,8]");
  fails({1, 3, 8}, {2, 8}, {1}, DType::kInt8, "R is [2,8], expected 3 dims");
  fails({1, 3, 8}, {1, 2, 8}, {8}, DType::kInt8, "input 8 is [8], expected [1] or [1,8]");
  fails({1, 3, 8}, {1, 2, 8}, {1}, DType::kUint8, "uint8");
  fails({1, 3, 0}, {1, 0, 0}, {1}, DType::kInt8, "hidden size of 0");
}

}  // namespace
}  // namespace folio
