// QLinearConv, QLinearConvAdd and ConvIntegerToFloat with winograd = 1: bit by bit what they are
// without.
#include <gtest/gtest.h>

#include <random>

#include "core/ops/op_winograd_bytes.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

// One image [h, w, channels] and filters 3 x 3.
struct ByteCase {
  int64_t batch, channels, filters, height, width;
  std::vector<int64_t> pads = {1, 1, 1, 1};
  bool x_signed = false, w_signed = true, y_signed = false;
  int w_zero = 0;  // beside what the packed form has
  int threads = 1;
  bool is_packed = true;
  int64_t dilation = 1;

  Shape image() const { return {batch, height, width, channels}; }
  Shape out() const {
    return {batch, height + pads[0] + pads[2] - 2 * dilation,
            width + pads[1] + pads[3] - 2 * dilation, filters};
  }
};

template <typename T>
std::vector<T> random_codes(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& code : out) code = static_cast<T>(engine());
  return out;
}

void add_codes(OpTester* t, bool is_signed, const Shape& shape, uint32_t seed) {
  if (is_signed) {
    t->input<int8_t>(shape, random_codes<int8_t>(shape.count(), seed));
  } else {
    t->input<uint8_t>(shape, random_codes<uint8_t>(shape.count(), seed));
  }
}
void add_code(OpTester* t, bool is_signed, int code) {
  if (is_signed) {
    t->input<int8_t>({}, {static_cast<int8_t>(code)});
  } else {
    t->input<uint8_t>({}, {static_cast<uint8_t>(code)});
  }
}

void add_weights(OpTester* t, const ByteCase& c) {
  const Shape w{c.filters, c.channels, 3, 3};
  if (c.w_signed && c.is_packed) {
    t->constant<int8_t>(w, random_codes<int8_t>(w.count(), 2));
  } else if (c.is_packed) {
    t->constant<uint8_t>(w, random_codes<uint8_t>(w.count(), 2));
  } else {
    add_codes(t, c.w_signed, w, 2);
  }
}

std::vector<int> codes_of(const OpTester& t, bool is_signed) {
  if (is_signed) {
    const std::vector<int8_t> codes = t.output_values<int8_t>(0);
    return {codes.begin(), codes.end()};
  }
  const std::vector<uint8_t> codes = t.output_values<uint8_t>(0);
  return {codes.begin(), codes.end()};
}

std::vector<float> scales_of(int64_t count) {
  std::vector<float> scales;
  for (int64_t j = 0; j < count; ++j) scales.push_back(0.0007F * static_cast<float>(1 + j % 5));
  return scales;
}

enum class Addend { kNone, kA, kB };

std::vector<int> linear(const ByteCase& c, int winograd, Addend addend = Addend::kNone) {
  const bool adds = addend != Addend::kNone;
  OpTester t(adds ? "QLinearConvAdd" : "QLinearConv", 1, adds ? "folio" : "com.microsoft");
  t.threads(c.threads).attr("channels_last", 1).attr("winograd", winograd);
  t.attr_ints("pads", c.pads).attr_ints("dilations", {c.dilation, c.dilation});
  add_codes(&t, c.x_signed, c.image(), 1);
  t.input<float>({}, {0.02F});
  add_code(&t, c.x_signed, c.x_signed ? -9 : 140);
  add_weights(&t, c);
  t.input<float>({c.filters}, scales_of(c.filters));
  add_code(&t, c.w_signed, (c.w_signed ? 0 : 128) + c.w_zero);
  t.input<float>({}, {0.03F});
  add_code(&t, c.y_signed, c.y_signed ? 5 : 120);
  std::vector<int32_t> bias;
  for (int64_t j = 0; j < c.filters; ++j) bias.push_back(static_cast<int32_t>(j * 37 - 300));
  t.input<int32_t>({c.filters}, bias);
  if (adds) {
    t.attr("addend_is_a", addend == Addend::kA ? 1 : 0);
    add_codes(&t, c.y_signed, c.out(), 3);
    for (const float scale : {0.05F, 0.03F, 0.07F}) {
      t.input<float>({}, {scale});
      add_code(&t, c.y_signed, 11);
    }
  }
  t.outputs(1).run();
  return codes_of(t, c.y_signed);
}

std::vector<float> integer(const ByteCase& c, int winograd) {
  OpTester t("ConvIntegerToFloat", 1, "folio");
  t.threads(c.threads).attr("channels_last", 1).attr("winograd", winograd);
  t.attr_ints("pads", c.pads).attr_ints("dilations", {c.dilation, c.dilation});
  add_codes(&t, c.x_signed, c.image(), 1);
  add_weights(&t, c);
  add_code(&t, c.x_signed, 17);
  add_code(&t, c.w_signed, (c.w_signed ? 0 : 128) + c.w_zero);
  t.input<float>({c.filters}, scales_of(c.filters));
  t.input<float>({c.filters}, scales_of(c.filters));
  t.outputs(1).run();
  return t.output_values<float>(0);
}

const std::vector<ByteCase>& cases() {
  static const std::vector<ByteCase> all = {
      {1, 16, 16, 4, 4},
      {1, 16, 1, 1, 1},
      {2, 16, 17, 5, 7},
      {1, 32, 33, 8, 8, {0, 1, 2, 0}},
      {3, 48, 24, 9, 6, {2, 2, 2, 2}},
      {1, 80, 130, 14, 14},
      {1, 64, 64, 27, 29},
      {2, 16, 100, 30, 37, {0, 0, 0, 0}},
      {1, 224, 64, 13, 3, {1, 0, 0, 1}},
      {1, 16, 20, 3, 3, {0, 0, 0, 0}},
  };
  return all;
}

TEST(WinogradBytesConv, HasTheBitsOfDirectConvolution) {
  for (size_t i = 0; i < cases().size(); ++i) {
    for (const bool is_signed : {false, true}) {
      ByteCase c = cases()[i];
      c.x_signed = is_signed;
      c.w_signed = i % 2 == 0 || is_signed;
      c.y_signed = is_signed;
      const Addend addend = (i + (is_signed ? 1 : 0)) % 2 == 0 ? Addend::kA : Addend::kB;
      EXPECT_EQ(linear(c, 1), linear(c, 0)) << i << is_signed;
      EXPECT_EQ(linear(c, 1, addend), linear(c, 0, addend)) << i << is_signed;
      EXPECT_EQ(integer(c, 1), integer(c, 0)) << i << is_signed;
    }
  }
}

TEST(WinogradBytesConv, DilatedTapsHaveTilesOfTheirOwn) {
  for (const int64_t dilation : {2, 3, 7}) {
    ByteCase c = {2, 32, 40, 17, 19, {dilation, 0, 1, dilation}};
    c.dilation = dilation;
    EXPECT_EQ(linear(c, 1), linear(c, 0)) << dilation;
    EXPECT_EQ(integer(c, 1), integer(c, 0)) << dilation;
  }
}

TEST(WinogradBytesConv, ThreadsChangeNothing) {
  for (ByteCase c : cases()) {
    const std::vector<int> alone = linear(c, 1);
    for (const int threads : {3, 8}) {
      c.threads = threads;
      EXPECT_EQ(linear(c, 1), alone) << threads;
    }
  }
}

// Neither has a transformed form: they are computed directly.
TEST(WinogradBytesConv, ZeroPointsOfWeightsAndUnpackedOnesAreTakenDirectly) {
  for (ByteCase c : {cases()[2], cases()[4]}) {
    for (const bool is_signed : {false, true}) {
      c.w_signed = is_signed;
      c.w_zero = 3;
      EXPECT_EQ(linear(c, 1), linear(c, 0));
      c.w_zero = 0;
      const std::vector<int> packed = linear(c, 1);
      c.is_packed = false;
      EXPECT_EQ(linear(c, 1), packed);
      c.is_packed = true;
    }
  }
}

// Two filters of `channels` channels, all weights `weight` but the first and the last: whether they
// are taken, and what becomes of pixels of 0.
struct LargeFilters {
  LargeFilters(int64_t channels, int8_t weight, int8_t first, int8_t last) {
    std::vector<int8_t> w(static_cast<size_t>(2 * channels * 9), weight);
    w.front() = first;
    w[w.size() / 2 - 1] = last;
    PackRequest request;
    const std::vector<int64_t> dims = {2, channels, 3, 3};
    EXPECT_TRUE(winograd_bytes_request({dims.data(), dims.size()}, &request));
    std::vector<uint8_t> blob(request.bytes);
    const Tensor source = make_tensor<int8_t>({2, channels, 3, 3}, w);
    EXPECT_TRUE(request.fill(request, request.context, source, blob.data()).is_ok());
    fits = winograd_sums_fit(channels, 2, blob.data());
    for (const int winograd : {0, 1}) {
      OpTester t("ConvIntegerToFloat", 1, "folio");
      t.attr("channels_last", 1).attr("winograd", winograd);
      const auto count = static_cast<size_t>(12 * channels);
      t.input<uint8_t>({1, 4, 3, channels}, std::vector<uint8_t>(count));
      t.constant<int8_t>({2, channels, 3, 3}, w);
      t.input<uint8_t>({}, {255}).input<int8_t>({}, {0}).input<float>({}, {1});
      t.outputs(1).run();
      sums[winograd] = t.output_values<float>(0);
    }
  }

  bool fits;
  std::vector<float> sums[2];
};

// 262143 is the largest sum of magnitudes, 65 * 4031 + 128.
TEST(WinogradBytesConv, FiltersWhoseSumsMayNotFitAreTakenDirectly) {
  EXPECT_TRUE(LargeFilters(224, -128, -128, -128).fits);
  EXPECT_FALSE(LargeFilters(240, -128, -128, -128).fits);
  for (const int8_t first : {-64, -65, -66}) {
    const LargeFilters filters(448, -65, first, -128);
    EXPECT_EQ(filters.fits, first >= -65) << int{first};
    EXPECT_EQ(filters.sums[1], filters.sums[0]) << int{first};
  }
}

ConvAttrs attrs_of(int64_t group, int64_t stride, int64_t dilation) {
  ConvAttrs attrs;
  attrs.group = group;
  const std::vector<int64_t> strides = {stride, stride};
  const std::vector<int64_t> dilations = {dilation, dilation};
  attrs.window.strides = AxisNumbers({strides.data(), strides.size()});
  attrs.window.dilations = AxisNumbers({dilations.data(), dilations.size()});
  return attrs;
}

bool fits(const std::vector<int64_t>& w, const ConvAttrs& attrs) {
  return fits_winograd_bytes({w.data(), w.size()}, attrs);
}

TEST(WinogradBytesConv, FitsSquaresOf3WithStride1OfWholePanelsOfChannels) {
  const ConvAttrs plain = attrs_of(1, 1, 1);
  EXPECT_TRUE(fits({5, 16, 3, 3}, plain));
  EXPECT_TRUE(fits({64, 224, 3, 3}, plain));
  EXPECT_TRUE(fits({64, 512, 3, 3}, plain));
  EXPECT_FALSE(fits({64, 20, 3, 3}, plain));
  EXPECT_FALSE(fits({64, 64, 3, 1}, plain));
  EXPECT_FALSE(fits({64, 64, 5, 5}, plain));
  EXPECT_FALSE(fits({64, 64, 3}, plain));
  EXPECT_FALSE(fits({64, 64, 3, 3, 3}, plain));
  EXPECT_FALSE(fits({64, 64, 3, 3}, attrs_of(2, 1, 1)));
  EXPECT_FALSE(fits({64, 64, 3, 3}, attrs_of(1, 2, 1)));
  EXPECT_TRUE(fits({64, 64, 3, 3}, attrs_of(1, 1, 2)));
}

// docs/layouts.md: U of filters whose taps are all 1, but for one of 2 filters of 16 channels.
TEST(WinogradBytesConv, WeightsAreAsTheLayoutSays) {
  const std::vector<int64_t> dims = {17, 16, 3, 3};
  std::vector<int8_t> w(17 * 16 * 9, 0);
  const int8_t g[9] = {1, -2, 3, -4, 5, -6, 7, -8, 127};
  const size_t filter = 16;
  const size_t channel = 5;
  std::copy(g, g + 9, w.begin() + static_cast<ptrdiff_t>((filter * 16 + channel) * 9));
  PackRequest request;
  ASSERT_TRUE(winograd_bytes_request({dims.data(), dims.size()}, &request));
  ASSERT_EQ(request.bytes, 36 * 16 * 32 * 2 + 2 * 32 * 4U);
  std::vector<uint8_t> blob(request.bytes, 0xEE);
  const Tensor source = make_tensor<int8_t>({17, 16, 3, 3}, w);
  ASSERT_TRUE(request.fill(request, request.context, source, blob.data()).is_ok());
  const int kFilter[6][3] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4},
                             {1, 2, 4}, {1, -2, 4},   {0, 0, 6}};
  const auto* words = reinterpret_cast<const int16_t*>(blob.data());
  for (size_t at = 0; at < 36 * 16 * 32; ++at) {
    const size_t e = at / (16 * 32);
    const size_t rest = at % (16 * 32);
    const size_t of = rest / (16 * 16) * 16 + rest % 32 / 2;
    const size_t c = rest % (16 * 16) / 32 * 2 + rest % 2;
    int u = 0;
    for (size_t t = 0; t < 9; ++t) u += kFilter[e / 6][t / 3] * kFilter[e % 6][t % 3] * g[t];
    EXPECT_EQ(words[at], of == filter && c == channel ? u : 0) << at;
  }
  const auto* sums = reinterpret_cast<const int32_t*>(words + 36 * 16 * 32);
  for (size_t j = 0; j < 32; ++j) {
    EXPECT_EQ(sums[j], j == filter ? 123 : 0);
    EXPECT_EQ(sums[32 + j], j == filter ? 163 : 0);
  }
}

}  // namespace
}  // namespace folio
