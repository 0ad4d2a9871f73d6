// Unpack: what operators pack comes back bit by bit, and attributes that do not say where each
// element stands are refused.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/kernels/select.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_integer_matmul.h"
#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_unpack.h"
#include "core/os/cpu_features.h"
#include "core/prepack/content_id.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

const FolioKernels& kernels() { return kernels_for(cpu_bits()); }

// Every bit pattern may stand in a weight, those of NaNs too.
Tensor weight_of(DType dtype, const Shape& shape) {
  Tensor out = allocate_tensor(dtype, shape).take();
  uint32_t state = 12345;
  for (size_t i = 0; i < out.bytes(); ++i) {
    state = state * 1664525 + 1013904223;
    out.raw_mut()[i] = static_cast<uint8_t>(state >> 24);
  }
  return out;
}

PackRequest matrix_request(int64_t k, int64_t n, bool trans) {
  PackRequest request;
  request.layout = Layout::kF32P16;
  request.version = kF32P16Version;
  request.k = k;
  request.n = n;
  request.row_stride = trans ? 1 : n;
  request.col_stride = trans ? k : 1;
  EXPECT_TRUE(f32p16_bytes(k, n, &request.bytes));
  request.context = &kernels();
  request.fill = [](const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
    static_cast<const FolioKernels*>(context)->pack_f32p16(
        r.k, r.n, source.raw(), r.row_stride, r.col_stride, reinterpret_cast<float*>(blob));
    return Status::ok();
  };
  return request;
}

PackRequest half_request(DType dtype, int64_t k, int64_t n, bool trans) {
  PackRequest request = matrix_request(k, n, trans);
  set_panels_of(dtype, &request);
  EXPECT_TRUE(panels_bytes(dtype, k, n, &request.bytes));
  request.fill = [](const PackRequest& r, const void*, const Tensor& source, uint8_t* blob) {
    pack_half_panels({source.dtype(), r.k, r.n, r.row_stride, r.col_stride}, source.raw(), blob);
    return Status::ok();
  };
  return request;
}

PackRequest bytes_request(PackRequest request) {
  EXPECT_TRUE(s8p16k4_bytes(request.k, request.n, &request.bytes));
  request.context = &kernels();
  request.fill = [](const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
    fill_panels(*static_cast<const FolioKernels*>(context), r, source.raw(), source.dtype(), blob);
    return Status::ok();
  };
  return request;
}

// As convolutions of bytes ask for it.
PackRequest byte_filters(int64_t channels, int64_t c_in, int64_t taps) {
  PackRequest request = s8p16k4_request(c_in * taps, channels, taps, c_in * taps);
  request.taps = taps;
  return bytes_request(request);
}

OpTester tester(const PackedWeight& weight) {
  OpTester t("Unpack", kUnpackVersion, std::string(kUnpackDomain));
  for (AttributeDef& attribute : packed_weight_attributes(weight)) t.attr(std::move(attribute));
  return t;
}

void expect_back(DType dtype, const Shape& shape, const PackRequest& request) {
  const std::string what = cat(layout_name(request.layout), " ", shape.to_string(), " k ",
                               request.k, " n ", request.n, " groups ", request.groups);
  SCOPED_TRACE(what);
  const Tensor source = weight_of(dtype, shape);
  const Ref<Buffer> blob = allocate_buffer(request.bytes).take();
  ASSERT_TRUE(request.fill(request, request.context, source, blob->data()).is_ok());
  PackedWeight weight{dtype, shape, request, checksum_bytes({blob->data(), request.bytes})};
  ASSERT_TRUE(check_packed_weight(weight).is_ok()) << check_packed_weight(weight).message();
  const Attributes attributes(packed_weight_attributes(weight));
  const auto parsed = parse_packed_weight(attributes);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  EXPECT_TRUE(is_same_form(parsed.value().form, request));
  EXPECT_EQ(parsed.value().checksum, weight.checksum);

  InlineParallel parallel;
  Tensor back = allocate_tensor(dtype, shape).take();
  std::memset(back.raw_mut(), 0x5A, back.bytes());
  for (const KernelLevel& level : kernel_levels()) {
    if (!level_usable(level, cpu_bits())) continue;
    unpack_weight(kernels_for(level.needs), parallel, parsed.value(), blob->data(), back.raw_mut());
    EXPECT_EQ(std::memcmp(back.raw(), source.raw(), back.bytes()), 0) << level.name;
  }
}

TEST(Unpack, GivesEveryMatrixBack) {
  for (const int64_t k : {1, 3, 16, 37}) {
    for (const int64_t n : {1, 15, 16, 17, 40}) {
      for (const bool trans : {false, true}) {
        const Shape shape = trans ? Shape{n, k} : Shape{k, n};
        expect_back(DType::kFloat, shape, matrix_request(k, n, trans));
        for (const DType half : {DType::kFloat16, DType::kBfloat16}) {
          expect_back(half, shape, half_request(half, k, n, trans));
        }
        const PackRequest bytes =
            bytes_request(s8p16k4_request(k, n, trans ? 1 : n, trans ? k : 1));
        expect_back(DType::kInt8, shape, bytes);
        expect_back(DType::kUint8, shape, bytes);
      }
    }
  }
}

TEST(Unpack, GivesFiltersBack) {
  struct Case {
    Shape w;
    int64_t group;
  };
  const Case cases[] = {{{5, 3, 3, 3}, 1},    {{17, 4, 1, 1}, 1},  {{32, 2, 3, 5}, 2},
                        {{30, 3, 2}, 3},      {{64, 1, 3, 3}, 64}, {{7, 1, 5}, 7},
                        {{18, 5, 2, 3, 2}, 1}};
  for (const Case& each : cases) {
    const auto request = nhwc_conv_request(kernels(), each.w.dims(), each.group);
    ASSERT_TRUE(request.is_ok());
    expect_back(DType::kFloat, each.w, request.value());
    for (const DType half : {DType::kFloat16, DType::kBfloat16}) {
      if (is_depthwise_conv(each.w.dims(), each.group)) continue;
      const auto of_halves =
          nhwc_conv_request(kernels(), each.w.dims(), each.group, /*is_planes=*/false, half);
      ASSERT_TRUE(of_halves.is_ok());
      const int64_t k = request.value().k;
      EXPECT_EQ(2 * of_halves.value().bytes * static_cast<uint64_t>(k),
                request.value().bytes * static_cast<uint64_t>(panel_rows(half, k)));
      expect_back(half, each.w, of_halves.value());
    }
  }
  for (const DType dtype : {DType::kInt8, DType::kUint8}) {
    expect_back(dtype, Shape{5, 3, 3, 3}, byte_filters(5, 3, 9));
    expect_back(dtype, Shape{32, 4, 1, 1}, byte_filters(32, 4, 1));
    expect_back(dtype, Shape{33, 1, 3, 3}, byte_filters(33, 1, 9));
    expect_back(dtype, Shape{17, 7, 5}, byte_filters(17, 7, 5));
  }
}

// What the panels hold, row by row or, of bfloat16, pairs of rows; padding is zero.
void expect_panels(DType dtype, int64_t k, int64_t n, bool trans) {
  const Shape shape = trans ? Shape{n, k} : Shape{k, n};
  const Tensor source = weight_of(dtype, shape);
  const PackRequest request = half_request(dtype, k, n, trans);
  std::vector<uint16_t> panels(request.bytes / 2, 0x5A5A);
  ASSERT_TRUE(
      request.fill(request, nullptr, source, reinterpret_cast<uint8_t*>(panels.data())).is_ok());
  const int64_t rows = panel_rows(dtype, k);
  for (int64_t j = 0; j < 32; ++j) {
    for (int64_t p = 0; p < rows; ++p) {
      uint16_t want = 0;
      if (j < n && p < k) {
        std::memcpy(&want, source.raw() + 2 * (trans ? j * k + p : p * n + j), 2);
      }
      const int64_t c = j % 16;
      const int64_t at = dtype == DType::kBfloat16 ? (p / 2 * 16 + c) * 2 + p % 2 : p * 16 + c;
      ASSERT_EQ(panels[static_cast<size_t>(j / 16 * rows * 16 + at)], want) << p << ' ' << j;
    }
  }
}

TEST(Unpack, PanelsOfHalvesStandInRowsOrInPairsOfRows) {
  for (const bool trans : {false, true}) {
    for (const int64_t k : {300, 301}) {
      expect_panels(DType::kFloat16, k, 21, trans);
      expect_panels(DType::kBfloat16, k, 21, trans);
    }
  }
}

TEST(Unpack, TakesABlobAtAnyAddress) {
  const PackRequest request = matrix_request(3, 17, false);
  const Tensor source = make_tensor<float>(Shape{3, 17}, std::vector<float>(51, 1.5F));
  const Ref<Buffer> aligned = allocate_buffer(request.bytes).take();
  ASSERT_TRUE(request.fill(request, request.context, source, aligned->data()).is_ok());
  const Ref<Buffer> moved = allocate_buffer(request.bytes + 1).take();
  std::memcpy(moved->data() + 1, aligned->data(), request.bytes);
  OpTester t = tester({DType::kFloat, source.shape(), request, 0});
  const Shape bytes{static_cast<int64_t>(request.bytes)};
  t.input_value(Value(Tensor(DType::kUint8, bytes, moved->data() + 1, moved)));
  t.expect<float>(0, {3, 17}, std::vector<float>(51, 1.5F));
  t.run();
}

// A good node of 3 x 17 floats, but for one attribute.
void expect_refused(const AttributeDef& other, const std::string& text) {
  const PackedWeight good{DType::kFloat, Shape{3, 17}, matrix_request(3, 17, false), 7};
  Attributes attributes(packed_weight_attributes(good));
  ASSERT_TRUE(parse_packed_weight(attributes).is_ok());
  attributes.set(other);
  const auto parsed = parse_packed_weight(attributes);
  ASSERT_FALSE(parsed.is_ok()) << other.name;
  EXPECT_EQ(parsed.status().code(), Code::kInvalidGraph);
  EXPECT_NE(parsed.status().message().find(text), std::string::npos) << parsed.status().message();
}

AttributeDef number(const char* name, int64_t value) {
  AttributeDef out;
  out.name = name;
  out.type = AttributeDef::Type::kInt;
  out.ints = {value};
  return out;
}

AttributeDef numbers(const char* name, std::vector<int64_t> values) {
  AttributeDef out = number(name, 0);
  out.type = AttributeDef::Type::kInts;
  out.ints = std::move(values);
  return out;
}

AttributeDef text(const char* name, const char* value) {
  AttributeDef out;
  out.name = name;
  out.type = AttributeDef::Type::kString;
  out.strings = {value};
  return out;
}

// Of 3 x 17 numbers in rows.
AttributeDef matrix_but(size_t at, int64_t value) {
  std::vector<int64_t> all = {3, 17, 17, 1, 1, 1};
  all[at] = value;
  return numbers("matrix", std::move(all));
}

enum MatrixAt : size_t { kK, kN, kRowStride, kColStride, kTaps, kGroups };

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TEST(Unpack, RefusesNumbersThatDoNotAgree) {
  for (const int64_t value : {int64_t{-1}, kLeast}) {
    for (const MatrixAt at : {kK, kN, kRowStride, kColStride, kTaps, kGroups}) {
      expect_refused(matrix_but(at, value), "expected a positive number");
    }
  }
  for (const MatrixAt at : {kK, kN, kTaps, kGroups}) {
    expect_refused(matrix_but(at, 0), "expected a positive number");
  }
  for (const MatrixAt at : {kK, kN}) {
    expect_refused(matrix_but(at, 4), "is no matrix of");
    expect_refused(matrix_but(at, kMost), "");
    expect_refused(matrix_but(at, int64_t{1} << 62), "");
  }
  for (const MatrixAt at : {kRowStride, kColStride}) {
    for (const int64_t value : {int64_t{0}, int64_t{3}, kMost}) {
      expect_refused(matrix_but(at, value), "do not reach each element once");
    }
  }
  for (const int64_t value : {int64_t{2}, int64_t{17}, kMost}) {
    expect_refused(matrix_but(kTaps, value), "taps");
    const bool divides = value == 17;  // but its rows would not be in groups
    expect_refused(matrix_but(kGroups, value), divides ? "do not reach" : "groups");
  }
  expect_refused(matrix_but(kTaps, 3), "do not reach each element once");
  expect_refused(numbers("matrix", {3, 17, 17, 1, 1}), "has 5 numbers, expected 6");
  expect_refused(number("matrix", 3), "'matrix'");
  expect_refused(number("version", 2), "version 2, this build knows 1");
  expect_refused(number("version", -1), "this build knows 1");
}

TEST(Unpack, RefusesTypesAndShapesThatDoNotAgree) {
  expect_refused(text("layout", "F32P32"), "F32P16, S8P16K4, F32TAPWISE, F16P16 and BF16P16");
  expect_refused(text("layout", "F16P16"), "of other elements");
  expect_refused(text("layout", "BF16P16"), "version 1, this build knows 2");
  expect_refused(text("layout", "RAW"), "this build knows");
  expect_refused(text("layout", "S8P16K4"), "of other elements");
  expect_refused(text("layout", "F32TAPWISE"), "do not reach each element once");
  expect_refused(number("dtype", 0), "no element type");
  expect_refused(number("dtype", kMost), "no element type");
  expect_refused(number("dtype", static_cast<int64_t>(DType::kInt8)), "of other elements");
  expect_refused(number("dtype", static_cast<int64_t>(DType::kString)), "of other elements");
  expect_refused(numbers("shape", {}), "is no matrix of");
  expect_refused(numbers("shape", {3, -17}), "the dim -17");
  expect_refused(numbers("shape", {0, 17}), "the dim 0");
  expect_refused(numbers("shape", {kMost, kMost}), "can be counted");
  expect_refused(numbers("shape", std::vector<int64_t>(17, 1)), "at most 16");
  expect_refused(numbers("shape", {3, 18}), "is no matrix of");
  expect_refused(number("shape", 51), "'shape'");
  expect_refused(number("layout", 1), "'layout'");
}

TEST(Unpack, NeedsAllAttributes) {
  const PackedWeight good{DType::kFloat, Shape{3, 17}, matrix_request(3, 17, false), 7};
  const std::vector<AttributeDef> all = packed_weight_attributes(good);
  for (size_t left_out = 0; left_out < all.size(); ++left_out) {
    std::vector<AttributeDef> some = all;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(left_out));
    const auto parsed = parse_packed_weight(Attributes(std::move(some)));
    ASSERT_FALSE(parsed.is_ok()) << all[left_out].name;
    EXPECT_NE(parsed.status().message().find(all[left_out].name), std::string::npos);
  }
}

TEST(Unpack, RefusesABlobOfAnotherSize) {
  OpTester t = tester({DType::kFloat, Shape{3, 17}, matrix_request(3, 17, false), 0});
  t.input<uint8_t>({380}, std::vector<uint8_t>(380));
  t.outputs(1).fails("has 380 bytes, expected 384");
}

}  // namespace
}  // namespace folio
