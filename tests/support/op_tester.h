// OpTester: runs one operator without a session and compares what it gives.
//
// Flow:    a test describes a node, its inputs and the expected outputs; run() finds the OpDef and
//          does infer, make and run in each of these settings:
//            static     shapes known, contents not
//            symbolic   every dim a symbol; small integer tensors hold symbols
//            unranked   only element types known
//            constant   every tensor a constant (unaligned where the operator accepts that)
//          In each the outputs must be as expected, and what infer said (element type, rank, every
//          known dim, known integer contents) must agree with what came out.
// Owns:    the inputs and the outputs of the last setting.
// Errors:  GoogleTest failures that name the setting.
//
//   OpTester t("Softmax", 13);
//   t.attr("axis", -1);
//   t.input<float>({2, 3}, {...});
//   t.expect<float>(0, {2, 3}, {...}, 1e-6);
//   t.run();            // or t.fails("axis 5 is outside");
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/ops/op_registry.h"

namespace folio {

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kDouble;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kUint16;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kUint32;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kUint64;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<std::string> {
  static constexpr DType value = DType::kString;
};

template <typename T>
Tensor make_tensor(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor = allocate_tensor(DTypeOf<T>::value, shape).take();
  // Element by element: std::vector<bool> has no array.
  for (int64_t i = 0; i < tensor.count() && static_cast<size_t>(i) < values.size(); ++i) {
    tensor.data_mut<T>()[i] = values[static_cast<size_t>(i)];
  }
  return tensor;
}
// Bits as they are, for types without a C++ type (float8, int4 ...).
Tensor make_raw_tensor(DType dtype, const Shape& shape, const std::vector<uint8_t>& bytes);
// Numbers rounded to any of the four floating point types.
Tensor make_float_tensor(DType dtype, const Shape& shape, const std::vector<double>& values);
Value make_sequence(DType dtype, std::vector<Value> elements);
Value make_map(Tensor keys, Tensor values);

class OpTester {
 public:
  using SubgraphInfer = std::function<Result<std::vector<TypeInfo>>(const std::vector<TypeInfo>&)>;
  using SubgraphRun = std::function<Status(Span<const Value>, std::vector<Value>*)>;

  explicit OpTester(std::string type, int version = kNewestOpset, std::string domain = "");

  OpTester& attr(std::string name, int value) { return attr(std::move(name), int64_t{value}); }
  OpTester& attr(std::string name, int64_t value);
  OpTester& attr(std::string name, float value);
  OpTester& attr(std::string name, const char* value);
  OpTester& attr(std::string name, Tensor value);
  OpTester& attr_ints(std::string name, std::vector<int64_t> values);
  OpTester& attr_floats(std::string name, std::vector<float> values);
  OpTester& attr_strings(std::string name, std::vector<std::string> values);
  OpTester& attr(AttributeDef attribute);
  // A graph-valued attribute whose contents are these two functions.
  // Work is cut as for so many threads; one does all of it.
  OpTester& threads(int count) {
    threads_ = count;
    return *this;
  }

  OpTester& subgraph(std::string attribute, SubgraphInfer infer, SubgraphRun run);

  template <typename T>
  OpTester& input(const Shape& shape, const std::vector<T>& values) {
    return input_value(checked(make_tensor<T>(shape, values), values.size()));
  }
  // float, double, float16 or bfloat16 from numbers.
  OpTester& input_as(DType dtype, const Shape& shape, const std::vector<double>& values) {
    return input_value(checked(make_float_tensor(dtype, shape, values), values.size()));
  }
  // A constant in every setting.
  template <typename T>
  OpTester& constant(const Shape& shape, const std::vector<T>& values) {
    input<T>(shape, values);
    inputs_.back().always_constant = true;
    return *this;
  }
  OpTester& constant_as(DType dtype, const Shape& shape, const std::vector<double>& values) {
    input_as(dtype, shape, values);
    inputs_.back().always_constant = true;
    return *this;
  }
  // `type` is needed where the value does not tell it (an empty optional).
  OpTester& input_value(Value value);
  OpTester& input_value(Value value, TypeInfo type);
  OpTester& input_absent();

  // The node has this many outputs: by default as many as are expected.
  OpTester& outputs(int count);

  // |actual - expected| <= tolerance * (1 + |expected|); NaN equals NaN.
  template <typename T>
  OpTester& expect(int i, const Shape& shape, const std::vector<T>& values, double tolerance = 0) {
    return expect_value(i, checked(make_tensor<T>(shape, values), values.size()), tolerance);
  }
  OpTester& expect_as(int i, DType dtype, const Shape& shape, const std::vector<double>& values,
                      double tolerance = 0) {
    return expect_value(i, checked(make_float_tensor(dtype, shape, values), values.size()),
                        tolerance);
  }
  OpTester& expect_value(int i, Value value, double tolerance = 0);
  // What infer says of output i in the static setting, as type_to_string prints it.
  OpTester& expect_inferred(int i, std::string type);

  void run();
  // In every setting infer, make or run fails; in the static one with this text in its message.
  void fails(const std::string& text);
  // In every setting infer, make and run end in an error that says something, or in outputs that
  // agree with what infer said. Gives how many ended in outputs.
  int survives();
  // What was said by the last setting of survives() that ended in an error.
  const std::string& refusal() const { return refusal_; }

  // Output i of the last run.
  const Value& output(int i) const { return outputs_.at(static_cast<size_t>(i)); }
  template <typename T>
  std::vector<T> output_values(int i) const {
    const Tensor& tensor = output(i).tensor();
    return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.count());
  }

 private:
  enum class Setting { kStatic, kSymbolic, kUnranked, kConstant };
  struct Input {
    Value value;
    TypeInfo type;
    bool absent = false;
    bool always_constant = false;
  };
  struct Expected {
    int output = 0;
    Value value;
    double tolerance = 0;
  };
  struct Subgraph {
    std::string attribute;
    SubgraphInfer infer;
    SubgraphRun run;
  };
  struct Case;  // graph, node and symbol values of one setting
  class Host;

  Tensor checked(Tensor tensor, size_t given);
  const OpDef* find_def() const;
  void build(Setting setting, const OpDef& def, Case* out) const;
  void add_input(Setting setting, size_t i, const OpDef& def, Case* out) const;
  Status infer_and_run(Setting setting, const OpDef& def, Case* out);
  Status run_kernel(const OpDef& def, Case* at);
  void check_inferred(const Case& at, const std::string& where) const;

  std::string type_;
  int version_;
  std::string domain_;
  Attributes attributes_;
  std::vector<Subgraph> subgraphs_;
  std::vector<Input> inputs_;
  int output_count_ = -1;
  std::vector<Expected> expected_;
  std::vector<std::pair<int, std::string>> expected_types_;
  std::vector<Value> outputs_;
  int threads_ = 1;
  std::string refusal_;
};

}  // namespace folio
