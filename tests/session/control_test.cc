// Sessions and threads: runs at once, cancelling, timeouts, closing.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/model_tester.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using std::chrono::milliseconds;

// A Loop that ends after `trips` iterations, which may be never.
ModelWriter loop_model() {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("trips", model_writer::Type::tensor(kI64, {}));
  graph.initializer(f32_tensor("start", {1}, {0}));
  graph.initializer(f32_tensor("one", {1}, {1}));
  GraphWriter body("body");
  body.input("i", model_writer::Type::tensor(kI64, {}));
  body.input("go", model_writer::Type::tensor(kBoolean, {}));
  body.input("sum", f32_type({1}));
  body.node("Identity", {"go"}, {"go_on"});
  body.node("Add", {"sum", "one"}, {"next"});
  body.output("go_on", model_writer::Type::tensor(kBoolean, {}));
  body.output("next", f32_type({1}));
  graph.node("Loop", {"trips", "", "start"}, {"y"})
      .named("forever")
      .attr_graph("body", std::move(body));
  graph.output("y", f32_type({1}));
  return writer;
}

const std::vector<NamedValue> kForever{{"trips", make_tensor<int64_t>({}, {INT64_MAX})}};

Ref<Session> loop_session() {
  auto session = open_session(loop_model());
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  return session.is_ok() ? std::move(session).take() : nullptr;
}

TEST(SessionControl, ALoopRunsToItsEnd) {
  const Ref<Session> session = loop_session();
  ASSERT_TRUE(session);
  const auto outputs = run_all(*session, {{"trips", make_tensor<int64_t>({}, {5})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{5}));
}

TEST(SessionControl, AnotherThreadCancels) {
  const Ref<Session> session = loop_session();
  ASSERT_TRUE(session);
  std::atomic<bool> cancel{false};
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    cancel = true;
  });
  RunOptions options;
  options.cancel = &cancel;
  options.tag = "request 7";
  std::vector<Value> outputs;
  const Status status = session->run(options, kForever, {{"y", Tensor()}}, &outputs);
  canceller.join();
  EXPECT_TRUE(fails_with(status, Code::kCancelled, {"request 7", "cancelled"}));
  EXPECT_TRUE(outputs.empty());
  EXPECT_EQ(session->metrics().cancelled, 1U);
  EXPECT_EQ(session->metrics().failed, 0U);
  // The session is as good as before.
  EXPECT_TRUE(run_all(*session, {{"trips", make_tensor<int64_t>({}, {2})}}).is_ok());
}

TEST(SessionControl, ATimeoutEndsARun) {
  const Ref<Session> session = loop_session();
  ASSERT_TRUE(session);
  RunOptions options;
  options.timeout = milliseconds(50);
  std::vector<Value> outputs;
  const auto start = std::chrono::steady_clock::now();
  const Status status = session->run(options, kForever, {{"y", Tensor()}}, &outputs);
  EXPECT_TRUE(fails_with(status, Code::kCancelled, {"timed out"}));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(50));
}

TEST(SessionControl, TheLongestTimeoutIsNone) {
  const Ref<Session> session = loop_session();
  ASSERT_TRUE(session);
  RunOptions options;
  options.timeout = milliseconds::max();
  std::vector<Value> outputs;
  const std::vector<NamedValue> inputs{{"trips", make_tensor<int64_t>({}, {3})}};
  const Status status = session->run(options, inputs, {{"y", Tensor()}}, &outputs);
  EXPECT_TRUE(status.is_ok()) << text_of(status);
}

TEST(SessionControl, ClosingCancelsRunsOrWaitsForThem) {
  for (const auto how : {Session::Close::kCancel, Session::Close::kWait}) {
    const Ref<Session> session = loop_session();
    ASSERT_TRUE(session);
    Status status;
    std::thread runner([&] {
      RunOptions options;
      if (how == Session::Close::kWait) options.timeout = milliseconds(300);
      std::vector<Value> outputs;
      status = session->run(options, kForever, {{"y", Tensor()}}, &outputs);
    });
    std::this_thread::sleep_for(milliseconds(50));
    session->close(how);
    EXPECT_TRUE(session->is_closed());
    runner.join();
    if (status.code() != Code::kClosed) {  // the machine was too slow: closed before it started
      EXPECT_TRUE(fails_with(status, Code::kCancelled,
                             {how == Session::Close::kCancel ? "closing" : "timed out"}));
    }
    EXPECT_EQ(run_all(*session, kForever).status().code(), Code::kClosed);
    session->close(Session::Close::kWait);  // again
  }
}

TEST(SessionControl, ManyThreadsCloseAndRunAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const Ref<Session> session = loop_session();
    ASSERT_TRUE(session);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const auto outputs = run_all(*session, {{"trips", make_tensor<int64_t>({}, {20})}});
          if (outputs.is_ok()) {
            EXPECT_EQ(floats_of(outputs.value()[0])[0], 20);
            continue;
          }
          const Code code = outputs.status().code();
          EXPECT_TRUE(code == Code::kClosed || code == Code::kCancelled);
          if (code == Code::kClosed) break;
        }
      });
    }
    std::this_thread::sleep_for(milliseconds(2));
    session->close(round % 2 == 0 ? Session::Close::kCancel : Session::Close::kWait);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(SessionControl, EightThreadsGetEqualResults) {
  model_writer::MlpOptions mlp;
  mlp.layers = 3;
  mlp.width = 48;
  const auto session = open_session(model_writer::build_mlp(mlp).model);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  Session& opened = *session.value();
  const auto input_of = [](int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows) * 48);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 23) / 11 - 1;
    return Value(make_tensor<float>({rows, 48}, x));
  };
  std::vector<std::vector<float>> expected;
  for (int64_t rows = 1; rows <= 8; ++rows) {
    const auto outputs = run_all(opened, {{"x", input_of(rows)}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    expected.push_back(floats_of(outputs.value()[0]));
  }
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 30; ++i) {
        const int64_t rows = (t + i) % 8 + 1;
        const auto outputs = run_all(opened, {{"x", input_of(rows)}});
        ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
        EXPECT_EQ(floats_of(outputs.value()[0]), expected[static_cast<size_t>(rows) - 1]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened.metrics().runs, 8U + 8 * 30);
}

TEST(SessionControl, SessionsOfOneFileComeAndGoOnManyThreads) {
  model_writer::MlpOptions mlp;
  mlp.layers = 2;
  mlp.width = 32;
  const auto file = open_model(model_writer::build_mlp(mlp).model);
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        SessionOptions options;
        options.prepack = (i + t) % 2 == 0;
        const auto session = Session::create(file.value(), options);
        ASSERT_TRUE(session.is_ok()) << text_of(session.status());
        const Value x = make_tensor<float>({1, 32}, std::vector<float>(32, 1));
        EXPECT_TRUE(run_all(*session.value(), {{"x", x}}).is_ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace folio
