// Sessions: sharing, inputs and outputs by name, replaced initializers, failing allocations.
#include "core/session/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "core/os/arena.h"
#include "core/os/memory_source.h"
#include "tests/support/model_tester.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

// y = x[n, 3] + w[3]
ModelWriter add_model() {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 3}));
  graph.initializer(f32_tensor("w", {3}, {1, 2, 3}));
  graph.node("Add", {"x", "w"}, {"y"}).named("add");
  graph.output("y", f32_type({"n", 3}));
  return writer;
}

Value row(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return make_tensor<float>({1, count}, values);
}

Status run_with(Session& session, const std::vector<NamedValue>& inputs) {
  return run_all(session, inputs).status();
}

TEST(Session, WrongInputsAreNamedWithWhatWasExpected) {
  const auto opened = open_session(add_model());
  ASSERT_TRUE(opened.is_ok()) << text_of(opened.status());
  Session& session = *opened.value();
  const Code code = Code::kInvalidArgument;
  EXPECT_TRUE(fails_with(run_with(session, {{"z", row({1, 2, 3})}}), code, {"'z'", "it has 'x'"}));
  EXPECT_TRUE(fails_with(run_with(session, {}), code, {"'x'", "missing", "tensor(float)[n,3]"}));
  EXPECT_TRUE(fails_with(run_with(session, {{"x", make_tensor<int64_t>({1, 3}, {1, 2, 3})}}), code,
                         {"'x'", "int64", "expected float"}));
  EXPECT_TRUE(fails_with(run_with(session, {{"x", make_tensor<float>({3}, {1, 2, 3})}}), code,
                         {"'x'", "[3]", "tensor(float)[n,3]"}));
  EXPECT_TRUE(fails_with(run_with(session, {{"x", row({1, 2})}}), code,
                         {"'x'", "[1,2]", "tensor(float)[n,3]"}));
  EXPECT_TRUE(fails_with(run_with(session, {{"x", row({1, 2, 3})}, {"x", row({1, 2, 3})}}), code,
                         {"'x'", "twice"}));
  EXPECT_TRUE(fails_with(run_with(session, {{"x", make_sequence(DType::kFloat, {})}}), code,
                         {"'x'", "tensor(float)[n,3]"}));
  EXPECT_TRUE(fails_with(run_with(session, {{"x", Value()}}), code, {"'x'", "tensor(float)[n,3]"}));
}

TEST(Session, WrongOutputsAreNamed) {
  const auto opened = open_session(add_model());
  ASSERT_TRUE(opened.is_ok());
  std::vector<Value> outputs;
  const std::vector<NamedValue> inputs{{"x", row({1, 2, 3})}};
  EXPECT_TRUE(fails_with(opened.value()->run({}, inputs, {{"q", Tensor()}}, &outputs),
                         Code::kInvalidArgument, {"'q'", "it has 'y'"}));
  EXPECT_TRUE(
      fails_with(opened.value()->run({}, inputs, {{"y", Tensor()}, {"y", Tensor()}}, &outputs),
                 Code::kInvalidArgument, {"'y'", "twice"}));
}

TEST(Session, UnusedInputsMayBeLeftOut) {
  ModelWriter writer = add_model();
  writer.graph().input("unused", f32_type({2}));
  const auto opened = open_session(writer);
  ASSERT_TRUE(opened.is_ok());
  EXPECT_TRUE(run_with(*opened.value(), {{"x", row({1, 2, 3})}}).is_ok());
  // Given all the same, it is checked.
  EXPECT_TRUE(fails_with(run_with(*opened.value(), {{"x", row({1, 2, 3})}, {"unused", row({1})}}),
                         Code::kInvalidArgument, {"'unused'"}));
}

TEST(Session, UnalignedInputsAreCopied) {
  const auto opened = open_session(add_model());
  ASSERT_TRUE(opened.is_ok());
  std::vector<uint8_t> bytes(1 + 3 * sizeof(float));
  const float numbers[] = {1, 2, 3};
  std::memcpy(bytes.data() + 1, numbers, sizeof(numbers));
  Ref<Buffer> buffer =
      view_buffer(Buffer::Kind::kBorrowed, bytes.data() + 1, sizeof(numbers), nullptr);
  const Tensor unaligned(DType::kFloat, {1, 3}, bytes.data() + 1, std::move(buffer));
  const auto outputs = run_all(*opened.value(), {{"x", unaligned}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{2, 4, 6}));
}

TEST(Session, EqualSessionsShareAProgram) {
  const auto file = open_model(add_model());
  ASSERT_TRUE(file.is_ok());
  const auto first = Session::create(file.value(), {});
  const auto second = Session::create(file.value(), {});
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_EQ(&first.value()->program(), &second.value()->program());
  SessionOptions flushing;
  flushing.flush_denormals = true;
  flushing.threads = 1;
  EXPECT_EQ(&Session::create(file.value(), flushing).value()->program(), &first.value()->program());
  SessionOptions unpacked;
  unpacked.prepack = false;
  const auto third = Session::create(file.value(), unpacked);
  ASSERT_TRUE(third.is_ok());
  EXPECT_NE(&third.value()->program(), &first.value()->program());
  SessionOptions plain;
  plain.optimize = Optimize::kOff;
  const auto fourth = Session::create(file.value(), plain);
  ASSERT_TRUE(fourth.is_ok());
  EXPECT_NE(&fourth.value()->program(), &first.value()->program());
}

TEST(Session, FreeDimsAreToldApartWhateverTheirNames) {
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({"a", "a=1 b"}));
  writer.graph().node("Neg", {"x"}, {"y"});
  writer.graph().output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto file = open_model(writer);
  ASSERT_TRUE(file.is_ok());
  SessionOptions one;
  one.free_dims = {{"a", 1}, {"b", 2}};
  SessionOptions other;
  other.free_dims = {{"a=1 b", 2}};
  const auto first = Session::create(file.value(), one);
  const auto second = Session::create(file.value(), other);
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_NE(&first.value()->program(), &second.value()->program());
  const Value x = make_tensor<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_FALSE(run_with(*first.value(), {{"x", x}}).is_ok());
  EXPECT_TRUE(run_with(*second.value(), {{"x", x}}).is_ok());
}

TEST(Session, ReplacedInitializersMustFit) {
  const auto with = [](const std::string& name, Tensor tensor) {
    SessionOptions options;
    options.initializers = {{name, std::move(tensor)}};
    return open_session(add_model(), options);
  };
  const auto replaced = with("w", make_tensor<float>({3}, {10, 20, 30}));
  ASSERT_TRUE(replaced.is_ok()) << text_of(replaced.status());
  const auto outputs = run_all(*replaced.value(), {{"x", row({1, 2, 3})}});
  ASSERT_TRUE(outputs.is_ok());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{11, 22, 33}));
  EXPECT_TRUE(fails_with(with("nothing", make_tensor<float>({3}, {1, 2, 3})).status(),
                         Code::kInvalidArgument, {"'nothing'"}));
  EXPECT_TRUE(fails_with(with("w", make_tensor<float>({2}, {1, 2})).status(),
                         Code::kInvalidArgument, {"'w'", "[3]", "[2]"}));
  EXPECT_TRUE(fails_with(with("w", make_tensor<int32_t>({3}, {1, 2, 3})).status(),
                         Code::kInvalidArgument, {"'w'", "float", "int32"}));
}

TEST(Session, LoadErrorsNameTheFileOnce) {
  ModelWriter writer = add_model();
  writer.graph().node("Foo", {"x"}, {"z"}).named("foo");
  MemorySourceOptions named;
  named.name = "models/a.onnx";
  const std::string bytes = writer.serialize();
  const Bytes view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto file = ModelFile::open(MemorySource::copy(view, named).take(), {});
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  EXPECT_EQ(file.value()->info().unsupported.size(), 1U);
  const auto session = Session::create(file.value(), {});
  EXPECT_TRUE(fails_with(session.status(), Code::kUnsupportedOperator, {"models/a.onnx: ", "foo"}));
  // A second try says the same: nothing was used up.
  EXPECT_EQ(Session::create(file.value(), {}).status().message(), session.status().message());
}

TEST(Session, ProgressMayCancel) {
  SessionOptions options;
  int calls = 0;
  options.progress = [&](float done, const char*) {
    ++calls;
    return done < 0.3F;
  };
  const auto session = open_session(add_model(), options);
  EXPECT_EQ(session.status().code(), Code::kCancelled);
  EXPECT_EQ(calls, 3);
}

TEST(Session, ProgressMayCancelWhileConstantsAreComputed) {
  constexpr int kFolded = 20;
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  graph.input("x", f32_type({}));
  graph.initializer(f32_tensor("c0", {}, {1}));
  for (int i = 0; i < kFolded; ++i) {
    graph.node("Exp", {"c" + std::to_string(i)}, {"c" + std::to_string(i + 1)});
  }
  graph.node("Add", {"x", "c" + std::to_string(kFolded)}, {"y"});
  graph.output("y", f32_type({}));
  SessionOptions options;
  int calls = 0;
  float last = 0;
  options.progress = [&](float done, const char* what) {
    EXPECT_GE(done, last);
    last = done;
    calls += std::string_view(what) == "optimize" ? 1 : 0;
    return calls < kFolded / 2;
  };
  const auto session = open_session(writer, options);
  EXPECT_EQ(session.status().code(), Code::kCancelled);
  EXPECT_EQ(calls, kFolded / 2);
}

TEST(Session, TheModelMayGoBeforeItsSession) {
  Ref<Session> session;
  {
    auto file = open_model(add_model());
    ASSERT_TRUE(file.is_ok());
    session = Session::create(std::move(file).take(), {}).take();
  }
  EXPECT_TRUE(run_with(*session, {{"x", row({1, 2, 3})}}).is_ok());
}

TEST(Session, OutputsMayOutliveEverything) {
  std::vector<Value> outputs;
  {
    ModelWriter writer = add_model();
    writer.graph().output("w", f32_type({3}));
    writer.graph().output("x", f32_type({"n", 3}));
    outputs = run_once(writer, {{"x", row({1, 2, 3})}}).take();
  }
  ArenaPool::process().trim();
  EXPECT_EQ(floats_of(outputs[0]), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(floats_of(outputs[1]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(floats_of(outputs[2]), (std::vector<float>{1, 2, 3}));
}

// The n-th allocation from now on fails.
std::atomic<int64_t> g_allocations{0};
std::atomic<int64_t> g_failing{0};

bool fail_nth(size_t) { return ++g_allocations != g_failing; }

// Calls `attempt` with the 1st, 2nd ... allocation failing until one goes by without a failure.
// Each must work (what failed was not vital) or be kOutOfMemory. Gives how many were refused.
template <typename Attempt>
int fail_each_allocation(Attempt&& attempt) {
  int refused = 0;
  for (int64_t n = 1;; ++n) {
    g_allocations = 0;
    g_failing = n;
    set_allocation_hook(fail_nth);
    const Status status = attempt();
    set_allocation_hook(nullptr);
    if (!status.is_ok()) {
      EXPECT_EQ(status.code(), Code::kOutOfMemory)
          << "allocation " << n << ": " << status.message();
      ++refused;
    }
    if (g_allocations < n) {
      EXPECT_TRUE(status.is_ok()) << text_of(status);
      return refused;
    }
  }
}

std::vector<NamedValue> inputs_of(const Session& session) {
  std::vector<NamedValue> inputs;
  for (const PortInfo& port : session.program().inputs) {
    if (port.has_default || !port.type.is_tensor()) continue;
    Shape shape;
    for (const Dim dim : *port.type.dims) shape.push_back(dim.is_value() ? dim.value : 2);
    Tensor tensor = allocate_tensor(port.type.dtype, shape).take();
    std::memset(tensor.raw_mut(), 0, tensor.bytes());
    inputs.push_back({port.name, tensor});
  }
  return inputs;
}

void expect_survives(const ModelWriter& writer, bool prepack) {
  const Ref<ByteSource> source = source_of(writer.serialize());
  SessionOptions options;
  options.prepack = prepack;
  options.threads = 1;
  Ref<Session> session;
  const int refused = fail_each_allocation([&]() -> Status {
    session = nullptr;
    FOLIO_TRY(Ref<ModelFile> file, ModelFile::open(source, {}));
    FOLIO_TRY(session, Session::create(std::move(file), options));
    return Status::ok();
  });
  EXPECT_GT(refused, 0);
  ASSERT_TRUE(session);
  const std::vector<NamedValue> inputs = inputs_of(*session);
  const int refused_runs = fail_each_allocation([&] {
    ArenaPool::process().trim();
    return run_with(*session, inputs);
  });
  EXPECT_GT(refused_runs, 0);
}

TEST(Session, EveryFailingAllocationIsReported) {
  model_writer::MlpOptions mlp;
  mlp.layers = 2;
  mlp.width = 40;
  for (const bool prepack : {true, false}) {
    expect_survives(model_writer::build_mlp(mlp).model, prepack);
  }
}

TEST(Session, EveryFailingAllocationIsReportedInControlFlow) {
  expect_survives(model_writer::build_control(1).model, true);
}

TEST(Session, EveryFailingAllocationIsReportedWhileFolding) {
  model_writer::FoldOptions fold;
  fold.width = 160;  // beyond what is folded at once
  expect_survives(model_writer::build_fold(fold).model, true);
}

}  // namespace
}  // namespace folio
