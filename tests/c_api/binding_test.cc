#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

void count_call(void* user) { ++*static_cast<int*>(user); }

TEST(Binding, RunsAgainAndAgainOverTheSameMemory) {
  auto session = session_of(add_model());
  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  float in[3] = {1, 2, 3};
  const int64_t dims[] = {1, 3};
  const auto x =
      make<Value>(api().CreateTensorWithData, static_cast<void*>(in), sizeof in, dims, size_t{2},
                  FOLIO_FLOAT, FolioReleaseFunction{nullptr}, static_cast<void*>(nullptr));
  auto y = floats({0, 0, 0}, {1, 3});
  ASSERT_CALL(api().BindInput(binding.get(), "x", x.get()));
  ASSERT_CALL(api().BindOutput(binding.get(), "z", nullptr));
  ASSERT_CALL(api().BindOutput(binding.get(), "y", y.get()));
  ASSERT_CALL(api().RunWithBinding(session.get(), nullptr, binding.get()));
  in[0] = 5;
  ASSERT_CALL(api().RunWithBinding(session.get(), nullptr, binding.get()));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{15, 22, 33}));
  size_t count = 0;
  const char* name = nullptr;
  ASSERT_CALL(api().GetBoundOutputCount(binding.get(), &count));
  EXPECT_EQ(count, 2u);
  ASSERT_CALL(api().GetBoundOutputName(binding.get(), 0, &name));
  EXPECT_STREQ(name, "z");
  const auto z = make<Value>(api().GetBoundOutputValue, binding.get(), size_t{0});
  EXPECT_EQ(floats_of(z.get()), (std::vector<float>{-5, -18, -27}));
  session.reset();  // the binding holds it
}

TEST(Binding, CapacityTakesAnyShapeThatFits) {
  const auto session = session_of(add_model());
  auto binding = make<Binding>(api().CreateIoBinding, session.get());
  float room[6] = {};
  int calls = 0;
  ASSERT_CALL(
      api().BindOutputWithCapacity(binding.get(), "y", room, sizeof room, &count_call, &calls));
  Value y;
  for (const int64_t batch : {2, 1}) {
    const auto x = floats(std::vector<float>(static_cast<size_t>(3 * batch), 1), {batch, 3});
    ASSERT_CALL(api().BindInput(binding.get(), "x", x.get()));
    ASSERT_CALL(api().RunWithBinding(session.get(), nullptr, binding.get()));
    y = make<Value>(api().GetBoundOutputValue, binding.get(), size_t{0});
    const void* data = nullptr;
    ASSERT_CALL(api().GetTensorData(y.get(), &data));
    EXPECT_EQ(data, room);
    EXPECT_EQ(dims_of(y.get()), (std::vector<int64_t>{batch, 3}));
    EXPECT_EQ(room[3 * batch - 1], 31);
  }
  const auto three = floats(std::vector<float>(9, 1), {3, 3});
  ASSERT_CALL(api().BindInput(binding.get(), "x", three.get()));
  EXPECT_TRUE(fails(api().RunWithBinding(session.get(), nullptr, binding.get()),
                    FOLIO_INVALID_ARGUMENT, {"'y'", "[3,3]", "36 bytes", "24"}));
  binding.reset();
  EXPECT_EQ(calls, 0) << "the value holds the memory";
  y.reset();
  EXPECT_EQ(calls, 1);
}

TEST(Binding, MemoryThatGoesPastTheLastAddressIsRefused) {
  const auto session = session_of(add_model());
  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  float room[3] = {};
  int calls = 0;
  for (const size_t capacity : {SIZE_MAX, SIZE_MAX - reinterpret_cast<size_t>(room) + 1}) {
    EXPECT_TRUE(
        fails(api().BindOutputWithCapacity(binding.get(), "y", room, capacity, &count_call, &calls),
              FOLIO_INVALID_ARGUMENT, {"bytes", "address"}));
  }
  const int64_t dims[] = {(int64_t{1} << 61) - 1};
  FolioValue* value = nullptr;
  EXPECT_TRUE(fails(api().CreateTensorWithData(room, 8 * static_cast<size_t>(dims[0]), dims, 1,
                                               FOLIO_DOUBLE, &count_call, &calls, &value),
                    FOLIO_INVALID_ARGUMENT, {"bytes", "address"}));
  EXPECT_EQ(value, nullptr);
  EXPECT_EQ(calls, 0);
}

TEST(Binding, WrongNamesSessionsAndMomentsAreRefused) {
  const auto session = session_of(add_model());
  const auto other = session_of(add_model());
  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  const auto x = floats({1, 2, 3}, {1, 3});
  FolioValue* value = nullptr;
  int calls = 0;
  float room[3];
  EXPECT_TRUE(fails(api().BindInput(binding.get(), "y", x.get()), FOLIO_INVALID_ARGUMENT,
                    {"no input 'y'"}));
  EXPECT_TRUE(fails(api().BindOutput(binding.get(), "x", nullptr), FOLIO_INVALID_ARGUMENT,
                    {"no output 'x'"}));
  EXPECT_TRUE(fails(api().BindOutputWithCapacity(binding.get(), "x", room, 4, &count_call, &calls),
                    FOLIO_INVALID_ARGUMENT));
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(fails(api().RunWithBinding(session.get(), nullptr, binding.get()),
                    FOLIO_INVALID_ARGUMENT, {"no output is bound"}));
  ASSERT_CALL(api().BindOutput(binding.get(), "y", nullptr));
  EXPECT_TRUE(fails(api().RunWithBinding(session.get(), nullptr, binding.get()),
                    FOLIO_INVALID_ARGUMENT, {"'x'", "missing"}));
  EXPECT_TRUE(fails(api().GetBoundOutputValue(binding.get(), 0, &value), FOLIO_INVALID_ARGUMENT,
                    {"not been run"}));
  EXPECT_TRUE(fails(api().RunWithBinding(other.get(), nullptr, binding.get()),
                    FOLIO_INVALID_ARGUMENT, {"another session"}));
  EXPECT_EQ(value, nullptr);
}

TEST(Binding, ClearForgetsWhatWasBound) {
  const auto session = session_of(add_model());
  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  const auto x = floats({1, 2, 3}, {1, 3});
  ASSERT_CALL(api().BindInput(binding.get(), "x", x.get()));
  ASSERT_CALL(api().BindOutput(binding.get(), "y", nullptr));
  ASSERT_CALL(api().ClearBoundInputs(binding.get()));
  EXPECT_TRUE(
      fails(api().RunWithBinding(session.get(), nullptr, binding.get()), FOLIO_INVALID_ARGUMENT));
  ASSERT_CALL(api().ClearBoundOutputs(binding.get()));
  size_t count = 1;
  ASSERT_CALL(api().GetBoundOutputCount(binding.get(), &count));
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace capi_test
