#include <atomic>
#include <chrono>
#include <thread>

#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

constexpr int64_t kForever = int64_t{1} << 60;  // rounds of the loop model

// Waits until the session computes. Fails the test after a minute.
void wait_for_runs(const FolioSession* session, uint64_t count) {
  auto metrics = sized<FolioMetrics>();
  for (int i = 0; i < 60000; ++i) {
    ASSERT_CALL(api().SessionGetMetrics(session, &metrics));
    if (metrics.in_flight_count >= count) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL() << "no run began";
}

FolioStatus* run_loop(FolioSession* session, int64_t rounds, const FolioRunOptions* options,
                      Value* result) {
  const auto count = int64_scalar(rounds);
  const auto a = floats({0}, {1});
  const char* input_names[] = {"count", "a"};
  FolioValue* inputs[] = {count.get(), a.get()};
  const char* output = "y";
  FolioValue* raw = nullptr;
  FolioStatus* status = api().Run(session, options, input_names, inputs, 2, &output, 1, &raw);
  result->reset(raw);
  return status;
}

TEST(Run, GivesNewOutputsInAnyOrder) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const char* input = "x";
  FolioValue* value = x.get();
  const char* names[] = {"z", "y"};
  FolioValue* raw[2] = {};
  ASSERT_CALL(api().Run(session.get(), nullptr, &input, &value, 1, names, 2, raw));
  const Value z(raw[0]), y(raw[1]);
  EXPECT_EQ(floats_of(z.get()), (std::vector<float>{-9, -18, -27, -6, -15, -24}));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(dims_of(y.get()), (std::vector<int64_t>{2, 3}));
}

TEST(Run, GivesASubsetOfTheOutputs) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3}, {1, 3});
  Value z;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "z", &z));
  EXPECT_EQ(floats_of(z.get()), (std::vector<float>{-9, -18, -27}));
}

TEST(Run, WritesIntoTensorsThatAreGiven) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3}, {1, 3});
  float memory[3] = {};
  const int64_t dims[] = {1, 3};
  const auto y = make<Value>(api().CreateTensorWithData, static_cast<void*>(memory), sizeof memory,
                             dims, size_t{2}, FOLIO_FLOAT, FolioReleaseFunction{nullptr},
                             static_cast<void*>(nullptr));
  const char* input = "x";
  const char* names[] = {"y", "z"};
  FolioValue* value = x.get();
  FolioValue* raw[2] = {y.get(), nullptr};
  ASSERT_CALL(api().Run(session.get(), nullptr, &input, &value, 1, names, 2, raw));
  EXPECT_EQ(raw[0], y.get());
  const Value z(raw[1]);
  EXPECT_EQ(memory[0], 11);
  EXPECT_EQ(memory[2], 33);
  EXPECT_EQ(floats_of(z.get()), (std::vector<float>{-9, -18, -27}));
}

TEST(Run, OutputOfAnotherShapeTypeOrKindIsRefused) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3}, {1, 3});
  const auto wrong_shape = floats({0, 0, 0}, {3});
  const int64_t dims[] = {1, 3};
  const auto wrong_type = make<Value>(api().CreateTensor, FOLIO_DOUBLE, dims, size_t{2});
  const float memory[3] = {};
  const auto constant = make<Value>(
      api().CreateTensorWithConstData, static_cast<const void*>(memory), sizeof memory, dims,
      size_t{2}, FOLIO_FLOAT, FolioReleaseFunction{nullptr}, static_cast<void*>(nullptr));
  const char* input = "x";
  const char* output = "y";
  FolioValue* value = x.get();
  for (const auto& [given, part] : {std::pair{wrong_shape.get(), "[3]"},
                                    {wrong_type.get(), "double"},
                                    {constant.get(), "const"},
                                    {x.get(), "share memory"}}) {
    FolioValue* raw = given;
    EXPECT_TRUE(fails(api().Run(session.get(), nullptr, &input, &value, 1, &output, 1, &raw),
                      FOLIO_INVALID_ARGUMENT, {"'y'", part}));
    EXPECT_EQ(raw, given);
  }
}

TEST(Run, WrongInputsAreNamed) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3}, {1, 3});
  const auto rank1 = floats({1, 2, 3}, {3});
  const auto dim4 = floats({1, 2, 3, 4}, {1, 4});
  const int64_t dims[] = {1, 3};
  const auto doubles = make<Value>(api().CreateTensor, FOLIO_DOUBLE, dims, size_t{2});
  FolioValue* element = x.get();
  const auto sequence = make<Value>(api().CreateSequence, FOLIO_FLOAT, &element, size_t{1});
  Value y;
  const auto refused = [&](FolioValue* value, std::initializer_list<const char*> parts) {
    return fails(run_one(session.get(), "x", value, "y", &y), FOLIO_INVALID_ARGUMENT, parts);
  };
  EXPECT_TRUE(refused(rank1.get(), {"'x'", "[3]", "batch"})) << "rank";
  EXPECT_TRUE(refused(dim4.get(), {"'x'", "[1,4]"})) << "dim";
  EXPECT_TRUE(refused(doubles.get(), {"'x'", "double", "float"})) << "type";
  EXPECT_TRUE(refused(sequence.get(), {"'x'", "tensor(float)"})) << "kind";
  EXPECT_TRUE(refused(nullptr, {"'x'", "NULL"}));
  EXPECT_TRUE(fails(run_one(session.get(), "ex", x.get(), "y", &y), FOLIO_INVALID_ARGUMENT,
                    {"no input 'ex'", "'x'"}));
  EXPECT_TRUE(fails(run_one(session.get(), "x", x.get(), "why", &y), FOLIO_INVALID_ARGUMENT,
                    {"no output 'why'"}));
  const char* output = "y";
  FolioValue* raw = nullptr;
  EXPECT_TRUE(fails(api().Run(session.get(), nullptr, nullptr, nullptr, 0, &output, 1, &raw),
                    FOLIO_INVALID_ARGUMENT, {"'x'", "missing"}));
  EXPECT_EQ(raw, nullptr);
}

TEST(Run, NamesGivenTwiceAreRefused) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3}, {1, 3});
  const char* inputs[] = {"x", "x"};
  FolioValue* values[] = {x.get(), x.get()};
  const char* outputs[] = {"y", "y"};
  FolioValue* raw[2] = {};
  EXPECT_TRUE(fails(api().Run(session.get(), nullptr, inputs, values, 2, outputs, 1, raw),
                    FOLIO_INVALID_ARGUMENT, {"'x'", "twice"}));
  EXPECT_TRUE(fails(api().Run(session.get(), nullptr, inputs, values, 1, outputs, 2, raw),
                    FOLIO_INVALID_ARGUMENT, {"'y'", "twice"}));
  EXPECT_TRUE(fails(api().Run(session.get(), nullptr, inputs, values, 1, outputs, 0, raw),
                    FOLIO_INVALID_ARGUMENT, {"no output"}));
}

TEST(Run, NamesThatAreNotUtf8AreRefused) {
  const auto session = session_of(add_model());
  const auto x = floats({1, 2, 3}, {1, 3});
  Value y;
  const Outcome outcome(run_one(session.get(), "x\xff", x.get(), "y", &y));
  EXPECT_EQ(outcome.code, FOLIO_INVALID_ARGUMENT);
  EXPECT_NE(outcome.message.find("not valid UTF-8"), std::string::npos);
  EXPECT_EQ(outcome.message.find('\xff'), std::string::npos) << "messages are valid UTF-8";
  EXPECT_TRUE(fails(run_one(session.get(), "x", x.get(), "\xc0\x80", &y), FOLIO_INVALID_ARGUMENT,
                    {"UTF-8"}));
}

TEST(Run, StringsPassWithTheirNuls) {
  const auto session = session_of(string_model());
  const char* strings[] = {"a\0b", "c"};
  const size_t bytes[] = {3, 1};
  const int64_t dims[] = {2};
  const auto s = make<Value>(api().CreateStringTensor, strings, bytes, dims, size_t{1});
  Value t;
  ASSERT_CALL(run_one(session.get(), "s", s.get(), "t", &t));
  const char* text = nullptr;
  size_t length = 0;
  ASSERT_CALL(api().GetStringTensorElement(t.get(), 0, &text, &length));
  EXPECT_EQ(std::string(text, length), std::string("a\0b", 3));
}

TEST(Run, ConstantsOfTheModelCannotBeChangedThroughOutputs) {
  const auto session = session_of(constant_model());
  for (int round = 0; round < 2; ++round) {
    const auto x = floats({0}, {1});
    Value y;
    ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
    EXPECT_EQ(floats_of(y.get()), (std::vector<float>{1, 2, 3})) << "round " << round;
    void* data = nullptr;
    ASSERT_CALL(api().GetTensorMutableData(y.get(), &data));
    static_cast<float*>(data)[0] = 77;
  }
}

TEST(Run, InputsAndOutputsNeverShareMemory) {
  const auto session = session_of(string_model());
  const char* strings[] = {"kept"};
  const int64_t dims[] = {1};
  auto s = make<Value>(api().CreateStringTensor, strings, static_cast<const size_t*>(nullptr), dims,
                       size_t{1});
  Value t;
  ASSERT_CALL(run_one(session.get(), "s", s.get(), "t", &t));
  const char* in = nullptr;
  const char* out = nullptr;
  size_t length = 0;
  ASSERT_CALL(api().GetStringTensorElement(s.get(), 0, &in, &length));
  ASSERT_CALL(api().GetStringTensorElement(t.get(), 0, &out, &length));
  EXPECT_NE(in, out);
  s.reset();
  EXPECT_STREQ(out, "kept");
}

TEST(Run, EightThreadsOnOneSessionGetTheirOwnResults) {
  const auto session = session_of(matmul_model());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto batch = static_cast<int64_t>(1 + (t + i) % 5);
        const auto k = static_cast<float>(t * 100 + i);
        const auto x = floats(std::vector<float>(static_cast<size_t>(4 * batch), k), {batch, 4});
        Value y;
        const Outcome outcome(run_one(session.get(), "x", x.get(), "y", &y));
        if (outcome.code != FOLIO_OK) {
          ++wrong;
          continue;
        }
        const auto out = floats_of(y.get());
        for (size_t j = 0; j < out.size(); ++j) {
          const float column = static_cast<float>(24 + 4 * (j % 4));  // sum of w's column
          if (out[j] != k * column) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  auto metrics = sized<FolioMetrics>();
  ASSERT_CALL(api().SessionGetMetrics(session.get(), &metrics));
  EXPECT_EQ(metrics.run_count, 400u);
  EXPECT_EQ(metrics.in_flight_count, 0u);
  uint64_t in_buckets = 0;
  for (const uint64_t bucket : metrics.latency_buckets) in_buckets += bucket;
  EXPECT_EQ(in_buckets, 400u);
}

TEST(Run, CancelEndsARunFromAnotherThread) {
  const auto session = session_of(loop_model());
  const auto options = make<RunOptions>(api().CreateRunOptions);
  auto cancel = make<Cancel>(api().CreateCancel);
  ASSERT_CALL(api().RunOptionsSetCancel(options.get(), cancel.get()));
  ASSERT_CALL(api().RunOptionsSetRunTag(options.get(), "the long one"));
  FolioStatus* status = nullptr;
  Value y;
  std::thread runner([&] { status = run_loop(session.get(), kForever, options.get(), &y); });
  wait_for_runs(session.get(), 1);
  ASSERT_CALL(api().CancelRequest(cancel.get()));
  runner.join();
  EXPECT_TRUE(fails(status, FOLIO_CANCELLED, {"the long one"}));
  EXPECT_EQ(y, nullptr);
  int32_t is_requested = 0;
  ASSERT_CALL(api().CancelIsRequested(cancel.get(), &is_requested));
  EXPECT_EQ(is_requested, 1);
  cancel.reset();  // the options hold it
  EXPECT_TRUE(fails(run_loop(session.get(), 1, options.get(), &y), FOLIO_CANCELLED));
  ASSERT_CALL(api().RunOptionsSetCancel(options.get(), nullptr));
  EXPECT_CALL(run_loop(session.get(), 3, options.get(), &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{3}));
}

TEST(Run, TimeoutEndsARun) {
  const auto session = session_of(loop_model());
  const auto options = make<RunOptions>(api().CreateRunOptions);
  ASSERT_CALL(api().RunOptionsSetTimeout(options.get(), 20));
  Value y;
  EXPECT_TRUE(
      fails(run_loop(session.get(), kForever, options.get(), &y), FOLIO_CANCELLED, {"timed out"}));
  ASSERT_CALL(api().RunOptionsSetTimeout(options.get(), UINT64_MAX));
  EXPECT_CALL(run_loop(session.get(), 2, options.get(), &y));
  auto metrics = sized<FolioMetrics>();
  ASSERT_CALL(api().SessionGetMetrics(session.get(), &metrics));
  EXPECT_EQ(metrics.cancelled_count, 1u);
  EXPECT_EQ(metrics.error_count, 0u);
}

TEST(Close, CancelEndsRunsAndRefusesNewOnes) {
  const auto session = session_of(loop_model());
  FolioStatus* status = nullptr;
  Value y;
  std::thread runner([&] { status = run_loop(session.get(), kForever, nullptr, &y); });
  wait_for_runs(session.get(), 1);
  ASSERT_CALL(api().SessionClose(session.get(), FOLIO_CLOSE_CANCEL));
  auto metrics = sized<FolioMetrics>();
  ASSERT_CALL(api().SessionGetMetrics(session.get(), &metrics));
  EXPECT_EQ(metrics.run_count, 1u) << "close waits for the run";
  runner.join();
  EXPECT_TRUE(fails(status, FOLIO_CANCELLED));
  EXPECT_TRUE(fails(run_loop(session.get(), 1, nullptr, &y), FOLIO_CLOSED));
  EXPECT_CALL(api().SessionClose(session.get(), FOLIO_CLOSE_WAIT)) << "closing again";
  size_t count = 0;
  EXPECT_CALL(api().SessionGetInputCount(session.get(), &count)) << "still answers";
}

TEST(Close, WaitLetsRunsFinish) {
  const auto session = session_of(loop_model());
  FolioStatus* status = nullptr;
  Value y;
  // Long enough to be seen running, however fast the machine.
  std::atomic<bool> done{false};
  std::thread runner([&] {
    status = run_loop(session.get(), 300000, nullptr, &y);
    done = true;
  });
  wait_for_runs(session.get(), 1);
  ASSERT_CALL(api().SessionClose(session.get(), FOLIO_CLOSE_WAIT));
  runner.join();
  EXPECT_TRUE(is_ok(status));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{300000}));
  EXPECT_TRUE(fails(run_loop(session.get(), 1, nullptr, &y), FOLIO_CLOSED));
  EXPECT_TRUE(
      fails(api().SessionPrepareShapes(session.get(), nullptr, nullptr, nullptr, 0), FOLIO_CLOSED));
}

TEST(Close, UnknownModeIsRefused) {
  const auto session = session_of(add_model());
  EXPECT_TRUE(fails(api().SessionClose(session.get(), static_cast<FolioCloseMode>(5)),
                    FOLIO_INVALID_ARGUMENT, {"5"}));
}

TEST(Options, FreeDimensionsAreFixedAndShown) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  ASSERT_CALL(api().AddFreeDimensionOverrideByName(options.get(), "batch", 2));
  EXPECT_TRUE(fails(api().AddFreeDimensionOverrideByName(options.get(), "batch", -1),
                    FOLIO_INVALID_ARGUMENT, {"batch"}));
  const auto session = session_of(add_model(), options.get());
  const FolioValueInfo* info = nullptr;
  const int64_t* dims = nullptr;
  size_t count = 0;
  for (const auto get : {api().SessionGetInput, api().SessionGetOutput}) {
    ASSERT_CALL(get(session.get(), 0, &info));
    ASSERT_CALL(api().ValueInfoGetDims(info, &dims, &count));
    ASSERT_EQ(count, 2u);
    EXPECT_EQ(dims[0], 2);
  }
  const auto one = floats({1, 2, 3}, {1, 3});
  Value y;
  EXPECT_TRUE(
      fails(run_one(session.get(), "x", one.get(), "y", &y), FOLIO_INVALID_ARGUMENT, {"[1,3]"}));
  const auto two = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_CALL(run_one(session.get(), "x", two.get(), "y", &y));
}

TEST(Options, InitializersAreReplaced) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  auto w = floats({1, 1, 1}, {3});
  ASSERT_CALL(api().AddInitializer(options.get(), "w", w.get()));
  w.reset();
  const auto session = session_of(add_model(), options.get());
  const auto x = floats({1, 2, 3}, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{2, 3, 4}));
  const auto wrong = floats({1, 1}, {2});
  ASSERT_CALL(api().AddInitializer(options.get(), "w", wrong.get()));
  const std::string model = add_model();
  FolioSession* none = nullptr;
  EXPECT_TRUE(
      fails(api().CreateSessionFromArray(nullptr, model.data(), model.size(), options.get(), &none),
            FOLIO_INVALID_ARGUMENT, {"'w'", "[3]", "[2]"}));
}

TEST(Options, PackCacheHoldsWeightsForLaterSessions) {
  auto cache_options = sized<FolioPackCacheOptions>();
  cache_options.hold = 1;
  const auto cache = make<PackCache>(api().CreatePackCache, &cache_options);
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  ASSERT_CALL(api().SessionOptionsSetPackCache(options.get(), cache.get()));
  const TempFolder folder;
  const std::string path = folder.write("matmul.onnx", matmul_model());
  auto stats = sized<FolioPackCacheStats>();
  for (int round = 0; round < 2; ++round) {
    make<Session>(api().CreateSession, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                  options.get());
    ASSERT_CALL(api().PackCacheGetStats(cache.get(), &stats));
    EXPECT_EQ(stats.miss_count, stats.blob_count) << "round " << round;
  }
  EXPECT_EQ(stats.hit_count, stats.miss_count);
  EXPECT_CALL(api().PackCacheGetStats(nullptr, &stats));
}

TEST(Session, IsPackedAtLastAndSaysSo) {
  const TempFolder folder;
  const std::string path = folder.write("matmul.onnx", matmul_model());
  const auto session =
      make<Session>(api().CreateSession, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                    static_cast<const FolioSessionOptions*>(nullptr));
  int32_t is_packed = -1;
  EXPECT_TRUE(fails(api().SessionWaitPacked(session.get(), -2, &is_packed), FOLIO_INVALID_ARGUMENT,
                    {"timeout_ms", "-2"}));
  EXPECT_TRUE(
      fails(api().SessionWaitPacked(session.get(), 0, nullptr), FOLIO_INVALID_ARGUMENT, {}));
  EXPECT_TRUE(fails(api().SessionWaitPacked(nullptr, 0, &is_packed), FOLIO_INVALID_ARGUMENT, {}));
  EXPECT_EQ(is_packed, -1) << "untouched";
  EXPECT_CALL(api().SessionWaitPacked(session.get(), 0, &is_packed));
  EXPECT_TRUE(is_packed == 0 || is_packed == 1);
  EXPECT_CALL(api().SessionWaitPacked(session.get(), -1, &is_packed));
  EXPECT_EQ(is_packed, 1);
  EXPECT_CALL(api().SessionWaitPacked(session.get(), 0, &is_packed));
  EXPECT_EQ(is_packed, 1);
}

TEST(Session, ShapesArePreparedOrRefused) {
  const auto session = session_of(add_model());
  const char* names[] = {"x"};
  const int64_t good[] = {5, 3};
  const int64_t bad[] = {5, 4};
  const size_t dim_counts[] = {2};
  const int64_t* dims[] = {good};
  EXPECT_CALL(api().SessionPrepareShapes(session.get(), names, dims, dim_counts, 1));
  EXPECT_TRUE(fails(api().SessionPrepareShapes(session.get(), nullptr, nullptr, nullptr, 0),
                    FOLIO_INVALID_ARGUMENT, {"'x'", "needed"}));
  dims[0] = bad;
  EXPECT_TRUE(fails(api().SessionPrepareShapes(session.get(), names, dims, dim_counts, 1),
                    FOLIO_INVALID_ARGUMENT, {"'x'", "[5,4]"}));
}

TEST(Session, ModelOfASessionOutlivesIt) {
  auto session = session_of(add_model());
  const auto model = make<Model>(api().SessionGetModel, session.get());
  session.reset();
  size_t count = 0;
  ASSERT_CALL(api().ModelGetOutputCount(model.get(), &count));
  EXPECT_EQ(count, 2u);
}

TEST(Session, ManyThreadsMayCreateSessionsOfOneModel) {
  const std::string bytes = matmul_model();
  const auto model = make<Model>(api().OpenModelFromMemory, static_cast<const FolioEnv*>(nullptr),
                                 static_cast<const void*>(bytes.data()), bytes.size(),
                                 FolioReleaseFunction{nullptr}, static_cast<void*>(nullptr),
                                 static_cast<const FolioModelOptions*>(nullptr));
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        FolioSession* session = nullptr;
        const Outcome outcome(api().CreateSessionFromModel(model.get(), nullptr, &session));
        if (outcome.code != FOLIO_OK) ++failed;
        api().ReleaseSession(session);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
}

}  // namespace
}  // namespace capi_test
