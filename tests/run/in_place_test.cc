// Outputs written in the memory of an input: which outputs may be, and what then happens.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::Type;

Tensor borrow(std::vector<float>* memory, const Shape& shape) {
  Ref<Buffer> buffer =
      view_buffer(Buffer::Kind::kBorrowed, memory->data(), memory->size() * sizeof(float), nullptr);
  return Tensor(DType::kFloat, shape, reinterpret_cast<uint8_t*>(memory->data()),
                std::move(buffer));
}

Type floats(const std::vector<model_writer::Dim>& dims) {
  return Type::tensor(ElementType::kFloat, dims);
}

// cache [1, 4, 1] with row [1, 1, 1] written at place [1].
ModelWriter scatter_model() {
  ModelWriter writer(10);
  writer.opset("", 24);
  writer.graph().input("cache", floats({1, 4, 1}));
  writer.graph().input("row", floats({1, 1, 1}));
  writer.graph().input("place", Type::tensor(ElementType::kInt64, {1}));
  writer.graph().node("TensorScatter", {"cache", "row", "place"}, {"next"});
  writer.graph().output("next", floats({1, 4, 1}));
  return writer;
}

// The same by ScatterND or ScatterElements, as exporters of static caches write it.
ModelWriter scatter_model_by(const std::string& type) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  const bool by_slices = type == "ScatterND";
  graph.input("cache", floats({4, 2}));
  graph.input("row", floats({1, 2}));
  graph.input("place", Type::tensor(ElementType::kInt64, {1, by_slices ? 1 : 2}));
  graph.node(type, {"cache", "place", "row"}, {"next"});
  graph.output("next", floats({4, 2}));
  return writer;
}

int32_t in_place_of(const Session& session, const std::string& output) {
  for (const PortInfo& port : session.program().outputs) {
    if (port.name == output) return port.in_place_of;
  }
  ADD_FAILURE() << "no output " << output;
  return kNone;
}

TEST(InPlace, ACacheIsWrittenInTheMemoryOfItsInput) {
  const auto session = open_session(scatter_model());
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  EXPECT_EQ(in_place_of(*session.value(), "next"), 0);
  std::vector<float> memory{1, 2, 3, 4};
  const Tensor cache = borrow(&memory, {1, 4, 1});
  std::vector<Value> outputs;
  for (int64_t place = 1; place < 3; ++place) {
    const Status status = session.value()->run(
        {},
        {{"cache", Value(cache)},
         {"row", make_tensor<float>({1, 1, 1}, {static_cast<float>(10 * place)})},
         {"place", make_tensor<int64_t>({1}, {place})}},
        {{"next", cache}}, &outputs);
    ASSERT_TRUE(status.is_ok()) << text_of(status);
    EXPECT_EQ(outputs[0].tensor().raw(), cache.raw());
  }
  EXPECT_EQ(memory, (std::vector<float>{1, 10, 20, 4}));
}

TEST(InPlace, ScattersWriteOnlyTheirUpdatesAndNothingAtABadIndex) {
  for (const std::string type : {"ScatterND", "ScatterElements"}) {
    SCOPED_TRACE(type);
    const auto session = open_session(scatter_model_by(type));
    ASSERT_TRUE(session.is_ok()) << text_of(session.status());
    EXPECT_EQ(in_place_of(*session.value(), "next"), 0);
    std::vector<float> memory{1, 2, 3, 4, 5, 6, 7, 8};
    const Tensor cache = borrow(&memory, {4, 2});
    std::vector<Value> outputs;
    const auto write = [&](int64_t place) {
      const bool by_slices = type == "ScatterND";
      const Value places = by_slices ? make_tensor<int64_t>({1, 1}, {place})
                                     : make_tensor<int64_t>({1, 2}, {0, place});
      return session.value()->run({},
                                  {{"cache", Value(cache)},
                                   {"row", make_tensor<float>({1, 2}, {10, 20})},
                                   {"place", places}},
                                  {{"next", cache}}, &outputs);
    };
    EXPECT_TRUE(fails_with(write(4), Code::kInvalidArgument, {"4"}));
    EXPECT_EQ(memory, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
    const Status status = write(-1);
    ASSERT_TRUE(status.is_ok()) << text_of(status);
    EXPECT_EQ(outputs[0].tensor().raw(), cache.raw());
    EXPECT_EQ(memory, type == "ScatterND" ? (std::vector<float>{1, 2, 3, 4, 5, 6, 10, 20})
                                          : (std::vector<float>{10, 2, 3, 4, 5, 6, 7, 20}));
  }
}

// The cache is made by a step here, and its place in the arena is the result's.
TEST(InPlace, AScatterTakesTheArenasPlaceOfWhatNobodyReadsAnyMore) {
  for (const bool is_read_later : {false, true}) {
    ModelWriter writer = scatter_model_by("ScatterND");
    GraphWriter& graph = writer.graph();
    graph.input("x", floats({"rows", 2}));
    graph.node("Exp", {"x"}, {"made"});
    graph.node("ScatterND", {"made", "place", "row"}, {"z"});
    graph.node("Neg", {"z"}, {"w"});
    graph.output("w", floats({"rows", 2}));
    if (is_read_later) {
      graph.node("Sqrt", {"made"}, {"s"});
      graph.output("s", floats({"rows", 2}));
    }
    const auto session = open_session(writer);
    ASSERT_TRUE(session.is_ok()) << text_of(session.status());
    std::vector<Value> outputs;
    const std::vector<float> zeros(2048, 0);
    const Status status =
        session.value()->run({},
                             {{"cache", make_tensor<float>({4, 2}, std::vector<float>(8, 1))},
                              {"row", make_tensor<float>({1, 2}, {10, 20})},
                              {"place", make_tensor<int64_t>({1, 1}, {1})},
                              {"x", make_tensor<float>({1024, 2}, zeros)}},
                             {{"w", Tensor()}, {is_read_later ? "s" : "next", Tensor()}}, &outputs);
    ASSERT_TRUE(status.is_ok()) << text_of(status);
    std::vector<float> expected(2048, -1);
    expected[2] = -10;
    expected[3] = -20;
    EXPECT_EQ(floats_of(outputs[0]), expected);
    if (is_read_later) {
      EXPECT_EQ(floats_of(outputs[1]), std::vector<float>(2048, 1));
    }
    const ArenaSizes sizes = session.value()->program().shapes.arena_sizes();
    EXPECT_EQ(sizes.arena_bytes >= size_t{2} * 8192, is_read_later) << sizes.arena_bytes;
  }
}

TEST(InPlace, WhatAnotherStepReadsWaitsForItEvenInTheSameMemory) {
  ModelWriter writer = scatter_model();
  // Reads the old cache after the step that makes the new one.
  writer.graph().node("Add", {"cache", "next"}, {"sum"});
  writer.graph().output("sum", floats({1, 4, 1}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  EXPECT_EQ(in_place_of(*session.value(), "next"), kNone);
  std::vector<float> memory{1, 2, 3, 4};
  const Tensor cache = borrow(&memory, {1, 4, 1});
  std::vector<Value> outputs;
  const Status status = session.value()->run({},
                                             {{"cache", Value(cache)},
                                              {"row", make_tensor<float>({1, 1, 1}, {10})},
                                              {"place", make_tensor<int64_t>({1}, {0})}},
                                             {{"next", cache}, {"sum", Tensor()}}, &outputs);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_EQ(memory, (std::vector<float>{10, 2, 3, 4}));
  EXPECT_EQ(floats_of(outputs[1]), (std::vector<float>{11, 4, 6, 8}));
}

TEST(InPlace, RoomIsWrittenByTheStepAndMayBeLargerThanTheResult) {
  const auto session = open_session(scatter_model());
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  std::vector<float> memory(6, -1);
  OutputMemory room;
  room.room =
      view_buffer(Buffer::Kind::kBorrowed, memory.data(), memory.size() * sizeof(float), nullptr);
  const std::vector<NamedValue> inputs = {{"cache", make_tensor<float>({1, 4, 1}, {1, 2, 3, 4})},
                                          {"row", make_tensor<float>({1, 1, 1}, {10})},
                                          {"place", make_tensor<int64_t>({1}, {0})}};
  std::vector<Value> outputs;
  const Status status = session.value()->run({}, inputs, {{"next", room}}, &outputs);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_EQ(memory, (std::vector<float>{10, 2, 3, 4, -1, -1}));
  EXPECT_EQ(outputs[0].tensor().raw(), room.room->data());
  room.room = view_buffer(Buffer::Kind::kBorrowed, memory.data(), 3 * sizeof(float), nullptr);
  const Status small = session.value()->run({}, inputs, {{"next", room}}, &outputs);
  EXPECT_TRUE(fails_with(small, Code::kInvalidArgument, {"'next'", "16 bytes", "has 12"}));
}

TEST(InPlace, AttentionOverBuffersWritesOnlyItsNewRow) {
  ModelWriter writer(8);
  writer.opset("", 17);
  writer.opset("com.microsoft", 1);
  for (const char* name : {"q", "k", "v"}) writer.graph().input(name, floats({1, 1, 2}));
  for (const char* name : {"past_k", "past_v"}) writer.graph().input(name, floats({1, 1, 3, 2}));
  writer.graph().input("length", Type::tensor(ElementType::kInt32, {1}));
  writer.graph()
      .node("MultiHeadAttention", {"q", "k", "v", "", "", "", "past_k", "past_v", "length"},
            {"y", "next_k", "next_v"})
      .in_domain("com.microsoft")
      .attr_int("num_heads", 1);
  writer.graph().output("y", floats({1, 1, 2}));
  for (const char* name : {"next_k", "next_v"}) writer.graph().output(name, floats({1, 1, 3, 2}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  std::vector<float> keys{1, 2, -7, -7, -8, -8};
  std::vector<float> values{2, 4, -7, -7, -8, -8};
  const Tensor k = borrow(&keys, {1, 1, 3, 2});
  const Tensor v = borrow(&values, {1, 1, 3, 2});
  std::vector<Value> outputs;
  const Status status =
      session.value()->run({},
                           {{"q", make_tensor<float>({1, 1, 2}, {0, 0})},
                            {"k", make_tensor<float>({1, 1, 2}, {3, 4})},
                            {"v", make_tensor<float>({1, 1, 2}, {6, 8})},
                            {"past_k", Value(k)},
                            {"past_v", Value(v)},
                            {"length", make_tensor<int32_t>({1}, {1})}},
                           {{"y", Tensor()}, {"next_k", k}, {"next_v", v}}, &outputs);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_EQ(floats_of(outputs[0]), (std::vector<float>{4, 6}));
  EXPECT_EQ(keys, (std::vector<float>{1, 2, 3, 4, -8, -8}));
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6, 8, -8, -8}));
}

}  // namespace
}  // namespace folio
