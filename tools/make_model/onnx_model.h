// Writes ONNX models from code: graphs, nodes with attributes of every type, functions, metadata.
//
//   ModelWriter model(8);
//   model.opset("", 17);
//   GraphWriter& graph = model.graph();
//   graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 4}));
//   graph.initializer(f32_tensor("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
//   graph.node("MatMul", {"x", "w"}, {"y"}).named("first");
//   graph.output("y", Type::tensor(ElementType::kFloat, {"batch", 2}));
//   const std::string bytes = model.serialize();
//
// Flow:    model kinds and tests -> ModelWriter -> a string, or a file through model_file.h.
// Owns:    everything given to it.
// Threads: none; an object belongs to one thread at a time.
// Errors:  none. Nothing is checked against the specification: hostile models are written with the
//          same calls, and extra() takes any further field of a message.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/make_model/onnx_tensor.h"
#include "tools/make_model/proto_writer.h"

namespace model_writer {

class GraphWriter;

// AttributeProto.AttributeType.
enum class AttributeType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

// An AttributeProto; NodeWriter's attr_... calls make it, functions take it as a default.
class AttributeWriter {
 public:
  static AttributeWriter of_float(std::string_view name, float value);
  static AttributeWriter of_int(std::string_view name, int64_t value);
  static AttributeWriter of_string(std::string_view name, std::string_view value);
  static AttributeWriter of_tensor(std::string_view name, TensorWriter value);
  static AttributeWriter of_graph(std::string_view name, GraphWriter value);
  static AttributeWriter of_floats(std::string_view name, const std::vector<float>& values);
  static AttributeWriter of_ints(std::string_view name, const std::vector<int64_t>& values);
  static AttributeWriter of_strings(std::string_view name, const std::vector<std::string>& values);
  static AttributeWriter of_tensors(std::string_view name, std::vector<TensorWriter> values);
  static AttributeWriter of_graphs(std::string_view name, std::vector<GraphWriter> values);
  static AttributeWriter of_sparse(std::string_view name, SparseTensorWriter value);
  static AttributeWriter of_sparses(std::string_view name, std::vector<SparseTensorWriter> values);
  static AttributeWriter of_type(std::string_view name, Type value);
  static AttributeWriter of_types(std::string_view name, std::vector<Type> values);
  // Inside a function: the value is the function's attribute `reference`.
  static AttributeWriter of_reference(std::string_view name, std::string_view reference,
                                      AttributeType type);

  ProtoMessage& extra() { return message_; }
  const ProtoMessage& message() const& { return message_; }
  ProtoMessage message() && { return std::move(message_); }

 private:
  AttributeWriter(std::string_view name, AttributeType type);
  ProtoMessage message_;
};

// A NodeProto. Every call gives the node back, for chains.
class NodeWriter {
 public:
  NodeWriter(std::string_view op_type, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs);

  NodeWriter& named(std::string_view name);
  NodeWriter& in_domain(std::string_view domain);
  NodeWriter& overload(std::string_view overload);
  NodeWriter& doc(std::string_view text);

  NodeWriter& attr(AttributeWriter attribute);
  NodeWriter& attr_float(std::string_view name, float value);
  NodeWriter& attr_int(std::string_view name, int64_t value);
  NodeWriter& attr_string(std::string_view name, std::string_view value);
  NodeWriter& attr_tensor(std::string_view name, TensorWriter value);
  NodeWriter& attr_graph(std::string_view name, GraphWriter value);
  NodeWriter& attr_floats(std::string_view name, const std::vector<float>& values);
  NodeWriter& attr_ints(std::string_view name, const std::vector<int64_t>& values);
  NodeWriter& attr_strings(std::string_view name, const std::vector<std::string>& values);
  NodeWriter& attr_ref(std::string_view name, std::string_view reference, AttributeType type);

  ProtoMessage& extra() { return message_; }
  const ProtoMessage& message() const& { return message_; }
  ProtoMessage message() && { return std::move(message_); }

 private:
  ProtoMessage message_;
};

// A GraphProto: the main graph, or a subgraph for attr_graph.
class GraphWriter {
 public:
  explicit GraphWriter(std::string_view name = "graph") : name_(name) {}

  // The node stays at its place: the reference is good as long as the graph.
  NodeWriter& node(std::string_view op_type, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs);
  GraphWriter& input(std::string_view name, Type type);
  GraphWriter& input_without_type(std::string_view name);
  GraphWriter& output(std::string_view name, Type type);
  GraphWriter& output_without_type(std::string_view name);
  GraphWriter& value_info(std::string_view name, Type type);
  GraphWriter& initializer(TensorWriter tensor);
  GraphWriter& sparse_initializer(SparseTensorWriter tensor);
  GraphWriter& doc(std::string_view text);

  ProtoMessage& extra() { return extra_; }
  ProtoMessage message() const& { return GraphWriter(*this).take(); }
  ProtoMessage message() && { return take(); }

 private:
  ProtoMessage take();

  std::string name_;
  std::deque<NodeWriter> nodes_;
  ProtoMessage initializers_;  // each of these holds the fields of one kind, in protobuf's order
  ProtoMessage doc_;
  ProtoMessage inputs_;
  ProtoMessage outputs_;
  ProtoMessage value_infos_;
  ProtoMessage sparse_initializers_;
  ProtoMessage extra_;
};

// A FunctionProto (model-local function).
class FunctionWriter {
 public:
  FunctionWriter(std::string_view domain, std::string_view name,
                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  FunctionWriter& opset(std::string_view domain, int64_t version);
  FunctionWriter& attribute(std::string_view name);          // required
  FunctionWriter& attribute_default(AttributeWriter value);  // IR version 9 and later
  FunctionWriter& overload(std::string_view overload);       // IR version 10 and later
  FunctionWriter& value_info(std::string_view name, Type type);
  NodeWriter& node(std::string_view op_type, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs);

  ProtoMessage& extra() { return tail_; }
  ProtoMessage message() const& { return FunctionWriter(*this).take(); }
  ProtoMessage message() && { return take(); }

 private:
  ProtoMessage take();

  ProtoMessage head_;  // fields before the nodes
  std::deque<NodeWriter> nodes_;
  ProtoMessage tail_;
};

// A ModelProto.
class ModelWriter {
 public:
  explicit ModelWriter(int64_t ir_version = 8, std::string_view graph_name = "graph")
      : ir_version_(ir_version), graph_(graph_name) {}

  ModelWriter& opset(std::string_view domain, int64_t version);
  ModelWriter& producer(std::string_view name, std::string_view version);
  ModelWriter& domain(std::string_view domain);
  ModelWriter& model_version(int64_t version);
  ModelWriter& doc(std::string_view text);
  ModelWriter& metadata(std::string_view key, std::string_view value);
  ModelWriter& function(FunctionWriter function);
  GraphWriter& graph() { return graph_; }
  const GraphWriter& graph() const { return graph_; }

  ProtoMessage& extra() { return tail_; }
  ProtoMessage message() const& { return ModelWriter(*this).take(); }
  ProtoMessage message() && { return take(); }

  // The model in memory, of any size. Files: write_model_file in model_file.h.
  std::string serialize() const { return message().serialize(); }

 private:
  ProtoMessage take();

  int64_t ir_version_;
  ProtoMessage head_;  // fields before the graph
  GraphWriter graph_;
  ProtoMessage tail_;
};

}  // namespace model_writer
