#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/ort_dropin/dropin_support.h"

namespace dropin_test {
namespace {

using folio::ort::kFail;
using folio::ort::kInvalidArgument;

TEST(Run, GivesASubsetOfOutputsInAnyOrder) {
  const auto session = session_of(add_model());
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const auto x = floats(&numbers, {2, 3});
  const char* input = "x";
  const OrtValue* value = x.get();
  const char* names[] = {"z", "y"};
  OrtValue* raw[2] = {};
  ASSERT_CALL(api().Run(session.get(), nullptr, &input, &value, 1, names, 2, raw));
  const Value z(raw[0]);
  const Value y(raw[1]);
  EXPECT_EQ(floats_of(z.get()), (std::vector<float>{-9, -18, -27, -6, -15, -24}));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(dims_of(y.get()), (std::vector<int64_t>{2, 3}));
}

TEST(Run, WritesIntoTensorsThatAreGiven) {
  const auto session = session_of(add_model());
  std::vector<float> numbers = {1, 2, 3};
  std::vector<float> memory(3);
  const auto x = floats(&numbers, {1, 3});
  const auto y = floats(&memory, {1, 3});
  const char* input = "x";
  const OrtValue* value = x.get();
  const char* name = "y";
  OrtValue* output = y.get();
  ASSERT_CALL(api().Run(session.get(), nullptr, &input, &value, 1, &name, 1, &output));
  EXPECT_EQ(output, y.get());
  EXPECT_EQ(memory, (std::vector<float>{11, 22, 33}));
}

TEST(Run, RefusesWhatDoesNotFit) {
  const auto session = session_of(add_model());
  std::vector<float> numbers = {1, 2, 3, 4};
  const auto x = floats(&numbers, {1, 4});
  Value y;
  EXPECT_TRUE(
      fails(run_one(session.get(), "x", x.get(), "y", &y), kInvalidArgument, {"'x'", "[1,4]"}));
  EXPECT_TRUE(fails(run_one(session.get(), "q", x.get(), "y", &y), kInvalidArgument, {"'q'"}));
  std::vector<float> right = {1, 2, 3};
  const auto good = floats(&right, {1, 3});
  EXPECT_TRUE(fails(run_one(session.get(), "x", good.get(), "q", &y), kInvalidArgument, {"'q'"}));
  const int64_t dims[] = {1, 3};
  const auto integers =
      make<Value>(api().CreateTensorAsOrtValue, allocator(), dims, size_t{2}, kInt64);
  EXPECT_TRUE(
      fails(run_one(session.get(), "x", integers.get(), "y", &y), kInvalidArgument, {"int64"}));
  EXPECT_EQ(y, nullptr);
}

// y = a + rounds.
OrtStatus* run_loop(OrtSession* session, int64_t rounds, const OrtRunOptions* options,
                    Value* result) {
  std::vector<float> zero = {0};
  const auto a = floats(&zero, {1});
  const auto count =
      make<Value>(api().CreateTensorWithDataAsOrtValue, cpu(), static_cast<void*>(&rounds),
                  sizeof rounds, static_cast<const int64_t*>(nullptr), size_t{0}, kInt64);
  const char* names[] = {"count", "a"};
  const OrtValue* values[] = {count.get(), a.get()};
  const char* output = "y";
  OrtValue* raw = nullptr;
  OrtStatus* status = api().Run(session, options, names, values, 2, &output, 1, &raw);
  result->reset(raw);
  return status;
}

TEST(RunOptions, TerminateEndsARunAndCanBeTakenBack) {
  const auto session = session_of(loop_model());
  const auto options = make<RunOptions>(api().CreateRunOptions);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_CALL(api().RunOptionsSetTerminate(options.get()));
  });
  Value y;
  EXPECT_TRUE(fails(run_loop(session.get(), int64_t{1} << 60, options.get(), &y), kFail));
  killer.join();
  EXPECT_TRUE(fails(run_loop(session.get(), 3, options.get(), &y), kFail)) << "it stays set";
  ASSERT_CALL(api().RunOptionsUnsetTerminate(options.get()));
  ASSERT_CALL(run_loop(session.get(), 3, options.get(), &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{3}));
}

TEST(Run, TakesOneElementOfSomeDimsForAScalar) {
  const auto session = session_of(loop_model());
  std::vector<float> zero = {0};
  int64_t rounds = 2;
  const int64_t dims[] = {1};
  const auto a = floats(&zero, {1});
  const auto count =
      make<Value>(api().CreateTensorWithDataAsOrtValue, cpu(), static_cast<void*>(&rounds),
                  sizeof rounds, dims, size_t{1}, kInt64);
  const char* names[] = {"count", "a"};
  const OrtValue* values[] = {count.get(), a.get()};
  const char* output = "y";
  OrtValue* raw = nullptr;
  ASSERT_CALL(api().Run(session.get(), nullptr, names, values, 2, &output, 1, &raw));
  const Value y(raw);
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{2}));

  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  ASSERT_CALL(api().BindInput(binding.get(), "count", count.get()));
  ASSERT_CALL(api().BindInput(binding.get(), "a", a.get()));
  ASSERT_CALL(api().BindOutputToDevice(binding.get(), "y", cpu()));
  rounds = 3;  // the memory is read by the run
  ASSERT_CALL(api().RunWithBinding(session.get(), nullptr, binding.get()));
  OrtValue** bound = nullptr;
  size_t bound_count = 0;
  ASSERT_CALL(api().GetBoundOutputValues(binding.get(), allocator(), &bound, &bound_count));
  const Value again(bound[0]);
  allocator()->Free(allocator(), bound);
  EXPECT_EQ(floats_of(again.get()), (std::vector<float>{3}));
}

TEST(RunOptions, KeepWhatIsSet) {
  const auto options = make<RunOptions>(api().CreateRunOptions);
  ASSERT_CALL(api().RunOptionsSetRunLogSeverityLevel(options.get(), 3));
  ASSERT_CALL(api().RunOptionsSetRunLogVerbosityLevel(options.get(), 1));
  ASSERT_CALL(api().RunOptionsSetRunTag(options.get(), "tag"));
  int level = 0;
  ASSERT_CALL(api().RunOptionsGetRunLogSeverityLevel(options.get(), &level));
  EXPECT_EQ(level, 3);
  ASSERT_CALL(api().RunOptionsGetRunLogVerbosityLevel(options.get(), &level));
  EXPECT_EQ(level, 1);
  const char* tag = nullptr;
  ASSERT_CALL(api().RunOptionsGetRunTag(options.get(), &tag));
  EXPECT_STREQ(tag, "tag");
  ASSERT_CALL(
      api().AddRunConfigEntry(options.get(), "memory.enable_memory_arena_shrinkage", "cpu:0"));
  if (is_folio()) {
    EXPECT_STREQ(api().GetRunConfigEntry(options.get(), "memory.enable_memory_arena_shrinkage"),
                 "cpu:0");
    EXPECT_EQ(api().GetRunConfigEntry(options.get(), "none"), nullptr);
  }
  const auto session = session_of(add_model());
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y, options.get()));
  EXPECT_EQ(floats_of(y.get())[0], 11);
}

TEST(RunAsync, CallsBackWithTheOutputs) {
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().SetIntraOpNumThreads(options.get(), 2));
  const auto session = session_of(add_model(), options.get());
  struct Done {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_done = false;
    int code = -1;
    size_t count = 0;
    static void call(void* user, OrtValue**, size_t count, OrtStatus* status) {
      auto* done = static_cast<Done*>(user);
      const std::lock_guard<std::mutex> lock(done->mutex);
      done->code = Outcome(status).code;
      done->count = count;
      done->is_done = true;
      done->changed.notify_all();
    }
  } done;
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  const char* input = "x";
  const OrtValue* value = x.get();
  const char* name = "y";
  OrtValue* output = nullptr;
  ASSERT_CALL(api().RunAsync(session.get(), nullptr, &input, &value, 1, &name, 1, &output,
                             Done::call, &done));
  std::unique_lock<std::mutex> lock(done.mutex);
  ASSERT_TRUE(done.changed.wait_for(lock, std::chrono::minutes(1), [&] { return done.is_done; }));
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.count, 1U);
  const Value y(output);
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33}));
}

TEST(Run, ServesManyThreadsAtOnce) {
  const auto session = session_of(matmul_model());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto own = static_cast<float>(t);
      std::vector<float> numbers = {own, 0, 0, 0};
      const auto x = floats(&numbers, {1, 4});
      for (int i = 0; i < 50; ++i) {
        Value y;
        OrtStatus* const status = run_one(session.get(), "x", x.get(), "y", &y);
        if (status || floats_of(y.get())[3] != 3 * own) ++wrong;
        if (status) api().ReleaseStatus(status);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Binding, RunsOverWhatIsBound) {
  const auto session = session_of(add_model());
  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  std::vector<float> numbers = {1, 2, 3};
  std::vector<float> memory(3);
  const auto x = floats(&numbers, {1, 3});
  const auto y = floats(&memory, {1, 3});
  ASSERT_CALL(api().BindInput(binding.get(), "x", x.get()));
  ASSERT_CALL(api().BindOutput(binding.get(), "y", y.get()));
  ASSERT_CALL(api().BindOutputToDevice(binding.get(), "z", cpu()));
  ASSERT_CALL(api().SynchronizeBoundInputs(binding.get()));
  ASSERT_CALL(api().RunWithBinding(session.get(), nullptr, binding.get()));
  ASSERT_CALL(api().SynchronizeBoundOutputs(binding.get()));
  EXPECT_EQ(memory, (std::vector<float>{11, 22, 33}));

  char* names = nullptr;
  size_t* lengths = nullptr;
  size_t count = 0;
  ASSERT_CALL(api().GetBoundOutputNames(binding.get(), allocator(), &names, &lengths, &count));
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(lengths[0], 1U);
  EXPECT_EQ(std::string(names, 2), "yz");
  allocator()->Free(allocator(), names);
  allocator()->Free(allocator(), lengths);

  OrtValue** values = nullptr;
  ASSERT_CALL(api().GetBoundOutputValues(binding.get(), allocator(), &values, &count));
  ASSERT_EQ(count, 2U);
  const Value first(values[0]);
  const Value second(values[1]);
  allocator()->Free(allocator(), values);
  void* data = nullptr;
  ASSERT_CALL(api().GetTensorMutableData(first.get(), &data));
  EXPECT_EQ(data, memory.data());
  EXPECT_EQ(floats_of(second.get()), (std::vector<float>{-9, -18, -27}));

  api().ClearBoundOutputs(binding.get());
  api().ClearBoundInputs(binding.get());
  ASSERT_CALL(api().GetBoundOutputValues(binding.get(), allocator(), &values, &count));
  EXPECT_EQ(count, 0U);
}

TEST(Binding, RefusesNamesThatTheModelLacks) {
  const auto session = session_of(add_model());
  const auto binding = make<Binding>(api().CreateIoBinding, session.get());
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  EXPECT_TRUE(fails(api().BindInput(binding.get(), "q", x.get()),
                    is_folio() ? kInvalidArgument : kFail, {"'q'"}));
}

}  // namespace
}  // namespace dropin_test
