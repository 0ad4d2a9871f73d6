// Residual sums in sessions: a convolution writes its result over what it adds, if nobody reads
// that any more.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

constexpr int64_t kImage = 12;
constexpr int64_t kWide = 64;
constexpr int64_t kNarrow = 16;
constexpr int kBlocks = 4;
constexpr size_t kWideBytes = kWide * kImage * kImage * sizeof(float);
constexpr size_t kNarrowBytes = kNarrow * kImage * kImage * sizeof(float);

// kBlocks bottlenecks behind a convolution: r = relu(up(relu(down(r))) + r). `kept`: what the first
// of them gives is read once more at the end.
model_writer::ModelWriter model(bool kept) {
  model_writer::ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  graph.input("x", f32_type({1, kNarrow, kImage, kImage}));
  graph.initializer(f32_tensor("w", {kWide, kNarrow, 1, 1}, small_wave(kWide * kNarrow, 1)));
  graph.node("Conv", {"x", "w"}, {"r0"});
  for (int i = 0; i < kBlocks; ++i) {
    const std::string n = std::to_string(i);
    graph.initializer(f32_tensor("down" + n, {kNarrow, kWide, 1, 1},
                                 small_wave(kNarrow * kWide, static_cast<float>(i + 2))));
    graph.initializer(f32_tensor("up" + n, {kWide, kNarrow, 1, 1},
                                 small_wave(kNarrow * kWide, static_cast<float>(i + 12))));
    graph.node("Conv", {"r" + n, "down" + n}, {"a" + n});
    graph.node("Relu", {"a" + n}, {"b" + n});
    graph.node("Conv", {"b" + n, "up" + n}, {"c" + n});
    graph.node("Add", {"c" + n, "r" + n}, {"s" + n});
    graph.node("Relu", {"s" + n}, {"r" + std::to_string(i + 1)});
  }
  const std::string last = "r" + std::to_string(kBlocks);
  graph.initializer(f32_tensor("v", {kNarrow, kWide, 1, 1}, small_wave(kNarrow * kWide, 30)));
  graph.node("Conv", {last, "v"}, {"y"});
  graph.node("Conv", {kept ? "r1" : last, "v"}, {"z"});
  for (const char* name : {"y", "z"}) {
    graph.output(name, f32_type({1, kNarrow, kImage, kImage}));
  }
  return writer;
}

void expect_right(bool kept, size_t arena_bytes) {
  const std::vector<NamedValue> inputs = {
      {"x", make_tensor<float>({1, kNarrow, kImage, kImage},
                               small_wave(kNarrow * kImage * kImage, 50))}};
  SessionOptions plain;
  plain.optimize = Optimize::kOff;
  const auto expected = run_once(model(kept), inputs, plain);
  ASSERT_TRUE(expected.is_ok()) << text_of(expected.status());
  const auto session = open_session(model(kept));
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  for (int round = 0; round < 2; ++round) {
    const auto found = run_all(*session.value(), inputs);
    ASSERT_TRUE(found.is_ok()) << text_of(found.status());
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<float> want = floats_of(expected.value()[i]);
      const std::vector<float> got = floats_of(found.value()[i]);
      ASSERT_EQ(got.size(), want.size());
      for (size_t j = 0; j < want.size(); ++j) {
        ASSERT_NEAR(got[j], want[j], 1e-5F * (1 + std::abs(want[j]))) << i << " " << j;
      }
    }
  }
  auto& program = const_cast<Program&>(session.value()->program());
  EXPECT_EQ(program.shapes.plan_for({})->arena_bytes, arena_bytes);
}

TEST(ResidualSums, TakeThePlaceOfWhatTheyAdd) {
  expect_right(false, kWideBytes + 2 * kNarrowBytes);  // two: y and z at the end
}

TEST(ResidualSums, LeaveWhatIsReadOnceMore) { expect_right(true, 2 * kWideBytes + kNarrowBytes); }

}  // namespace
}  // namespace folio
