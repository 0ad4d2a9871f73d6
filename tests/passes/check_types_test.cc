// check_types: inputs that the specification wants of one type, at every level of optimization.
#include <gtest/gtest.h>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::Type;

constexpr auto kF16 = model_writer::ElementType::kFloat16;

struct Operator {
  const char* type;
  std::vector<std::vector<model_writer::Dim>> inputs;
  size_t other;  // input that is float16 where the others are floats
};

void add_node(GraphWriter& graph, const Operator& op) {
  std::vector<std::string> names;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    names.push_back("in" + std::to_string(i));
    graph.input(names[i], Type::tensor(i == op.other ? kF16 : kF32, op.inputs[i]));
  }
  graph.node(op.type, {names.begin(), names.end()}, {"y"}).named("it");
  graph.output("y", Type::tensor(kF32, {}));
}

Status status_at(const ModelWriter& writer, Optimize level) {
  SessionOptions options;
  options.optimize = level;
  return open_session(writer, options).status();
}

TEST(CheckTypes, OneInputOfAnotherTypeIsRefusedAtEveryLevelWithItsNode) {
  const std::vector<Operator> operators = {
      {"MatMul", {{4, 8}, {8, 3}}, 1},
      {"Gemm", {{4, 8}, {8, 3}, {3}}, 2},
      {"Conv", {{1, 4, 5, 5}, {2, 4, 3, 3}}, 1},
      {"ConvTranspose", {{1, 4, 5, 5}, {4, 2, 3, 3}}, 1},
      {"Clip", {{4}, {}, {}}, 1},
      {"PRelu", {{4}, {4}}, 1},
      {"InstanceNormalization", {{1, 4, 5}, {4}, {4}}, 2},
      {"Range", {{}, {}, {}}, 1},
      {"LSTM", {{3, 1, 4}, {1, 8, 4}, {1, 8, 2}}, 2},
      {"GRU", {{3, 1, 4}, {1, 6, 4}, {1, 6, 2}}, 1},
  };
  for (const Operator& op : operators) {
    ModelWriter writer = plain_model();
    add_node(writer.graph(), op);
    const std::string text =
        "input " + std::to_string(op.other) + " is float16, expected float as input 0";
    for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
      EXPECT_TRUE(fails_with(status_at(writer, level), Code::kInvalidGraph, {"it", op.type, text}))
          << op.type;
    }
  }
}

// The specifications of these have no other type than float, so that there is nothing to widen.
TEST(CheckTypes, AnInputThatIsAlwaysFloatIsRefusedAtEveryLevelWithItsNode) {
  struct Always {
    const char* domain;
    const char* type;
    std::string kinds;  // f: float or what is tried instead of it, else as it stands here
    std::vector<std::vector<model_writer::Dim>> dims;
  };
  const std::vector<model_writer::Dim> one = {};
  const std::vector<model_writer::Dim> image = {1, 1, 2, 2};
  const std::vector<model_writer::Dim> matrix = {2, 2};
  const std::vector<Always> operators = {
      {"", "NonMaxSuppression", "ffiff", {{1, 2, 4}, {1, 1, 2}, {1}, {1}, {1}}},
      {"", "QLinearConv", "ufuufufu", {image, one, one, {1, 1, 1, 1}, one, one, one, one}},
      {"", "DynamicQuantizeLinear", "f", {{4}}},
      {"com.microsoft", "QLinearConv", "ufuufufu", {image, one, one, image, one, one, one, one}},
      {"com.microsoft", "QLinearAdd", "ufuufufu", {image, one, one, image, one, one, one, one}},
      {"com.microsoft", "QLinearMul", "ufuufufu", {image, one, one, image, one, one, one, one}},
      {"com.microsoft", "QLinearSigmoid", "ufufu", {image, one, one, one, one}},
      {"com.microsoft", "QLinearLeakyRelu", "ufufu", {image, one, one, one, one}},
      {"com.microsoft", "QLinearGlobalAveragePool", "ufufu", {image, one, one, one, one}},
      {"com.microsoft", "QLinearConcat", "fuufuufu", {one, one, image, one, one, image, one, one}},
      {"com.microsoft", "QGemm", "ufuufu", {matrix, one, one, matrix, one, one}},
      {"com.microsoft", "DynamicQuantizeMatMul", "fuf", {matrix, matrix, one}},
  };
  for (const Always& op : operators) {
    for (size_t other = 0; other < op.kinds.size(); ++other) {
      if (op.kinds[other] != 'f') continue;
      ModelWriter writer = plain_model();
      GraphWriter& graph = writer.graph();
      writer.opset("com.microsoft", 1);
      std::vector<std::string> names;
      for (size_t i = 0; i < op.kinds.size(); ++i) {
        names.push_back("in" + std::to_string(i));
        const auto type = op.kinds[i] == 'i'   ? kI64
                          : op.kinds[i] == 'u' ? model_writer::ElementType::kUint8
                          : i == other         ? kF16
                                               : kF32;
        graph.input(names[i], Type::tensor(type, op.dims[i]));
      }
      const bool is_dynamic = std::string_view(op.type) == "DynamicQuantizeLinear";
      std::vector<std::string> outputs = {"y"};
      if (is_dynamic) outputs.insert(outputs.end(), {"scale", "zero"});
      auto& node = graph.node(op.type, {names.begin(), names.end()}, outputs);
      node.named("it").in_domain(op.domain);
      if (std::string_view(op.type) == "QLinearConcat") node.attr_int("axis", 1);
      graph.output("y", Type::tensor_of_unknown_rank(kF32));
      const std::string text = "input " + std::to_string(other) + " is float16, expected float";
      for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
        EXPECT_TRUE(
            fails_with(status_at(writer, level), Code::kInvalidGraph, {"it", op.type, text}))
            << op.type << " " << other;
      }
    }
  }
}

TEST(CheckTypes, TheFirstInputMayBeTheOtherOne) {
  ModelWriter writer = plain_model();
  add_node(writer.graph(), {"MatMul", {{4, 8}, {8, 3}}, 0});
  for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
    EXPECT_TRUE(fails_with(status_at(writer, level), Code::kInvalidGraph,
                           {"input 1 is float, expected float16 as input 0"}));
  }
}

TEST(CheckTypes, WhatMayDifferIsAccepted) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", Type::tensor(kF16, {4, 8}));
  graph.input("power", Type::tensor(kF32, {8}));
  graph.node("Pow", {"x", "power"}, {"y"});
  graph.output("y", Type::tensor(kF16, {4, 8}));
  for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
    const Status status = status_at(writer, level);
    EXPECT_TRUE(status.is_ok()) << text_of(status);
  }
}

TEST(CheckTypes, AnInputOfUnknownTypeIsLeftToTheRun) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({4, 8}));
  graph.input("w", f32_type({8, 3}));
  graph.node("SequenceConstruct", {"w"}, {"sequence"});
  graph.initializer(i64_tensor("first", {}, {0}));
  graph.node("SequenceAt", {"sequence", "first"}, {"any"});
  graph.node("MatMul", {"x", "any"}, {"y"});
  graph.output("y", f32_type({4, 3}));
  for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
    const Status status = status_at(writer, level);
    EXPECT_TRUE(status.is_ok()) << text_of(status);
  }
}

}  // namespace
}  // namespace folio
