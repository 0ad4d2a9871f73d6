// A model of one node, made in memory, and what the node has to compute.
//
//   OneNode("gemm_f32", "512x512x512", "MatMul")
//       .x(ElementType::kFloat, {512, 512})
//       .w(ElementType::kFloat, {512, 512})
//       .y(ElementType::kFloat, {512, 512})
//       .done()
//
// Flow:    families.cc makes the cases -> main.cc runs them by Folio and by ONNX Runtime.
// Threads: none.
// Errors:  none.
#pragma once

#include <string>
#include <vector>

#include "tools/folio/node_work.h"
#include "tools/make_model/onnx_model.h"

namespace op_bench {

using model_writer::ElementType;

struct OpCase {
  std::string name;  // FAMILY/CASE
  std::string model;
  std::vector<std::string> ranges;  // of made-up inputs, as --range has them
  folio_cli::Work work;
};

class OneNode {
 public:
  using Dims = std::vector<int64_t>;
  OneNode(const std::string& family, const std::string& name, const std::string& op_type,
          const std::string& domain = "");

  // The next input: of the model, with numbers in [low, high]; a constant; or absent.
  OneNode& x(ElementType type, const Dims& dims, double low, double high);
  OneNode& x(ElementType type, const Dims& dims) { return x(type, dims, -1, 1); }
  OneNode& x_bytes(ElementType type, const Dims& dims);
  OneNode& w(ElementType type, const Dims& dims);  // floats in [-1, 1), bytes of all values
  OneNode& w_even(const Dims& dims);  // floats with which sums along the last dim stay below 1
  OneNode& w_floats(const Dims& dims, const std::vector<float>& values);
  OneNode& w_ints(const Dims& dims, const std::vector<int64_t>& values);
  OneNode& w_zero(ElementType type);  // one byte, a zero point
  OneNode& none();
  // The next output.
  OneNode& y(ElementType type, const Dims& dims);

  OneNode& attr(const std::string& name, int64_t value);
  OneNode& attr(const std::string& name, const Dims& values);
  OneNode& attr(const std::string& name, const char* value);
  OneNode& attr_float(const std::string& name, float value);

  OpCase done();

 private:
  std::string next_input(ElementType type, const Dims& dims);
  OneNode& constant(model_writer::TensorWriter tensor);

  OpCase case_;
  folio_cli::NodeShapes shapes_;
  std::string domain_;
  model_writer::ModelWriter model_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  std::vector<model_writer::AttributeWriter> attributes_;
};

}  // namespace op_bench
