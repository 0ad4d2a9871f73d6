// Payloads of .ort files: dense, sparse, in place, copied.
#include "tests/formats/ort_case.h"

namespace folio {
namespace {

using namespace ort_case;

TEST(OrtTensors, UsesLargePayloadsInPlaceAndCopiesSmallOnes) {
  constexpr int64_t kSmall = static_cast<int64_t>(kSmallTensorBytes / sizeof(float)) - 1;
  for (const size_t alignment : {4, 32}) {  // what Debian's flatbuffers can write
    for (const int64_t count : {kSmall, kSmall + 1}) {
      OrtWriteOptions options;
      options.payload_alignment = alignment;
      auto source = make_ref<TestSource>(write_ort(ort_add_model(count), options));
      Result<ModelDef> model = load_ort(source);
      ASSERT_TRUE(model.is_ok()) << model.status().message();
      const InitializerDef& w = model.value().graph.initializers[0];
      const bool in_place = count > kSmall;
      EXPECT_EQ(source->contains(w.tensor.raw()), in_place) << count;
      EXPECT_EQ(static_cast<bool>(w.source), in_place);
      EXPECT_EQ(w.tensor.buffer()->kind(),
                in_place ? Buffer::Kind::kConstant : Buffer::Kind::kHeap);
      if (in_place) {
        EXPECT_EQ(w.tensor.raw(), source->bytes().data() + w.offset);
        EXPECT_EQ(w.offset % alignment, 0U);
      }
      float last = 0;
      std::memcpy(&last, w.tensor.raw() + (count - 1) * sizeof(float), sizeof(float));
      EXPECT_EQ(last, static_cast<float>(count - 1));
    }
  }
}

TEST(OrtTensors, PayloadsKeepTheSourceAlive) {
  Tensor tensor;
  {
    ModelDef model = load_or_fail(write_ort(ort_add_model(5000)));
    tensor = model.graph.initializers[0].tensor;
  }
  float last = 0;
  std::memcpy(&last, tensor.raw() + 4999 * sizeof(float), sizeof(float));
  EXPECT_EQ(last, 4999.0F);
}

TEST(OrtTensors, ReadsEveryElementType) {
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (dtype == DType::kString) continue;
    uint64_t bytes = 0;
    ASSERT_TRUE(dtype_bytes(dtype, 3, &bytes));
    std::string payload;
    for (uint64_t i = 0; i < bytes; ++i) payload.push_back(static_cast<char>(i + 1));
    const ModelDef out = load_or_fail(write_ort(constant_model(raw_tensor(dtype, {3}, payload))));
    ASSERT_EQ(out.graph.initializers.size(), 1U) << number;
    const Tensor& tensor = out.graph.initializers[0].tensor;
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.shape(), Shape({3}));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()), payload);
  }
}

TEST(OrtTensors, ReadsStringsOfAnyBytes) {
  const std::vector<std::string> values = {"a", "", std::string("\0\xFF", 2)};
  const ModelDef out = load_or_fail(write_ort(constant_model(string_tensor(values))));
  const auto found = out.graph.initializers[0].tensor.span<std::string>();
  EXPECT_EQ(std::vector<std::string>(found.begin(), found.end()), values);
}

TEST(OrtTensors, RefusesTensorsWhoseFieldsDisagree) {
  const auto edited = [](const std::function<void(OrtTensorFields*)>& edit) {
    OrtWriteOptions options;
    options.edit_tensor = edit;
    return write_ort(ort_add_model(2), options);
  };
  const std::string where = "tensor 'w'";
  const auto code = Code::kInvalidGraph;
  expect_refused(edited([](OrtTensorFields* t) { t->raw_data.pop_back(); }), code,
                 {where, "float[2] takes 8 bytes", "holds 7"});
  expect_refused(edited([](OrtTensorFields* t) { t->raw_data.push_back('x'); }), code,
                 {where, "takes 8 bytes", "holds 9"});
  expect_refused(edited([](OrtTensorFields* t) { t->raw_data.clear(); }), code, {where, "holds 0"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims = {3}; }), code,
                 {where, "float[3] takes 12 bytes"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims = {-2}; }), code, {where, "[-2]"});
  expect_refused(edited([](OrtTensorFields* t) {
                   t->dims = {int64_t{1} << 33, int64_t{1} << 33};
                 }),
                 code, {where, "overflow"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims = {int64_t{1} << 62}; }), code,
                 {where, "64 bits"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = 0; }), code, {where, "UNDEFINED"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = 27; }), code,
                 {where, "element type 27"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = -1; }), code,
                 {where, "element type -1"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = 8; }), code,
                 {where, "takes 2 strings", "holds 0"});
  expect_refused(edited([](OrtTensorFields* t) { t->name.clear(); }), code, {"no name"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims.assign(17, 1); }), Code::kNotImplemented,
                 {where, "17 dims"});
}

TEST(OrtTensors, RefusesDataOutsideTheFile) {
  OrtWriteOptions options;
  options.edit_tensor = [](OrtTensorFields* tensor) { tensor->external_data_offset = 0; };
  expect_refused(write_ort(ort_add_model(2), options), Code::kNotImplemented,
                 {"tensor 'w'", "outside the file", "external_data_offset 0"});
}

TEST(OrtTensors, RoundsSubByteTypesUp) {
  const ModelDef model = constant_model(raw_tensor(DType::kInt4, {5}, "abc"));
  EXPECT_TRUE(load(write_ort(model)).is_ok());
  OrtWriteOptions options;
  options.edit_tensor = [](OrtTensorFields* tensor) { tensor->raw_data = "ab"; };
  expect_refused(write_ort(model, options), Code::kInvalidGraph, {"int4[5] takes 3 bytes"});
}

TEST(OrtTensors, ReadsScalarVectorsThatAreNotAligned) {
  // The verifier aligns the length of a vector, not its elements: dims at 4 modulo 8.
  std::string bytes = write_ort(ort_add_model(2));
  const auto* tensor = graph_in(&bytes)->initializers()->Get(0);
  const auto* dims = reinterpret_cast<const uint8_t*>(tensor->dims());
  const size_t dims_at = static_cast<size_t>(dims - reinterpret_cast<const uint8_t*>(bytes.data()));
  // A copy at the end of the file, four bytes further in than the writer would put it.
  std::string moved = bytes;
  while (moved.size() % 8 != 0) moved.push_back('\0');
  const size_t new_at = moved.size();
  moved.append(bytes.substr(dims_at, 4 + 8));
  moved.append(8, '\0');
  ASSERT_EQ((new_at + 4) % 8, 4U);
  // The field of the table that refers to dims: the only offset that ends there.
  size_t patched = 0;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    if (value != 0 && at + value == dims_at) {
      value = static_cast<uint32_t>(new_at - at);
      std::memcpy(moved.data() + at, &value, 4);
      ++patched;
    }
  }
  ASSERT_EQ(patched, 1U);
  const ModelDef out = load_or_fail(moved);
  ASSERT_EQ(out.graph.initializers.size(), 1U);
  EXPECT_EQ(out.graph.initializers[0].tensor.shape(), Shape({2}));
}

std::string sparse_bytes(Tensor values, Tensor indices, std::vector<int64_t> dims) {
  OrtWriteOptions options;
  options.sparse_initializers.push_back(
      {"sp", std::move(values), std::move(indices), std::move(dims)});
  return write_ort(ort_add_model(2), options);
}

std::vector<float> dense_floats(const std::string& bytes) {
  const ModelDef model = load_or_fail(bytes);
  if (model.graph.initializers.size() != 2U) return {};
  EXPECT_EQ(model.graph.initializers[1].name, "sp");
  const auto values = model.graph.initializers[1].tensor.span<float>();
  return {values.begin(), values.end()};
}

TEST(OrtTensors, MakesSparseInitializersDense) {
  const std::vector<float> expected = {0, 5, 0, 0, 0, 6};
  const Tensor values = ort_float_tensor({5, 6}, {2});
  EXPECT_EQ(dense_floats(sparse_bytes(values, int64_tensor({1, 5}, {2}), {2, 3})), expected);
  EXPECT_EQ(dense_floats(sparse_bytes(values, int64_tensor({0, 1, 1, 2}, {2, 2}), {2, 3})),
            expected);
  const Tensor narrow = raw_tensor(DType::kInt8, {2}, "\x01\x05");
  EXPECT_EQ(dense_floats(sparse_bytes(values, narrow, {2, 3})), expected);
  const Tensor none = ort_float_tensor({}, {0});
  EXPECT_EQ(dense_floats(sparse_bytes(none, int64_tensor({}, {0}), {3})),
            std::vector<float>({0, 0, 0}));
}

TEST(OrtTensors, RefusesSparseIndicesThatMakeNoSense) {
  const Tensor values = ort_float_tensor({5, 6}, {2});
  const auto refused = [&](const Tensor& indices, const char* part) {
    expect_refused(sparse_bytes(values, indices, {2, 3}), Code::kInvalidGraph,
                   {"sparse initializer 'sp'", part});
  };
  refused(int64_tensor({1, 6}, {2}), "index 6");
  refused(int64_tensor({-1, 2}, {2}), "index -1");
  refused(int64_tensor({0, 1, 1, 3}, {2, 2}), "outside axis 1");
  refused(int64_tensor({2, 1}, {2}), "not ascending");
  refused(int64_tensor({2, 2}, {2}), "not ascending");
  refused(int64_tensor({1, 2, 3}, {3}), "expected int64[2]");
  refused(int64_tensor({1, 2, 3, 4, 5, 5}, {2, 3}), "expected int64[2]");
  refused(ort_float_tensor({1, 2}, {2}), "indices are float");
}

TEST(OrtTensors, RefusesSparseTensorsAboveTheBudgetOfTheModel) {
  const Tensor values = ort_float_tensor({5, 6}, {2});
  const Tensor indices = int64_tensor({1, 5}, {2});
  const std::string dense = "the sparse tensors of a model may take ";
  expect_refused(sparse_bytes(values, indices, {int64_t{1} << 40}), Code::kInvalidGraph,
                 {dense + "1073741824"});
  expect_refused(sparse_bytes(values, indices, {int64_t{1} << 40, int64_t{1} << 40}),
                 Code::kInvalidGraph, {"overflow"});
  LoadOptions limits;
  limits.max_dense_bytes = 100;
  OrtWriteOptions options;
  for (int i = 0; i < 3; ++i) options.sparse_initializers.push_back({"s", values, indices, {10}});
  expect_refused(write_ort(ort_add_model(2), options), Code::kInvalidGraph,
                 {dense + "100 bytes, 80 are taken"}, limits);
}

}  // namespace
}  // namespace folio
