// Files that somebody writes to between the two walks over a tensor: the second one stores no more
// than the first one counted.
#include <gtest/gtest.h>

#include "core/formats/onnx/wire_reader.h"
#include "tests/formats/onnx_case.h"

namespace folio {
namespace {

using F = TensorFields;

// The bytes are `before` until bytes() has been asked for `calls` times, `after` from then on.
class RewrittenSource final : public ByteSource {
 public:
  RewrittenSource(std::string before, std::string after, int calls)
      : bytes_(std::move(before)), after_(std::move(after)), calls_(calls) {}

  Bytes bytes() const override {
    if (calls_-- == 0) after_.copy(bytes_.data(), after_.size());
    return Bytes(reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size());
  }
  const std::string& name() const override { return name_; }
  Result<Ref<ByteSource>> open_sibling(const std::string&) const override {
    return error(Code::kNoSuchFile, "none");
  }

 private:
  mutable std::string bytes_;
  std::string after_;
  mutable int calls_;
  std::string name_ = "m.onnx";
};

// Loads the model of `before` once for each moment in which it can become that of `after`: one of
// them lies between the walks.
void expect_change_found(const PbWriter& before, const PbWriter& after) {
  constexpr int kMoments = 40;  // more than a load has
  const std::string from = model_of(graph_of_tensor(before));
  const std::string to = model_of(graph_of_tensor(after));
  ASSERT_EQ(from.size(), to.size());
  int found = 0;
  for (int calls = 0; calls < kMoments; ++calls) {
    const auto model = load_model_def(make_ref<RewrittenSource>(from, to, calls), {});
    if (calls == 0) {
      EXPECT_EQ(model.status().code(), Code::kInvalidGraph);
    }
    if (model.status().code() != Code::kModelChanged) continue;
    ++found;
    const std::string message(model.status().message());
    EXPECT_NE(message.find("'w'"), std::string::npos) << message;
    EXPECT_NE(message.find("changed while it was read"), std::string::npos) << message;
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(load_model_def(make_ref<RewrittenSource>(from, to, kMoments), {}).is_ok());
}

TEST(OnnxChange, VarintsThatBecomeMoreOrFewerAreAnError) {
  constexpr size_t kCount = 1000;
  PbWriter few = tensor_header("w", DType::kUint8, {kCount});
  few.packed_varints(F::kInt32Data, std::vector<int64_t>(kCount, 1 << 28));  // 5 bytes each
  PbWriter many = tensor_header("w", DType::kUint8, {kCount});
  many.packed_varints(F::kInt32Data, std::vector<int64_t>(5 * kCount, 1));
  expect_change_found(few, many);

  PbWriter more = tensor_header("w", DType::kInt64, {5 * kCount});
  more.packed_varints(F::kInt64Data, std::vector<int64_t>(5 * kCount, 1));
  PbWriter less = tensor_header("w", DType::kInt64, {5 * kCount});
  less.packed_varints(F::kInt64Data, std::vector<int64_t>(kCount, 1 << 28));
  expect_change_found(more, less);
}

TEST(OnnxChange, UnpackedVarintsThatBecomeMoreAreAnError) {
  PbWriter few = tensor_header("w", DType::kInt32, {3});
  for (int i = 0; i < 3; ++i) few.varint(F::kInt32Data, 1 << 28);
  PbWriter many = tensor_header("w", DType::kInt32, {3});
  for (int i = 0; i < 9; ++i) many.varint(F::kInt32Data, 1);
  expect_change_found(few, many);
}

TEST(OnnxChange, StringsThatBecomeMoreOrFewerAreAnError) {
  PbWriter few = tensor_header("w", DType::kString, {2});
  for (int i = 0; i < 2; ++i) few.bytes(F::kStringData, "12345678");
  PbWriter many = tensor_header("w", DType::kString, {2});
  for (int i = 0; i < 10; ++i) many.bytes(F::kStringData, "");
  expect_change_found(few, many);

  PbWriter more = tensor_header("w", DType::kString, {10});
  for (int i = 0; i < 10; ++i) more.bytes(F::kStringData, "");
  PbWriter less = tensor_header("w", DType::kString, {10});
  for (int i = 0; i < 2; ++i) less.bytes(F::kStringData, "12345678");
  expect_change_found(more, less);
}

TEST(OnnxChange, FloatsThatBecomeMoreAreAnError) {
  // In two pieces, or they are used where they stand.
  PbWriter few = tensor_header("w", DType::kFloat, {2});
  for (int i = 0; i < 2; ++i) few.bytes(F::kFloatData, "1234");
  few.bytes(F::kName, std::string(198, 'n'));
  few.bytes(F::kName, "w");
  PbWriter many = tensor_header("w", DType::kFloat, {2});
  for (int i = 0; i < 2; ++i) many.bytes(F::kFloatData, std::string(100, '1'));
  many.bytes(F::kName, "1234567");
  many.bytes(F::kName, "w");
  expect_change_found(few, many);
}

}  // namespace
}  // namespace folio
