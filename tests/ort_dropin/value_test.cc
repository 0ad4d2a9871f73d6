#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/ort_dropin/dropin_support.h"

namespace dropin_test {
namespace {

using folio::ort::kFail;
using folio::ort::kInvalidArgument;

TEST(Tensor, OwnsItsMemory) {
  const int64_t dims[] = {2, 3};
  const auto value =
      make<Value>(api().CreateTensorAsOrtValue, allocator(), dims, size_t{2}, kFloat);
  void* data = nullptr;
  ASSERT_CALL(api().GetTensorMutableData(value.get(), &data));
  static_cast<float*>(data)[5] = 7;
  EXPECT_EQ(floats_of(value.get())[5], 7);
  int is = 0;
  ASSERT_CALL(api().IsTensor(value.get(), &is));
  EXPECT_EQ(is, 1);
  ASSERT_CALL(api().HasValue(value.get(), &is));
  EXPECT_EQ(is, 1);
  ASSERT_CALL(api().IsSparseTensor(value.get(), &is));
  EXPECT_EQ(is, 0);
  int kind = 0;
  ASSERT_CALL(api().GetValueType(value.get(), &kind));
  EXPECT_EQ(kind, 1);
  const int64_t place[] = {1, 2};
  void* element = nullptr;
  ASSERT_CALL(api().TensorAt(value.get(), place, 2, &element));
  EXPECT_EQ(element, static_cast<float*>(data) + 5);
  const int64_t outside[] = {2, 0};
  EXPECT_TRUE(fails(api().TensorAt(value.get(), outside, 2, &element), kInvalidArgument));
  const OrtMemoryInfo* info = nullptr;
  ASSERT_CALL(api().GetTensorMemoryInfo(value.get(), &info));
  const char* name = nullptr;
  ASSERT_CALL(api().MemoryInfoGetName(info, &name));
  EXPECT_STREQ(name, "Cpu");
  int device = -1;
  api().MemoryInfoGetDeviceType(info, &device);
  EXPECT_EQ(device, 0);
}

TEST(Tensor, LiesOverTheProgramsMemory) {
  float memory[5] = {1, 2, 3, 4, 5};
  const int64_t dims[] = {2, 2};
  OrtValue* raw = nullptr;
  EXPECT_TRUE(fails(api().CreateTensorWithDataAsOrtValue(cpu(), memory, 12, dims, 2, kFloat, &raw),
                    kInvalidArgument, {"16", "12"}));
  ASSERT_CALL(
      api().CreateTensorWithDataAsOrtValue(cpu(), memory, sizeof memory, dims, 2, kFloat, &raw));
  const Value value(raw);
  const void* data = nullptr;
  if (is_folio()) {
    ASSERT_CALL(api().GetTensorData(raw, &data));
    EXPECT_EQ(data, memory);
    size_t bytes = 0;
    ASSERT_CALL(api().GetTensorSizeInBytes(raw, &bytes));
    EXPECT_EQ(bytes, 16U);
  }
  EXPECT_EQ(floats_of(raw), (std::vector<float>{1, 2, 3, 4})) << "memory may be larger";
  const int64_t negative[] = {2, -2};
  EXPECT_TRUE(fails(api().CreateTensorAsOrtValue(allocator(), negative, 2, kFloat, &raw),
                    is_folio() ? kInvalidArgument : kFail));
}

TEST(Tensor, OfMemoryThatIsNotAlignedWorks) {
  char memory[2 * 12 + 1] = {};
  char* const odd = memory + 1;
  const float numbers[] = {1, 2, 3};
  std::memcpy(odd, numbers, sizeof numbers);
  const int64_t dims[] = {1, 3};
  const auto wrap = [&](char* place) {
    return make<Value>(api().CreateTensorWithDataAsOrtValue, cpu(), static_cast<void*>(place),
                       sizeof numbers, dims, size_t{2}, kFloat);
  };
  const auto x = wrap(odd);
  const auto y = wrap(odd + 12);
  const auto session = session_of(add_model());
  const char* input = "x";
  const OrtValue* value = x.get();
  const char* name = "y";
  OrtValue* output = y.get();
  ASSERT_CALL(api().Run(session.get(), nullptr, &input, &value, 1, &name, 1, &output));
  float results[3];
  std::memcpy(results, odd + 12, sizeof results);
  EXPECT_EQ(results[2], 33);
}

struct CountingAllocator : OrtAllocator {
  int live = 0;
  CountingAllocator() {
    std::memset(static_cast<OrtAllocator*>(this), 0, sizeof(OrtAllocator));
    version = 20;  // a program's, older than the members after Reserve
    Alloc = [](OrtAllocator* self, size_t bytes) {
      ++static_cast<CountingAllocator*>(self)->live;
      return std::malloc(bytes > 0 ? bytes : 1);
    };
    Free = [](OrtAllocator* self, void* memory) {
      if (memory) --static_cast<CountingAllocator*>(self)->live;
      std::free(memory);
    };
    Info = [](const OrtAllocator*) { return cpu(); };
    Reserve = Alloc;
  }
};

TEST(Tensor, LivesInMemoryOfTheProgramsAllocator) {
  CountingAllocator own;
  const int64_t dims[] = {4};
  {
    const auto value = make<Value>(api().CreateTensorAsOrtValue, static_cast<OrtAllocator*>(&own),
                                   dims, size_t{1}, kFloat);
    EXPECT_EQ(own.live, 1);
  }
  EXPECT_EQ(own.live, 0);
  const auto session = session_of(add_model());
  char* name = nullptr;
  ASSERT_CALL(api().SessionGetInputName(session.get(), 0, &own, &name));
  EXPECT_EQ(own.live, 1);
  own.Free(&own, name);
}

TEST(Tensor, DeleterGetsTheMemoryBack) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime wants the allocator's own memory info";
  CountingAllocator own;
  void* memory = own.Alloc(&own, 16);
  const int64_t dims[] = {4};
  OrtValue* raw = nullptr;
  EXPECT_TRUE(
      fails(api().CreateTensorWithDataAndDeleterAsOrtValue(&own, memory, 8, dims, 1, kFloat, &raw),
            kInvalidArgument));
  EXPECT_EQ(own.live, 1) << "the program's, since the call failed";
  ASSERT_CALL(
      api().CreateTensorWithDataAndDeleterAsOrtValue(&own, memory, 16, dims, 1, kFloat, &raw));
  api().ReleaseValue(raw);
  EXPECT_EQ(own.live, 0);
}

TEST(Tensor, TypesAfterFloat4KeepOnnxRuntimesNumbers) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime 1.30 takes ONNX's numbers here and gives its own";
  const int64_t dims[] = {8};
  for (const auto& [type, bytes] : {std::pair(24, 2), std::pair(25, 2), std::pair(26, 8)}) {
    const auto value =
        make<Value>(api().CreateTensorAsOrtValue, allocator(), dims, size_t{1}, type);
    const auto info =
        make<TensorInfo>(api().GetTensorTypeAndShape, const_cast<const OrtValue*>(value.get()));
    int found = 0;
    ASSERT_CALL(api().GetTensorElementType(info.get(), &found));
    EXPECT_EQ(found, type);
    size_t size = 0;
    ASSERT_CALL(api().GetTensorSizeInBytes(value.get(), &size));
    EXPECT_EQ(size, static_cast<size_t>(bytes)) << type;
  }
}

TEST(Strings, GoThroughAModel) {
  const auto session = session_of(string_model());
  const auto s = strings({"a", "", "\xE6\x97\xA5\xE6\x9C\xAC"});
  Value t;
  ASSERT_CALL(run_one(session.get(), "s", s.get(), "t", &t));
  EXPECT_EQ(strings_of(t.get()), (std::vector<std::string>{"a", "", "\xE6\x97\xA5\xE6\x9C\xAC"}));
  size_t bytes = 0;
  ASSERT_CALL(api().GetStringTensorElementLength(t.get(), 2, &bytes));
  EXPECT_EQ(bytes, 6U);
  char text[6];
  ASSERT_CALL(api().GetStringTensorElement(t.get(), 6, 2, text));
  EXPECT_EQ(std::string(text, 6), "\xE6\x97\xA5\xE6\x9C\xAC");
  EXPECT_TRUE(fails(api().GetStringTensorElement(t.get(), 5, 2, text), kFail));
}

TEST(Strings, AreChangedInPlace) {
  const auto s = strings({"one", "two"});
  ASSERT_CALL(api().FillStringTensorElement(s.get(), "three", 1));
  char* place = nullptr;
  ASSERT_CALL(api().GetResizedStringTensorElementBuffer(s.get(), 0, 4, &place));
  std::memcpy(place, "four", 4);
  EXPECT_EQ(strings_of(s.get()), (std::vector<std::string>{"four", "three"}));
  const char* few[] = {"x"};
  EXPECT_FALSE(is_ok(api().FillStringTensor(s.get(), few, 1)));
  EXPECT_FALSE(is_ok(api().FillStringTensorElement(s.get(), "x", 2)));
  std::vector<float> numbers = {1};
  const auto tensor = floats(&numbers, {1});
  EXPECT_FALSE(is_ok(api().FillStringTensor(tensor.get(), few, 1)));
}

TEST(Strings, AreShownAsAnArrayOfStdString) {
  const auto session = session_of(string_model());
  const auto s = strings({"one", "two"});
  void* data = nullptr;
  ASSERT_CALL(api().GetTensorMutableData(s.get(), &data));
  auto* texts = static_cast<std::string*>(data);
  EXPECT_EQ(texts[1], "two");
  texts[0] = "a text that no small string has room for";
  Value t;
  ASSERT_CALL(run_one(session.get(), "s", s.get(), "t", &t));
  EXPECT_EQ(strings_of(t.get()), (std::vector<std::string>{texts[0], "two"}));
}

TEST(Sequence, GoesInAndComesOut) {
  const auto session = session_of(sequence_model());
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  std::vector<float> part = {7, 8};
  const auto x = floats(&numbers, {2, 3});
  const auto element = floats(&part, {2});
  const OrtValue* elements[] = {element.get(), element.get()};
  OrtValue* raw = nullptr;
  ASSERT_CALL(api().CreateValue(elements, 2, 2, &raw));
  const Value given(raw);
  const char* inputs[] = {"x", "given"};
  const OrtValue* values[] = {x.get(), given.get()};
  const char* names[] = {"parts", "first"};
  OrtValue* outputs[2] = {};
  ASSERT_CALL(api().Run(session.get(), nullptr, inputs, values, 2, names, 2, outputs));
  const Value parts(outputs[0]);
  const Value first(outputs[1]);
  EXPECT_EQ(floats_of(first.get()), part);
  size_t count = 0;
  ASSERT_CALL(api().GetValueCount(parts.get(), &count));
  ASSERT_EQ(count, 3U);
  ASSERT_CALL(api().GetValue(parts.get(), 2, allocator(), &raw));
  const Value last(raw);
  EXPECT_EQ(floats_of(last.get()), (std::vector<float>{3, 6}));
  EXPECT_FALSE(is_ok(api().GetValue(parts.get(), 3, allocator(), &raw)));
  EXPECT_FALSE(is_ok(api().GetValueCount(first.get(), &count)));

  const auto type = make<TypeInfo>(api().GetTypeInfo, const_cast<const OrtValue*>(parts.get()));
  const OrtSequenceTypeInfo* sequence = nullptr;
  ASSERT_CALL(api().CastTypeInfoToSequenceTypeInfo(type.get(), &sequence));
  ASSERT_NE(sequence, nullptr);
  const auto inside = make<TypeInfo>(api().GetSequenceElementType, sequence);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ASSERT_CALL(api().CastTypeInfoToTensorInfo(inside.get(), &tensor));
  ASSERT_NE(tensor, nullptr);
  int element_type = 0;
  ASSERT_CALL(api().GetTensorElementType(tensor, &element_type));
  EXPECT_EQ(element_type, kFloat);
}

TEST(Map, ComesOutOfAClassifier) {
  const auto session = session_of(map_model());
  const auto type = make<TypeInfo>(api().SessionGetOutputTypeInfo,
                                   const_cast<const OrtSession*>(session.get()), size_t{0});
  const OrtSequenceTypeInfo* sequence = nullptr;
  ASSERT_CALL(api().CastTypeInfoToSequenceTypeInfo(type.get(), &sequence));
  const auto element = make<TypeInfo>(api().GetSequenceElementType, sequence);
  const OrtMapTypeInfo* map = nullptr;
  ASSERT_CALL(api().CastTypeInfoToMapTypeInfo(element.get(), &map));
  ASSERT_NE(map, nullptr);
  int key = 0;
  ASSERT_CALL(api().GetMapKeyType(map, &key));
  EXPECT_EQ(key, kInt64);
  const auto value_type = make<TypeInfo>(api().GetMapValueType, map);
  EXPECT_NE(value_type, nullptr);

  std::vector<float> numbers = {0.25F, 0.75F};
  const auto x = floats(&numbers, {1, 2});
  Value m;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "m", &m));
  OrtValue* raw = nullptr;
  ASSERT_CALL(api().GetValue(m.get(), 0, allocator(), &raw));
  const Value one(raw);
  int kind = 0;
  ASSERT_CALL(api().GetValueType(one.get(), &kind));
  EXPECT_EQ(kind, 3);
  size_t count = 0;
  ASSERT_CALL(api().GetValueCount(one.get(), &count));
  EXPECT_EQ(count, 2U);
  ASSERT_CALL(api().GetValue(one.get(), 0, allocator(), &raw));
  const Value keys(raw);
  ASSERT_CALL(api().GetValue(one.get(), 1, allocator(), &raw));
  const Value values(raw);
  EXPECT_EQ(floats_of(values.get()), numbers);
  void* data = nullptr;
  ASSERT_CALL(api().GetTensorMutableData(keys.get(), &data));
  EXPECT_EQ(static_cast<int64_t*>(data)[1], 6);

  const OrtValue* both[] = {keys.get(), values.get()};
  ASSERT_CALL(api().CreateValue(both, 2, 3, &raw));
  const Value made(raw);
  ASSERT_CALL(api().GetValueType(made.get(), &kind));
  EXPECT_EQ(kind, 3);
}

TEST(MemoryInfo, IsComparedAndShown) {
  const auto info = make<MemoryInfo>(api().CreateMemoryInfo, "Cpu", 1, 0, 0);
  const auto same = make<MemoryInfo>(api().CreateCpuMemoryInfo, 1, 0);
  const auto other = make<MemoryInfo>(api().CreateMemoryInfo, "Cuda", 0, 1, 0);
  int order = -9;
  ASSERT_CALL(api().CompareMemoryInfo(info.get(), same.get(), &order));
  EXPECT_EQ(order, 0);
  ASSERT_CALL(api().CompareMemoryInfo(info.get(), other.get(), &order));
  EXPECT_NE(order, 0);
  int number = -9;
  ASSERT_CALL(api().MemoryInfoGetId(other.get(), &number));
  EXPECT_EQ(number, 1);
  ASSERT_CALL(api().MemoryInfoGetType(info.get(), &number));
  EXPECT_EQ(number, 1);
  api().MemoryInfoGetDeviceType(other.get(), &number);
  EXPECT_EQ(number, 1) << "a GPU";
  OrtMemoryInfo* raw = nullptr;
  EXPECT_TRUE(fails(api().CreateMemoryInfo("nobody", 0, 0, 0, &raw), kInvalidArgument, {"nobody"}));
  const auto webgpu = make<MemoryInfo>(api().CreateMemoryInfo, "WebGPU_Buf", 0, 0, 0);
  EXPECT_NE(webgpu, nullptr) << "onnxruntime-node makes it at each run";
}

TEST(Allocator, GivesAlignedMemory) {
  void* memory = nullptr;
  ASSERT_CALL(api().AllocatorAlloc(allocator(), 100, &memory));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
  ASSERT_CALL(api().AllocatorFree(allocator(), memory));
  const OrtMemoryInfo* info = nullptr;
  ASSERT_CALL(api().AllocatorGetInfo(allocator(), &info));
  EXPECT_NE(info, nullptr);
}

}  // namespace
}  // namespace dropin_test
