// Outputs written in the memory of an input: which outputs may be, and what then happens.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
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
