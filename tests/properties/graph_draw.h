// GraphDraw: a model that grows by nodes whose dims are known, for random_graph.cc.
//
// Owns:    the writer and a list of all values that steps may read.
// Threads: one.
#pragma once

#include <deque>
#include <functional>

#include "tests/properties/draw.h"
#include "tests/properties/random_graph.h"
#include "tools/make_model/onnx_model.h"

namespace folio::properties {

using Dims64 = std::vector<int64_t>;
inline constexpr int64_t kUnknown = -1;  // a dim that a body does not declare
using Attributes = std::vector<model_writer::AttributeWriter>;

inline constexpr double kStep = 0.0199371;  // at most, between two codes

int64_t count_of(const Dims64& dims);

model_writer::AttributeWriter ints(std::string_view name, const Dims64& values);
model_writer::AttributeWriter integer(std::string_view name, int64_t value);
model_writer::AttributeWriter real(std::string_view name, double value);

// The range of weights whose sums of `terms` products are as large as the inputs.
double range_for(int64_t terms);

// A value of float elements.
struct Held {
  std::string name;
  Dims64 dims;
  size_t rank() const { return dims.size(); }
};

class GraphDraw {
 public:
  // An opset from 13 to `newest`; one graph of three has one of those after 22, if that allows it.
  explicit GraphDraw(uint64_t seed, bool of_halves = false, int64_t newest = 22);

  Draw& draw() { return draw_; }
  int64_t between(int64_t least, int64_t most) { return least + draw_.below(most - least + 1); }

  int64_t opset() const { return opset_; }
  // Of all values: float, or float16 between inputs and outputs that are float.
  model_writer::ElementType element() const { return element_; }

  // A new input; dims are symbols where the draw says so: in one graph of three, or in most, whose
  // other dims may be 0.
  enum class Symbols { kSome, kMost };
  Held input(const Dims64& dims, Symbols symbols = Symbols::kSome);
  // A new input of integers from 0 on, below `count`: one for each row of a float input that is
  // there, with its symbols.
  std::string ids(int64_t count);
  // Constants: floats of -range to range, or as given.
  std::string weight(const Dims64& dims, double range);
  std::string floats(const Dims64& dims, const std::vector<float>& values);
  // The same, float in graphs of float16, too.
  std::string full_floats(const Dims64& dims, const std::vector<float>& values);
  std::string number(double value) { return floats({}, {static_cast<float>(value)}); }
  // An operand of a value of rank 1 or more: the same, or [1].
  std::string term(double value) {
    return floats(draw_.one_in(4) ? Dims64{1} : Dims64{}, {static_cast<float>(value)});
  }
  std::string ints(const Dims64& values);
  std::string whole(int64_t value);  // the same as a scalar
  std::string codes(const Dims64& dims, int64_t least, int64_t most,
                    model_writer::ElementType type = model_writer::ElementType::kInt8);
  // Of float16.
  std::string half_weight(const Dims64& dims, double range);
  std::string zero_point(model_writer::ElementType type, int64_t value);

  // A node of one output, which is not to be read by other steps, by name.
  std::string node(std::string_view type, const std::vector<std::string>& inputs,
                   Attributes attributes = {}, std::string_view domain = "");
  // The same of several outputs, of which those between the first and the last may have no name.
  enum class Named { kAll, kEnds };
  std::vector<std::string> nodes(std::string_view type, const std::vector<std::string>& inputs,
                                 size_t outputs, Attributes attributes = {},
                                 std::string_view domain = "", Named named = Named::kAll);
  // An If: each call adds nodes over what is there and names a result of these dims, which may be
  // kUnknown.
  std::string branches(const std::string& condition, const Dims64& dims,
                       const std::function<std::string()>& draw_branch) {
    return branches(condition, dims, draw_branch, element_);
  }
  std::string branches(const std::string& condition, const Dims64& dims,
                       const std::function<std::string()>& draw_branch,
                       model_writer::ElementType type);
  // The body of a Loop or Scan: `draw_body` adds nodes that read its inputs, whose names it gets,
  // and what is there outside, and names its outputs: inputs or what its own nodes made.
  using Names = std::vector<std::string>;
  model_writer::AttributeWriter body(const std::vector<model_writer::Type>& inputs,
                                     const std::vector<model_writer::Type>& outputs,
                                     const std::function<Names(const Names&)>& draw_body);
  // Of this graph's elements, with unknown dims.
  model_writer::Type type_of_rank(size_t rank) const;
  // Gives a value to the steps that follow.
  Held hold(std::string name, Dims64 dims);
  // The same through codes of 8 bits, of steps of kStep or so.
  Held hold_coded(const std::string& name, Dims64 dims);

  // One of those there that fit, mostly of the last ones; null: none does. It counts as read.
  const Held* pick(const std::function<bool(const Held&)>& fits);
  const Held* pick_rank(size_t rank);
  // A float input. Its numbers are the same in whichever order others are added, and so is what is
  // chosen by them.
  const Held& exact();

  RandomGraph take();

 private:
  std::string new_name(std::string_view prefix);
  std::vector<float> numbers(const Dims64& dims, double range);
  std::string add_constant(std::string_view prefix, const Dims64& dims,
                           const std::vector<float>& values, model_writer::ElementType type);

  struct Entry {
    Held held;
    int readers = 0;
    bool is_input = false;
  };
  std::vector<std::string> add(std::string_view type, const std::vector<std::string>& inputs,
                               std::vector<std::string> outputs, Attributes attributes,
                               std::string_view domain);

  Draw draw_;
  int64_t opset_;
  model_writer::ElementType element_;
  model_writer::ModelWriter writer_;
  model_writer::GraphWriter* graph_ = nullptr;  // that nodes and constants go to
  std::deque<Entry> values_;                    // stay where they are
  std::vector<model_writer::Dim> first_dims_;   // of the first input, as declared
  RandomGraph out_;
  int names_ = 0;
};

}  // namespace folio::properties
