// Tensors of .onnx files: every encoding, where their bytes end up, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/formats/onnx_case.h"

namespace folio {
namespace {

using F = TensorFields;

constexpr auto kBad = Code::kInvalidGraph;

// Loads `tensor` and compares it with the same values as raw_data, byte for byte.
void expect_equal_raw(const PbWriter& tensor, DType dtype, const std::vector<int64_t>& dims,
                      const std::string& raw) {
  SCOPED_TRACE(std::string(dtype_name(dtype)));
  const InitializerDef typed = load_tensor(tensor);
  const InitializerDef reference = load_tensor(raw_tensor("w", dtype, dims, raw));
  EXPECT_EQ(typed.tensor.dtype(), dtype);
  EXPECT_EQ(typed.tensor.shape(), reference.tensor.shape());
  EXPECT_EQ(tensor_bytes(typed.tensor), raw);
  EXPECT_EQ(tensor_bytes(reference.tensor), raw);
}

// `values` in a varint field, packed and then one key per value.
template <typename T>
void expect_varints_equal_raw(DType dtype, uint32_t field, const std::vector<T>& values,
                              const std::vector<int64_t>& dims, const std::string& raw) {
  PbWriter packed = tensor_header("w", dtype, dims);
  expect_equal_raw(packed.packed_varints(field, values), dtype, dims, raw);
  PbWriter unpacked = tensor_header("w", dtype, dims);
  for (const T value : values) unpacked.varint(field, static_cast<int64_t>(value));
  expect_equal_raw(unpacked, dtype, dims, raw);
  PbWriter mixed = tensor_header("w", dtype, dims);
  mixed.varint(field, static_cast<int64_t>(values[0]));
  mixed.packed_varints(field, std::vector<T>(values.begin() + 1, values.end()));
  expect_equal_raw(mixed, dtype, dims, raw);
}

TEST(OnnxTensor, Int32DataOfEveryTypeEqualsRaw) {
  const auto check = [](DType dtype, const std::vector<int32_t>& values, const std::string& raw) {
    const std::vector<int64_t> dims = {static_cast<int64_t>(values.size())};
    expect_varints_equal_raw(dtype, F::kInt32Data, values, dims, raw);
  };
  const std::vector<int32_t> wide = {0, -1, 2147483647, INT32_MIN};
  check(DType::kInt32, wide, raw_bytes(wide));
  check(DType::kInt8, {0, -1, 127, -128}, raw_bytes<int8_t>({0, -1, 127, -128}));
  check(DType::kUint8, {0, 200, 255}, raw_bytes<uint8_t>({0, 200, 255}));
  check(DType::kInt16, {0, -2, 32767}, raw_bytes<int16_t>({0, -2, 32767}));
  check(DType::kUint16, {0, 65535}, raw_bytes<uint16_t>({0, 65535}));
  check(DType::kBool, {0, 1, 1}, raw_bytes<uint8_t>({0, 1, 1}));
  check(DType::kFloat16, {0x3C00, 0xFC00}, raw_bytes<uint16_t>({0x3C00, 0xFC00}));
  check(DType::kBfloat16, {0x3F80, 0xFF80}, raw_bytes<uint16_t>({0x3F80, 0xFF80}));
  for (const DType dtype : {DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2,
                            DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0}) {
    check(dtype, {0, 0x38, 0xFF}, raw_bytes<uint8_t>({0, 0x38, 0xFF}));
  }
}

TEST(OnnxTensor, SubByteTypesTakeOneByteOfPackedElementsPerInt32Entry) {
  for (const DType dtype : {DType::kInt4, DType::kUint4, DType::kFloat4E2M1}) {
    expect_varints_equal_raw<int32_t>(dtype, F::kInt32Data, {0x21, 0x43, 0x0F}, {5},
                                      "\x21\x43\x0F");
  }
  for (const DType dtype : {DType::kInt2, DType::kUint2}) {
    expect_varints_equal_raw<int32_t>(dtype, F::kInt32Data, {0xE4, 0x01}, {5}, "\xE4\x01");
  }
}

TEST(OnnxTensor, BoolEntriesOtherThanZeroAreTrue) {
  PbWriter tensor = tensor_header("w", DType::kBool, {3});
  tensor.packed_varints<int64_t>(F::kInt32Data, {256, 0, -1});
  EXPECT_EQ(tensor_bytes(load_tensor(tensor).tensor), std::string("\1\0\1", 3));
}

TEST(OnnxTensor, Int64DataAndUint64DataEqualRaw) {
  const std::vector<int64_t> s64 = {0, -1, INT64_MIN, INT64_MAX};
  expect_varints_equal_raw(DType::kInt64, F::kInt64Data, s64, {2, 2}, raw_bytes(s64));
  const std::vector<uint64_t> u64 = {0, UINT64_MAX, 1};
  expect_varints_equal_raw(DType::kUint64, F::kUint64Data, u64, {3}, raw_bytes(u64));
  expect_varints_equal_raw<uint64_t>(DType::kUint32, F::kUint64Data, {0, 4294967295U, 7}, {3},
                                     raw_bytes<uint32_t>({0, 4294967295U, 7}));
}

TEST(OnnxTensor, FloatDataAndDoubleDataEqualRaw) {
  const std::vector<float> f32 = {1.5F, -0.0F, 3e38F, 1e-45F};
  const std::vector<double> f64 = {1.5, -0.0, 1e308, 5e-324};
  expect_equal_raw(tensor_header("w", DType::kFloat, {4}).packed_fixed(F::kFloatData, f32),
                   DType::kFloat, {4}, raw_bytes(f32));
  expect_equal_raw(tensor_header("w", DType::kComplex64, {2}).packed_fixed(F::kFloatData, f32),
                   DType::kComplex64, {2}, raw_bytes(f32));
  expect_equal_raw(tensor_header("w", DType::kDouble, {4}).packed_fixed(F::kDoubleData, f64),
                   DType::kDouble, {4}, raw_bytes(f64));
  expect_equal_raw(tensor_header("w", DType::kComplex128, {2}).packed_fixed(F::kDoubleData, f64),
                   DType::kComplex128, {2}, raw_bytes(f64));
  PbWriter unpacked32 = tensor_header("w", DType::kFloat, {4});
  PbWriter unpacked64 = tensor_header("w", DType::kDouble, {4});
  for (const float value : f32) unpacked32.float32(F::kFloatData, value);
  for (const double value : f64) unpacked64.float64(F::kDoubleData, value);
  expect_equal_raw(unpacked32, DType::kFloat, {4}, raw_bytes(f32));
  expect_equal_raw(unpacked64, DType::kDouble, {4}, raw_bytes(f64));
}

TEST(OnnxTensor, StringDataKeepsAnyBytes) {
  PbWriter tensor = tensor_header("w", DType::kString, {2, 2});
  const std::string odd("a\0\xFF", 3);
  for (const std::string& text : {std::string("one"), std::string(), odd, std::string(99, 'x')}) {
    tensor.bytes(F::kStringData, text);
  }
  const Tensor loaded = load_tensor(tensor).tensor;
  const Span<const std::string> strings = loaded.span<std::string>();
  ASSERT_EQ(strings.size(), 4U);
  EXPECT_EQ(strings[0], "one");
  EXPECT_EQ(strings[1], "");
  EXPECT_EQ(strings[2], odd);
  EXPECT_EQ(strings[3], std::string(99, 'x'));
}

TEST(OnnxTensor, ScalarsAndEmptyTensorsLoad) {
  const InitializerDef scalar = load_tensor(raw_tensor("w", DType::kFloat, {}, "\1\2\3\4"));
  EXPECT_EQ(scalar.tensor.rank(), 0);
  EXPECT_EQ(tensor_bytes(scalar.tensor), "\1\2\3\4");
  const InitializerDef empty = load_tensor(tensor_header("w", DType::kInt64, {3, 0}));
  EXPECT_EQ(empty.tensor.shape(), Shape({3, 0}));
  EXPECT_EQ(empty.tensor.count(), 0);
}

TEST(OnnxTensor, UnpackedDimsEqualPackedOnes) {
  PbWriter tensor;
  tensor.varint(F::kDims, 2).varint(F::kDims, 3).varint(F::kDataType, 1);
  tensor.bytes(F::kName, "w").bytes(F::kRawData, std::string(24, 'x'));
  EXPECT_EQ(load_tensor(tensor).tensor.shape(), Shape({2, 3}));
}

// Loads one tensor of `count` floats so that its payload stands at an odd address.
void expect_view(const PbWriter& tensor, const std::vector<float>& values) {
  const std::string bytes = model_of(graph_of_tensor(tensor));
  const auto source = make_ref<TestSource>(bytes, "m.onnx");
  Result<ModelDef> model = load_model_def(source, LoadOptions{});
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const InitializerDef& init = model.value().graph.initializers.at(0);
  EXPECT_TRUE(source->contains(init.tensor.raw()));
  EXPECT_EQ(init.tensor.buffer()->kind(), Buffer::Kind::kConstant);
  EXPECT_EQ(init.source.get(), source.get());
  EXPECT_EQ(source->bytes().data() + init.offset, init.tensor.raw());
  EXPECT_EQ(tensor_bytes(init.tensor), raw_bytes(values));
}

TEST(OnnxTensor, LargePayloadsAreViewsOfTheFileThoughUnaligned) {
  std::vector<float> values(kSmallTensorBytes / sizeof(float));
  std::iota(values.begin(), values.end(), 0.5F);
  const auto count = static_cast<int64_t>(values.size());
  // Names of four lengths put the payload at every residue of 4.
  for (const std::string name : {"w", "ww", "www", "wwww"}) {
    expect_view(raw_tensor(name, DType::kFloat, {count}, raw_bytes(values)), values);
    expect_view(tensor_header(name, DType::kFloat, {count}).packed_fixed(F::kFloatData, values),
                values);
  }
}

TEST(OnnxTensor, ViewsKeepTheSourceAliveAfterTheModelIsGone) {
  const std::string raw(kSmallTensorBytes, 'p');
  Tensor tensor;
  const auto size = static_cast<int64_t>(raw.size());
  auto source = make_ref<TestSource>(
      model_of(graph_of_tensor(raw_tensor("w", DType::kUint8, {size}, raw))), "m.onnx");
  {
    Result<ModelDef> model = load_model_def(source, LoadOptions{});
    ASSERT_TRUE(model.is_ok()) << model.status().message();
    tensor = model.value().graph.initializers.at(0).tensor;
  }
  EXPECT_FALSE(source->is_unique());
  source = nullptr;
  EXPECT_EQ(tensor_bytes(tensor), raw);  // a sanitizer sees a use after free if nobody kept it
}

TEST(OnnxTensor, SmallPayloadsAreAlignedCopies) {
  const std::string raw(kSmallTensorBytes - 1, 's');
  const InitializerDef init =
      load_tensor(raw_tensor("w", DType::kUint8, {static_cast<int64_t>(raw.size())}, raw));
  EXPECT_EQ(init.tensor.buffer()->kind(), Buffer::Kind::kHeap);
  EXPECT_FALSE(init.source);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(init.tensor.raw()) % 64, 0U);
  EXPECT_EQ(tensor_bytes(init.tensor), raw);
}

TEST(OnnxTensor, SizeMismatchNamesTensorDimsAndBothSizes) {
  expect_tensor_error(
      raw_tensor("weight", DType::kFloat, {2, 3}, std::string(20, 'x')), kBad,
      {"graph ''", "tensor 'weight'", "float[2,3]", "takes 24 bytes", "raw_data holds 20"});
  expect_tensor_error(raw_tensor("w", DType::kInt4, {3}, "\1\2\3"), kBad,
                      {"int4[3]", "takes 2 bytes", "holds 3"});
  expect_tensor_error(raw_tensor("w", DType::kInt4, {3}, "\1"), kBad, {"takes 2 bytes", "holds 1"});
  expect_tensor_error(tensor_header("w", DType::kFloat, {2}).float32(F::kFloatData, 1), kBad,
                      {"takes 8 bytes", "float_data holds 4"});
  expect_tensor_error(tensor_header("w", DType::kInt8, {2}).varint(F::kInt32Data, 1), kBad,
                      {"takes 2 bytes", "int32_data holds 1"});
  expect_tensor_error(tensor_header("w", DType::kString, {2}).bytes(F::kStringData, "a"), kBad,
                      {"takes 2 strings", "string_data holds 1"});
  expect_tensor_error(tensor_header("w", DType::kFloat, {2}), kBad, {"takes 8 bytes", "holds 0"});
  // The wrong typed field does not count.
  expect_tensor_error(tensor_header("w", DType::kFloat, {1}).varint(F::kInt32Data, 1), kBad,
                      {"float_data holds 0"});
}

TEST(OnnxTensor, HostileDimsAreRefused) {
  const int64_t big = int64_t{1} << 32;
  expect_tensor_error(raw_tensor("w", DType::kFloat, {-1}, ""), kBad, {"[-1]", "negative"});
  expect_tensor_error(raw_tensor("w", DType::kFloat, {big, big}, ""), kBad, {"overflow"});
  expect_tensor_error(raw_tensor("w", DType::kFloat, {0, big, big}, ""), kBad, {"overflow"});
  expect_tensor_error(raw_tensor("w", DType::kDouble, {INT64_MAX}, ""), kBad, {"64 bits"});
  expect_tensor_error(raw_tensor("w", DType::kFloat, std::vector<int64_t>(17, 1), "1234"), kBad,
                      {"17 or more values", "at most 16"});
  EXPECT_EQ(load_tensor(raw_tensor("w", DType::kFloat, std::vector<int64_t>(16, 1), "1234"))
                .tensor.rank(),
            16);
  // A claim of many strings must not allocate them.
  expect_tensor_error(tensor_header("w", DType::kString, {INT64_MAX / 2}), kBad, {"holds 0"});
}

TEST(OnnxTensor, UnknownElementTypesAreRefused) {
  expect_tensor_error(tensor_header("w", 0, {0}), kBad, {"tensor 'w'", "element type 0", "UNDEF"});
  for (const int64_t type : {int64_t{27}, int64_t{-1}, (int64_t{1} << 32) + 1}) {
    expect_tensor_error(tensor_header("w", type, {0}), kBad,
                        {"element type " + std::to_string(type)});
  }
}

TEST(OnnxTensor, SegmentsAndContradictingPayloadsAreRefused) {
  PbWriter segment = raw_tensor("w", DType::kUint8, {1}, "1");
  segment.message(F::kSegment, PbWriter().varint(1, 0).varint(2, 1));
  expect_tensor_error(segment, Code::kNotImplemented, {"tensor 'w'", "segments"});
  PbWriter both = raw_tensor("w", DType::kFloat, {1}, "1234");
  expect_tensor_error(both.float32(F::kFloatData, 1), kBad, {"both raw_data and float_data"});
  expect_tensor_error(raw_tensor("w", DType::kString, {1}, "1"), kBad, {"strings", "raw_data"});
  expect_tensor_error(raw_tensor("w", DType::kUint8, {1}, "1").varint(F::kDataLocation, 2), kBad,
                      {"data_location 2"});
}

TEST(OnnxTensor, AnEmptyRawDataGivesWayToATypedField) {
  PbWriter tensor = raw_tensor("w", DType::kFloat, {1}, "").float32(F::kFloatData, 2.0F);
  EXPECT_EQ(load_tensor(tensor).tensor.data<float>()[0], 2.0F);
}

TEST(OnnxTensor, TheLastOfRepeatedScalarFieldsCounts) {
  PbWriter tensor = raw_tensor("old", DType::kFloat, {2}, "123456");
  tensor.bytes(F::kName, "new").varint(F::kDataType, 2).bytes(F::kRawData, "ab");
  const InitializerDef init = load_tensor(tensor);
  EXPECT_EQ(init.name, "new");
  EXPECT_EQ(tensor_bytes(init.tensor), "ab");
}

TEST(OnnxTensor, InitializersNeedNames) {
  expect_tensor_error(raw_tensor("", DType::kUint8, {1}, "1"), kBad, {"initializer 0", "no name"});
}

// External data.

TEST(OnnxExternal, LargeTensorsAreViewsOfOneSharedFile) {
  const std::string a(kSmallTensorBytes, 'a');
  const std::string b(kSmallTensorBytes, 'b');
  const auto size = std::to_string(kSmallTensorBytes);
  const auto count = static_cast<int64_t>(kSmallTensorBytes);
  PbWriter graph;
  graph.message(GraphFields::kInitializer,
                external_tensor("a", DType::kUint8, {count},
                                {{"location", "w.bin"}, {"offset", "3"}, {"length", size}}));
  graph.message(GraphFields::kInitializer,
                external_tensor("b", DType::kUint8, {count},
                                {{"location", "w.bin"}, {"offset", std::to_string(3 + count)}}));
  const auto source = make_ref<TestSource>(model_of(graph), "m.onnx",
                                           TestSource::Siblings{{"w.bin", "..." + a + b}});
  Result<ModelDef> model = load_model_def(source, LoadOptions{});
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const auto& inits = model.value().graph.initializers;
  EXPECT_EQ(source->opened(), 1);
  EXPECT_EQ(tensor_bytes(inits[0].tensor), a);
  EXPECT_EQ(tensor_bytes(inits[1].tensor), b);
  EXPECT_EQ(inits[0].source.get(), inits[1].source.get());
  EXPECT_EQ(inits[0].source->name(), "w.bin");
  EXPECT_EQ(inits[1].offset, 3U + static_cast<uint64_t>(count));
  EXPECT_EQ(inits[1].tensor.raw(), inits[1].source->bytes().data() + inits[1].offset);
}

TEST(OnnxExternal, SmallTensorsAreCopiedAndUnknownKeysIgnored) {
  const PbWriter tensor = external_tensor("w", DType::kInt16, {2},
                                          {{"location", "w.bin"},
                                           {"length", "4"},
                                           {"checksum", "da39a3ee"},
                                           {"prepacked_0", "MatMul+1|0;4;0"},
                                           {"", ""}});
  const InitializerDef init = load_tensor(tensor, {{"w.bin", "abcdef"}});
  EXPECT_EQ(tensor_bytes(init.tensor), "abcd");
  EXPECT_FALSE(init.source);
}

TEST(OnnxExternal, FilesThatAreTooShortNameBothSizes) {
  expect_tensor_error(
      external_tensor("w", DType::kFloat, {4}, {{"location", "w.bin"}, {"offset", "8"}}), kBad,
      {"tensor 'w'", "'w.bin' is too short", "16 bytes at offset 8", "the file has 20 bytes"},
      {{"w.bin", std::string(20, 'x')}});
  const auto wraps = std::to_string(UINT64_MAX - 3);
  expect_tensor_error(
      external_tensor("w", DType::kFloat, {4}, {{"location", "w.bin"}, {"offset", wraps}}), kBad,
      {"too short", wraps}, {{"w.bin", std::string(20, 'x')}});
}

TEST(OnnxExternal, LengthMustBeWhatTheTensorTakes) {
  for (const std::string length : {"12", "20"}) {
    expect_tensor_error(
        external_tensor("w", DType::kFloat, {4}, {{"location", "w.bin"}, {"length", length}}), kBad,
        {"length " + length, "expected 16"}, {{"w.bin", std::string(20, 'x')}});
  }
}

TEST(OnnxExternal, NumbersMustBeDecimal) {
  for (const std::string text : {"", "-1", "0x10", " 1", "1 ", "18446744073709551616", "\xFF"}) {
    expect_tensor_error(
        external_tensor("w", DType::kUint8, {1}, {{"location", "w.bin"}, {"offset", text}}), kBad,
        {"offset '", "expected a decimal number"}, {{"w.bin", "x"}});
  }
}

TEST(OnnxExternal, BadLocationsAreRefused) {
  const auto located = [](const std::string& location) {
    return external_tensor("w", DType::kUint8, {1}, {{"location", location}});
  };
  expect_tensor_error(external_tensor("w", DType::kUint8, {1}, {}), kBad, {"no location"});
  expect_tensor_error(located(""), kBad, {"no location"});
  const std::string nul("w.bin\0x", 7);
  expect_tensor_error(located(nul), kBad, {"NUL"}, {{nul, "x"}});
  expect_tensor_error(located("w\xFF"), kBad, {"UTF-8"}, {{"w\xFF", "x"}});
  expect_tensor_error(located("gone.bin"), Code::kNoSuchFile, {"tensor 'w'", "gone.bin"});
}

TEST(OnnxExternal, AddressesOfOnnxRuntimeAreNoLocations) {
  const auto source_bytes = std::to_string(reinterpret_cast<uintptr_t>("secret"));
  for (const std::string tag : {"*/_ORT_MEM_ADDR_/*", "*/_ORT_NATIVE_ENDIAN_MEM_ADDR_/*"}) {
    const PbWriter tensor = external_tensor(
        "w", DType::kUint8, {6}, {{"location", tag}, {"offset", source_bytes}, {"length", "6"}});
    expect_tensor_error(tensor, kBad, {tag, "address in memory"}, {{tag, "secret"}});
  }
}

TEST(OnnxExternal, StringsAreRefused) {
  expect_tensor_error(external_tensor("w", DType::kString, {1}, {{"location", "w.bin"}}), kBad,
                      {"strings cannot be external"}, {{"w.bin", "x"}});
}

// Sparse tensors.

PbWriter sparse_of(const PbWriter& values, const PbWriter& indices,
                   const std::vector<int64_t>& dims) {
  PbWriter sparse;
  sparse.message(SparseTensorFields::kValues, values);
  sparse.message(SparseTensorFields::kIndices, indices);
  return sparse.packed_varints(SparseTensorFields::kDims, dims);
}

PbWriter int64_tensor(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return tensor_header("", DType::kInt64, dims).packed_varints(F::kInt64Data, values);
}

PbWriter graph_of_sparse(const PbWriter& sparse) {
  return PbWriter().message(GraphFields::kSparseInitializer, sparse);
}

TEST(OnnxSparse, LinearAndCoordinateIndicesGiveTheSameDenseTensor) {
  const PbWriter values = raw_tensor("s", DType::kInt16, {3}, raw_bytes<int16_t>({7, 8, 9}));
  const std::string dense = raw_bytes<int16_t>({0, 7, 0, 0, 8, 9});
  for (const PbWriter& indices :
       {int64_tensor({3}, {1, 4, 5}), int64_tensor({3, 2}, {0, 1, 1, 1, 1, 2})}) {
    const ModelDef model = load_graph(graph_of_sparse(sparse_of(values, indices, {2, 3})));
    ASSERT_EQ(model.graph.initializers.size(), 1U);
    const InitializerDef& init = model.graph.initializers[0];
    EXPECT_EQ(init.name, "s");
    EXPECT_EQ(init.tensor.shape(), Shape({2, 3}));
    EXPECT_EQ(tensor_bytes(init.tensor), dense);
    EXPECT_FALSE(init.source);
  }
}

TEST(OnnxSparse, SubByteAndStringValuesExpand) {
  const PbWriter nibbles = raw_tensor("s", DType::kUint4, {3}, "\x21\x03");
  const ModelDef a =
      load_graph(graph_of_sparse(sparse_of(nibbles, int64_tensor({3}, {0, 3, 4}), {5})));
  EXPECT_EQ(tensor_bytes(a.graph.initializers.at(0).tensor), std::string("\x01\x20\x03", 3));
  PbWriter texts = tensor_header("s", DType::kString, {1});
  texts.bytes(F::kStringData, "text");
  const ModelDef b = load_graph(graph_of_sparse(sparse_of(texts, int64_tensor({1}, {1}), {2})));
  const Tensor& strings = b.graph.initializers.at(0).tensor;
  EXPECT_EQ(strings.data<std::string>()[0], "");
  EXPECT_EQ(strings.data<std::string>()[1], "text");
}

TEST(OnnxSparse, WrongIndicesAreRefused) {
  const PbWriter values = raw_tensor("s", DType::kUint8, {2}, "ab");
  const auto check = [&](const PbWriter& indices, const std::string& part) {
    expect_graph_error(graph_of_sparse(sparse_of(values, indices, {2, 3})), kBad,
                       {"sparse tensor 's'", part});
  };
  check(int64_tensor({2}, {0, 6}), "index 6");
  check(int64_tensor({2}, {-1, 0}), "index -1");
  check(int64_tensor({2}, {3, 3}), "not ascending");
  check(int64_tensor({2}, {3, 2}), "not ascending");
  check(int64_tensor({2, 2}, {0, 0, 0, 3}), "index 3 of stored value 1 is outside axis 1");
  check(int64_tensor({2, 2}, {0, 0, -1, 0}), "index -1");
  check(int64_tensor({2, 3}, {0, 0, 0, 0, 0, 1}), "expected int64[2]");
  check(int64_tensor({1}, {0}), "expected int64[2]");
  check(raw_tensor("", DType::kFloat, {2}, std::string(8, '\0')), "indices are float");
}

TEST(OnnxSparse, DenseSizeIsLimitedPerModel) {
  const PbWriter values = raw_tensor("s", DType::kFloat, {1}, "1234");
  const PbWriter indices = int64_tensor({1}, {0});
  expect_graph_error(graph_of_sparse(sparse_of(values, indices, {1 << 20, 1 << 20})), kBad,
                     {"sparse tensor 's'", "1099511627776 elements", "1073741824 bytes"});
  expect_graph_error(graph_of_sparse(sparse_of(values, indices, {INT64_MAX, 2})), kBad,
                     {"overflow"});
  PbWriter graph;
  for (int i = 0; i < 3; ++i) {
    graph.message(GraphFields::kSparseInitializer, sparse_of(values, indices, {100}));
  }
  LoadOptions options;
  options.max_dense_bytes = 1200;
  EXPECT_TRUE(load_bytes(model_of(graph), {}, options).is_ok());
  options.max_dense_bytes = 1199;
  EXPECT_FALSE(load_bytes(model_of(graph), {}, options).is_ok());
}

TEST(OnnxSparse, MissingAndRepeatedPartsAreRefused) {
  const PbWriter values = raw_tensor("s", DType::kUint8, {1}, "a");
  PbWriter lonely;
  expect_graph_error(graph_of_sparse(lonely.message(SparseTensorFields::kValues, values)), kBad,
                     {"needs values and indices"});
  expect_graph_error(graph_of_sparse(lonely.message(SparseTensorFields::kValues, values)), kBad,
                     {"values twice"});
}

}  // namespace
}  // namespace folio
