// Caches of 16-bit floats that are written in place: read where they stand, a few rows at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::ModelWriter;
using model_writer::Type;

constexpr int64_t kHeads = 6;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kSize = 24;

Ref<Session> attention(ElementType type, int64_t window) {
  ModelWriter writer(10);
  writer.opset("", 21).opset("com.microsoft", 1);
  const auto tensor = [&](const std::vector<model_writer::Dim>& dims) {
    return Type::tensor(type, dims);
  };
  auto& graph = writer.graph();
  graph.input("query", tensor({"batch", "sequence", kHeads * kSize}));
  graph.input("key", tensor({"batch", "sequence", kKvHeads * kSize}));
  graph.input("value", tensor({"batch", "sequence", kKvHeads * kSize}));
  graph.input("past_key", tensor({"batch", kKvHeads, "past", kSize}));
  graph.input("past_value", tensor({"batch", kKvHeads, "past", kSize}));
  graph.input("lengths", Type::tensor(ElementType::kInt32, {"batch"}));
  graph.input("total", Type::tensor(ElementType::kInt32, {1}));
  graph
      .node("GroupQueryAttention",
            {"query", "key", "value", "past_key", "past_value", "lengths", "total"},
            {"y", "present_key", "present_value"})
      .in_domain("com.microsoft")
      .attr_int("num_heads", kHeads)
      .attr_int("kv_num_heads", kKvHeads)
      .attr_int("local_window_size", window);
  graph.output("y", tensor({"batch", "sequence", kHeads * kSize}));
  graph.output("present_key", tensor({"batch", kKvHeads, "total", kSize}));
  graph.output("present_value", tensor({"batch", kKvHeads, "total", kSize}));
  auto session = open_session(writer);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  return session.is_ok() ? std::move(session).take() : nullptr;
}

// Numbers that 16-bit floats hold, all of one kind different.
std::vector<double> numbers(int64_t count, int64_t seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>((i * 37 + seed * 11) % 97 - 48) / 32);
  }
  return values;
}

struct Caches {
  Tensor key, value;
};

Caches caches_of(DType dtype, int64_t batch, int64_t rows) {
  const Shape shape{batch, kKvHeads, rows, kSize};
  return {make_float_tensor(dtype, shape, numbers(shape.count(), 1)),
          make_float_tensor(dtype, shape, numbers(shape.count(), 2))};
}

// Sequence b has `past` - b rows before the call.
struct Step {
  int64_t batch, past, fresh;
};

Result<Tensor> run_in_place(Session& session, DType dtype, const Step& step, const Caches& caches) {
  const auto input = [&](int64_t heads, int64_t seed) {
    const Shape shape{step.batch, step.fresh, heads * kSize};
    return Value(make_float_tensor(dtype, shape, numbers(shape.count(), seed)));
  };
  const int64_t total = step.past + step.fresh;
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < step.batch; ++b) lengths.push_back(static_cast<int32_t>(total - b - 1));
  std::vector<Value> outputs;
  FOLIO_RETURN_IF_ERROR(session.run(
      {},
      {{"query", input(kHeads, 3)},
       {"key", input(kKvHeads, 4)},
       {"value", input(kKvHeads, 5)},
       {"past_key", Value(caches.key)},
       {"past_value", Value(caches.value)},
       {"lengths", make_tensor<int32_t>({step.batch}, lengths)},
       {"total", make_tensor<int32_t>({1}, {static_cast<int32_t>(total)})}},
      {{"y", Tensor()}, {"present_key", caches.key}, {"present_value", caches.value}}, &outputs));
  return outputs[0].tensor();
}

std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  return {tensor.raw(), tensor.raw() + tensor.bytes()};
}

std::vector<uint8_t> rounded(DType dtype, const Tensor& wide) {
  std::vector<double> values(wide.data<float>(), wide.data<float>() + wide.count());
  return bytes_of(make_float_tensor(dtype, wide.shape(), values));
}

TEST(HalfCache, GivesTheBitsOfAFloatCacheThatHoldsTheSame) {
  for (const int64_t window : {-1, 40}) {
    const Ref<Session> wide = attention(ElementType::kFloat, window);
    ASSERT_TRUE(wide);
    for (const auto& [dtype, type] : {std::pair(DType::kFloat16, ElementType::kFloat16),
                                      std::pair(DType::kBfloat16, ElementType::kBfloat16)}) {
      const Ref<Session> session = attention(type, window);
      ASSERT_TRUE(session);
      // Some are one tile of rows, some many; the last two are packed first.
      for (const Step step :
           {Step{1, 31, 1}, Step{2, 33, 1}, Step{1, 70, 4}, Step{2, 100, 9}, Step{1, 65, 80}}) {
        SCOPED_TRACE(testing::Message() << dtype_name(dtype) << ", window " << window << ", past "
                                        << step.past << ", new " << step.fresh);
        const int64_t rows = step.past + step.fresh + 5;
        const Caches narrow = caches_of(dtype, step.batch, rows);
        const Caches floats = caches_of(DType::kFloat, step.batch, rows);
        const auto got = run_in_place(*session, dtype, step, narrow);
        const auto expected = run_in_place(*wide, DType::kFloat, step, floats);
        ASSERT_TRUE(got.is_ok()) << text_of(got.status());
        ASSERT_TRUE(expected.is_ok()) << text_of(expected.status());
        EXPECT_EQ(bytes_of(got.value()), rounded(dtype, expected.value()));
        EXPECT_EQ(bytes_of(narrow.key), rounded(dtype, floats.key));
        EXPECT_EQ(bytes_of(narrow.value), rounded(dtype, floats.value));
      }
    }
  }
}

std::atomic<size_t> g_largest{0};

bool note_size(size_t bytes) {
  size_t before = g_largest;
  while (bytes > before && !g_largest.compare_exchange_weak(before, bytes)) {
  }
  return true;
}

TEST(HalfCache, AStepAllocatesNothingOfTheCachesSize) {
  const Ref<Session> session = attention(ElementType::kFloat16, -1);
  ASSERT_TRUE(session);
  const Caches caches = caches_of(DType::kFloat16, 1, 4096);
  g_largest = 0;
  set_allocation_hook(note_size);
  const auto y = run_in_place(*session, DType::kFloat16, {1, 2000, 1}, caches);
  set_allocation_hook(nullptr);
  ASSERT_TRUE(y.is_ok()) << text_of(y.status());
  // The scores of the query heads of one key head are the largest.
  EXPECT_LT(g_largest, caches.key.bytes() / 4);
  EXPECT_GT(g_largest, 0u);
}

}  // namespace
}  // namespace folio
