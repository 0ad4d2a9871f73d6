#include <cstring>

#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

void count_call(void* user) { ++*static_cast<int*>(user); }

TEST(Value, NewTensorIsZeroAndAligned) {
  const int64_t dims[] = {2, 3};
  const auto value = make<Value>(api().CreateTensor, FOLIO_INT32, dims, size_t{2});
  const void* data = nullptr;
  size_t bytes = 0;
  size_t count = 0;
  FolioElementType type = FOLIO_UNDEFINED;
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  ASSERT_CALL(api().GetTensorData(value.get(), &data));
  ASSERT_CALL(api().GetTensorBytes(value.get(), &bytes));
  ASSERT_CALL(api().GetTensorElementCount(value.get(), &count));
  ASSERT_CALL(api().GetElementType(value.get(), &type));
  ASSERT_CALL(api().GetValueKind(value.get(), &kind));
  EXPECT_EQ(bytes, 24u);
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(type, FOLIO_INT32);
  EXPECT_EQ(kind, FOLIO_KIND_TENSOR);
  EXPECT_EQ(dims_of(value.get()), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  const int32_t zeros[6] = {};
  EXPECT_EQ(std::memcmp(data, zeros, sizeof zeros), 0);
}

TEST(Value, FourBitTypesArePacked) {
  const int64_t dims[] = {5};
  const auto value = make<Value>(api().CreateTensor, FOLIO_UINT4, dims, size_t{1});
  size_t bytes = 0;
  ASSERT_CALL(api().GetTensorBytes(value.get(), &bytes));
  EXPECT_EQ(bytes, 3u);
}

TEST(Value, BadDimsAndTypesAreRefused) {
  FolioValue* value = nullptr;
  const int64_t negative[] = {2, -1};
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  const std::vector<int64_t> many(17, 1);
  EXPECT_TRUE(fails(api().CreateTensor(FOLIO_FLOAT, negative, 2, &value), FOLIO_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(api().CreateTensor(FOLIO_FLOAT, huge, 2, &value), FOLIO_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(api().CreateTensor(FOLIO_FLOAT, many.data(), 17, &value), FOLIO_NOT_IMPLEMENTED,
                    {"17 dims"}));
  EXPECT_TRUE(
      fails(api().CreateTensor(FOLIO_FLOAT, nullptr, 2, &value), FOLIO_INVALID_ARGUMENT, {"dims"}));
  EXPECT_TRUE(
      fails(api().CreateTensor(FOLIO_UNDEFINED, nullptr, 0, &value), FOLIO_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(api().CreateTensor(static_cast<FolioElementType>(1000), nullptr, 0, &value),
                    FOLIO_INVALID_ARGUMENT, {"1000"}));
  EXPECT_EQ(value, nullptr);
}

TEST(Value, TensorOverMemoryIsThatMemoryAndGivesItBackOnce) {
  float memory[2] = {1, 2};
  const int64_t dims[] = {2};
  int calls = 0;
  auto value = make<Value>(api().CreateTensorWithData, static_cast<void*>(memory), sizeof memory,
                           dims, size_t{1}, FOLIO_FLOAT, &count_call, static_cast<void*>(&calls));
  void* data = nullptr;
  ASSERT_CALL(api().GetTensorMutableData(value.get(), &data));
  EXPECT_EQ(data, memory);
  EXPECT_EQ(calls, 0);
  value.reset();
  EXPECT_EQ(calls, 1);
}

TEST(Value, MemoryThatWasNotTakenIsNotGivenBack) {
  float memory[2] = {1, 2};
  const int64_t dims[] = {3};
  int calls = 0;
  FolioValue* value = nullptr;
  EXPECT_TRUE(fails(api().CreateTensorWithData(memory, sizeof memory, dims, 1, FOLIO_FLOAT,
                                               &count_call, &calls, &value),
                    FOLIO_INVALID_ARGUMENT, {"[3]", "12 bytes", "has 8"}));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(value, nullptr);
}

// Three floats at an address that no float has.
struct OddFloats {
  char bytes[13] = {};
  explicit OddFloats(float first) {
    const float numbers[] = {first, first + 1, first + 2};
    std::memcpy(bytes + 1, numbers, sizeof numbers);
  }
  std::vector<float> numbers() const {
    std::vector<float> out(3);
    std::memcpy(out.data(), bytes + 1, 12);
    return out;
  }
  Value value(const std::vector<int64_t>& dims) {
    return make<Value>(api().CreateTensorWithData, static_cast<void*>(bytes + 1), size_t{12},
                       dims.data(), dims.size(), FOLIO_FLOAT, FolioReleaseFunction{nullptr},
                       static_cast<void*>(nullptr));
  }
};

TEST(Value, MemoryThatIsNotAlignedIsCopiedByRuns) {
  OddFloats from(1);
  OddFloats to(0);
  OddFloats weights(2);
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  const auto w = weights.value({3});
  ASSERT_CALL(api().AddInitializer(options.get(), "w", w.get()));
  const auto session = session_of(add_model(), options.get());
  const auto x = from.value({1, 3});
  const auto y = to.value({1, 3});
  const char* input = "x";
  const char* output = "y";
  FolioValue* in = x.get();
  FolioValue* out = y.get();
  ASSERT_CALL(api().Run(session.get(), nullptr, &input, &in, 1, &output, 1, &out));
  EXPECT_EQ(to.numbers(), (std::vector<float>{3, 5, 7}));
}

TEST(Value, PartsThatAreNotAlignedAreCopied) {
  OddFloats odd(1);
  const auto element = odd.value({3});
  FolioValue* elements[] = {element.get()};
  const auto sequence = make<Value>(api().CreateSequence, FOLIO_FLOAT, elements, size_t{1});
  const auto part = make<Value>(api().GetValue, sequence.get(), size_t{0});
  const void* data = nullptr;
  ASSERT_CALL(api().GetTensorData(part.get(), &data));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignof(float), 0U);
  EXPECT_EQ(floats_of(part.get()), (std::vector<float>{1, 2, 3}));
}

TEST(Value, StringsAreResizedAndWrittenInPlace) {
  const char* texts[] = {"one", "two"};
  const int64_t dims[] = {2};
  const auto value = make<Value>(api().CreateStringTensor, texts,
                                 static_cast<const size_t*>(nullptr), dims, size_t{1});
  char* place = nullptr;
  ASSERT_CALL(api().ResizeStringTensorElement(value.get(), 1, 40, &place));
  EXPECT_EQ(std::string(place, 4), std::string("two\0", 4));
  std::memset(place, 'x', 40);
  const char* text = nullptr;
  size_t bytes = 0;
  ASSERT_CALL(api().GetStringTensorElement(value.get(), 1, &text, &bytes));
  EXPECT_EQ(std::string(text, bytes), std::string(40, 'x'));
  EXPECT_TRUE(fails(api().ResizeStringTensorElement(value.get(), 2, 1, &place),
                    FOLIO_INVALID_ARGUMENT, {"2 strings"}));
  const auto number = floats({1}, {1});
  EXPECT_TRUE(fails(api().ResizeStringTensorElement(number.get(), 0, 1, &place),
                    FOLIO_INVALID_ARGUMENT, {"not of strings"}));
}

TEST(Value, ConstMemoryIsNotWritable) {
  const float memory[1] = {1};
  const int64_t dims[] = {1};
  const auto value = make<Value>(api().CreateTensorWithConstData, static_cast<const void*>(memory),
                                 sizeof memory, dims, size_t{1}, FOLIO_FLOAT,
                                 FolioReleaseFunction{nullptr}, static_cast<void*>(nullptr));
  void* data = nullptr;
  EXPECT_TRUE(
      fails(api().GetTensorMutableData(value.get(), &data), FOLIO_INVALID_ARGUMENT, {"const"}));
  EXPECT_EQ(data, nullptr);
}

TEST(Value, EmptyTensorsHaveAPlace) {
  const int64_t dims[] = {0, 4};
  const auto value = make<Value>(api().CreateTensorWithData, static_cast<void*>(nullptr), size_t{0},
                                 dims, size_t{2}, FOLIO_FLOAT, FolioReleaseFunction{nullptr},
                                 static_cast<void*>(nullptr));
  const void* data = nullptr;
  ASSERT_CALL(api().GetTensorData(value.get(), &data));
  EXPECT_NE(data, nullptr);
}

TEST(Value, StringsMayContainNul) {
  const char* strings[] = {"a\0b", "", "plain"};
  const size_t bytes[] = {3, 0, 5};
  const int64_t dims[] = {3};
  const auto value = make<Value>(api().CreateStringTensor, strings, bytes, dims, size_t{1});
  const char* text = nullptr;
  size_t length = 0;
  ASSERT_CALL(api().GetStringTensorElement(value.get(), 0, &text, &length));
  EXPECT_EQ(std::string(text, length), std::string("a\0b", 3));
  EXPECT_EQ(text[length], '\0');
  ASSERT_CALL(api().GetStringTensorElement(value.get(), 1, &text, &length));
  EXPECT_EQ(length, 0u);
  const void* data = nullptr;
  EXPECT_TRUE(fails(api().GetTensorData(value.get(), &data), FOLIO_INVALID_ARGUMENT, {"strings"}));
  EXPECT_TRUE(fails(api().GetStringTensorElement(value.get(), 3, &text, &length),
                    FOLIO_INVALID_ARGUMENT, {"index 3"}));
}

TEST(Value, StringsWithoutLengthsEndWithNul) {
  const char* strings[] = {"one", "two"};
  const char* missing[] = {"one", nullptr};
  const int64_t dims[] = {2};
  const auto value = make<Value>(api().CreateStringTensor, strings,
                                 static_cast<const size_t*>(nullptr), dims, size_t{1});
  const char* text = nullptr;
  size_t length = 0;
  ASSERT_CALL(api().GetStringTensorElement(value.get(), 1, &text, &length));
  EXPECT_STREQ(text, "two");
  FolioValue* none = nullptr;
  EXPECT_TRUE(fails(api().CreateStringTensor(missing, nullptr, dims, 1, &none),
                    FOLIO_INVALID_ARGUMENT, {"strings[1]"}));
}

TEST(Value, SequenceOutlivesAndIsOutlivedByItsElements) {
  auto first = floats({1}, {1});
  auto second = floats({2, 3}, {2});
  FolioValue* elements[] = {first.get(), second.get()};
  auto sequence = make<Value>(api().CreateSequence, FOLIO_FLOAT, elements, size_t{2});
  first.reset();
  second.reset();
  size_t count = 0;
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  ASSERT_CALL(api().GetValueCount(sequence.get(), &count));
  ASSERT_CALL(api().GetValueKind(sequence.get(), &kind));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(kind, FOLIO_KIND_SEQUENCE);
  const auto element = make<Value>(api().GetValue, sequence.get(), size_t{1});
  FolioValue* none = nullptr;
  EXPECT_TRUE(fails(api().GetValue(sequence.get(), 2, &none), FOLIO_INVALID_ARGUMENT, {"index 2"}));
  sequence.reset();
  EXPECT_EQ(floats_of(element.get()), (std::vector<float>{2, 3}));
}

TEST(Value, SequenceOfAnotherTypeIsRefused) {
  const auto number = int64_scalar(1);
  FolioValue* elements[] = {number.get()};
  FolioValue* none = nullptr;
  EXPECT_TRUE(fails(api().CreateSequence(FOLIO_FLOAT, elements, 1, &none), FOLIO_INVALID_ARGUMENT,
                    {"elements[0]", "float"}));
}

TEST(Value, MapHasKeysAndValues) {
  const char* strings[] = {"a", "b"};
  const int64_t dims[] = {2};
  const auto keys = make<Value>(api().CreateStringTensor, strings,
                                static_cast<const size_t*>(nullptr), dims, size_t{1});
  const auto values = floats({1, 2}, {2});
  const auto map = make<Value>(api().CreateMap, keys.get(), values.get());
  FolioElementType type = FOLIO_UNDEFINED;
  ASSERT_CALL(api().GetElementType(map.get(), &type));
  EXPECT_EQ(type, FOLIO_STRING);
  EXPECT_EQ(floats_of(make<Value>(api().GetValue, map.get(), size_t{1}).get()),
            (std::vector<float>{1, 2}));
  const auto three = floats({1, 2, 3}, {3});
  FolioValue* none = nullptr;
  EXPECT_TRUE(fails(api().CreateMap(keys.get(), three.get(), &none), FOLIO_INVALID_ARGUMENT,
                    {"[2]", "[3]"}));
  EXPECT_TRUE(
      fails(api().CreateMap(values.get(), keys.get(), &none), FOLIO_INVALID_ARGUMENT, {"float"}));
}

}  // namespace
}  // namespace capi_test
