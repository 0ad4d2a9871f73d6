// Steps of quantized graphs: floats that stand between DequantizeLinear and QuantizeLinear.
#include <algorithm>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;
using model_writer::ElementType;

// Codes of weights, read as floats: one scale, or one for each of dims[axis].
std::string weights(GraphDraw& g, const Dims64& dims, int64_t axis, int64_t terms) {
  const std::string codes = g.codes(dims, -127, 127);
  const double range = 1.5 / 127 / std::max(1.0, static_cast<double>(terms) / 12);
  if (g.draw().one_in(2)) {
    return g.node("DequantizeLinear",
                  {codes, g.number(range), g.zero_point(ElementType::kInt8, 0)});
  }
  const auto count = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
  std::vector<float> scales(count);
  for (float& scale : scales) {
    scale = static_cast<float>(range * (0.5 + static_cast<double>(g.draw().below(100)) / 100));
  }
  return g.node("DequantizeLinear", {codes, g.floats({static_cast<int64_t>(count)}, scales)},
                {integer("axis", axis)});
}

bool conv(GraphDraw& g) {
  constexpr int64_t kFilters[] = {1, 3, 8, 16, 16, 17, 24, 32};
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const int64_t channels = x->dims[1];
  const int64_t groups = g.draw().one_in(3) ? channels : 1;
  const int64_t filters = groups == 1 ? g.draw().of(kFilters) : groups;
  const int64_t size = g.draw().one_in(2) ? 3 : 1;
  const int64_t stride = g.draw().one_in(3) ? 2 : 1;
  Dims64 dims{x->dims[0], filters};
  for (const size_t axis : {2, 3}) dims.push_back((x->dims[axis] - 1) / stride + 1);
  const int64_t terms = channels / groups * size * size;
  std::vector<std::string> inputs{x->name,
                                  weights(g, {filters, channels / groups, size, size}, 0, terms)};
  if (!g.draw().one_in(3)) inputs.push_back(g.weight({filters}, 0.5));
  const int64_t pad = size / 2;
  std::string y = g.node("Conv", inputs,
                         {ints("strides", {stride, stride}), ints("pads", {pad, pad, pad, pad}),
                          integer("group", groups)});
  if (g.draw().one_in(2)) y = draw_function(g, y, filters);
  g.hold_coded(y, dims);
  return true;
}

bool dense(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) { return held.rank() >= 2 && held.rank() <= 3; });
  if (!x) return false;
  Dims64 dims = x->dims;
  const int64_t depth = dims.back();
  dims.back() = g.between(1, 40);
  std::string y;
  if (x->rank() == 2 && g.draw().one_in(2)) {
    y = g.node("Gemm",
               {x->name, weights(g, {dims.back(), depth}, 0, depth), g.weight({dims.back()}, 0.5)},
               {integer("transB", 1)});
  } else {
    y = g.node("MatMul", {x->name, weights(g, {depth, dims.back()}, 1, depth)});
    y = maybe_biased(g, y, dims.back());
  }
  if (g.draw().one_in(2)) y = draw_function(g, y, 0);
  g.hold_coded(y, dims);
  return true;
}

// As exporters quantize at run time.
bool dynamic_dense(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) { return held.rank() >= 2 && held.rank() <= 3; });
  if (!x) return false;
  Dims64 dims = x->dims;
  const int64_t depth = dims.back();
  dims.back() = g.between(1, 40);
  const auto parts = g.nodes("DynamicQuantizeLinear", {x->name}, 3);
  std::vector<std::string> inputs{parts[0], g.codes({depth, dims.back()}, -127, 127), parts[2]};
  if (g.draw().one_in(2)) inputs.push_back(g.zero_point(ElementType::kInt8, 0));
  std::string y = g.node("MatMulInteger", inputs);
  y = g.node("Cast", {y}, {integer("to", 1)});
  const double scale = 1.5 / 127 / std::max(1.0, static_cast<double>(depth) / 12);
  y = g.node("Mul", {y, g.node("Mul", {parts[1], g.number(scale)})});
  y = maybe_biased(g, y, dims.back());
  g.hold(y, dims);
  return true;
}

bool dynamic_conv(GraphDraw& g) {
  constexpr int64_t kFilters[] = {1, 3, 16, 17, 32, 40};
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const int64_t channels = x->dims[1];
  int64_t groups = g.draw().one_in(3) ? channels : 1;
  if (channels % 2 == 0 && g.draw().one_in(3)) groups = 2;
  const int64_t filters = groups <= 2 ? groups * g.draw().of(kFilters) : groups;
  const int64_t size = g.draw().one_in(2) ? 3 : 1;
  const int64_t pad = size / 2;
  const Dims64 of_weights{filters, channels / groups, size, size};
  const auto parts = g.nodes("DynamicQuantizeLinear", {x->name}, 3);
  std::vector<std::string> inputs{parts[0]};
  if (g.draw().one_in(2)) {
    inputs.push_back(g.codes(of_weights, -127, 127));
    inputs.push_back(parts[2]);
  } else {
    inputs.push_back(g.codes(of_weights, 0, 255, ElementType::kUint8));
    inputs.push_back(parts[2]);
    inputs.push_back(g.zero_point(ElementType::kUint8, g.between(100, 150)));
  }
  std::string y =
      g.node("ConvInteger", inputs, {ints("pads", {pad, pad, pad, pad}), integer("group", groups)});
  y = g.node("Cast", {y}, {integer("to", 1)});
  const int64_t terms = channels / groups * size * size;
  const double scale = 1.5 / 127 / std::max(1.0, static_cast<double>(terms) / 12);
  y = g.node("Mul", {y, g.node("Mul", {parts[1], g.number(scale)})});
  if (g.draw().one_in(2)) y = g.node("Add", {y, g.weight({1, filters, 1, 1}, 0.5)});
  g.hold(y, {x->dims[0], filters, x->dims[2], x->dims[3]});
  return true;
}

bool scores(GraphDraw& g) {
  const Scores s = draw_scores(g);
  if (s.name.empty()) return false;
  g.hold_coded(s.name, s.dims);
  return true;
}

bool binary(GraphDraw& g) {
  const Held* x = g.pick([](const Held&) { return true; });
  const Held* other = g.pick([&](const Held& held) { return held.dims == x->dims; });
  const std::string type = g.draw().one_in(3) ? "Mul" : "Add";
  std::string y = g.node(type, {x->name, other->name});
  if (g.draw().one_in(3)) y = g.node("Relu", {y});
  g.hold_coded(y, x->dims);
  return true;
}

bool function(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) { return held.rank() >= 3; });
  if (!x) return false;
  g.hold_coded(draw_function(g, x->name, x->rank() == 4 ? x->dims[1] : 0), x->dims);
  return true;
}

bool pool(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  if (g.draw().one_in(3)) {
    g.hold_coded(g.node("GlobalAveragePool", {x->name}), {x->dims[0], x->dims[1], 1, 1});
    return true;
  }
  const bool is_max = g.draw().one_in(2);
  const int64_t stride = g.between(1, 2);
  Dims64 dims = x->dims;
  for (const size_t axis : {2, 3}) dims[axis] = (dims[axis] - 1) / stride + 1;
  Attributes attributes{ints("kernel_shape", {3, 3}), ints("strides", {stride, stride}),
                        ints("pads", {1, 1, 1, 1})};
  // Means of 4 or 6 codes would often stand between two.
  if (!is_max) attributes.push_back(integer("count_include_pad", 1));
  g.hold_coded(g.node(is_max ? "MaxPool" : "AveragePool", {x->name}, std::move(attributes)), dims);
  return true;
}

bool concat(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const Held* other = g.pick([&](const Held& held) {
    return held.rank() == 4 && held.dims[0] == x->dims[0] && held.dims[2] == x->dims[2] &&
           held.dims[3] == x->dims[3];
  });
  Dims64 dims = x->dims;
  dims[1] += other->dims[1];
  if (dims[1] > 96) return false;
  g.hold_coded(g.node("Concat", {x->name, other->name}, {integer("axis", 1)}), dims);
  return true;
}

// Nearest neighbours: means of two codes would stand between two.
bool resize(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x || count_of(x->dims) > 8000) return false;
  Attributes attributes{AttributeWriter::of_string("mode", "nearest"),
                        AttributeWriter::of_string("coordinate_transformation_mode", "asymmetric"),
                        AttributeWriter::of_string("nearest_mode", "floor")};
  const Dims64 dims{x->dims[0], x->dims[1], x->dims[2] * 2, x->dims[3] * 2};
  const std::string y =
      g.node("Resize", {x->name, "", g.full_floats({4}, {1, 1, 2, 2})}, std::move(attributes));
  g.draw().one_in(2) ? g.hold(y, dims) : g.hold_coded(y, dims);
  return true;
}

bool to_rows(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const Dims64& d = x->dims;
  std::string y = g.node("Reshape", {x->name, g.ints({d[0], d[1], d[2] * d[3]})});
  if (g.draw().one_in(2)) {
    g.hold(y, {d[0], d[1], d[2] * d[3]});
    return true;
  }
  y = g.node("Transpose", {y}, {ints("perm", {0, 2, 1})});
  g.draw().one_in(2) ? g.hold(y, {d[0], d[2] * d[3], d[1]})
                     : g.hold_coded(y, {d[0], d[2] * d[3], d[1]});
  return true;
}

bool softmax(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) { return held.rank() >= 3; });
  if (!x) return false;
  g.hold_coded(g.node("Softmax", {x->name}, {integer("axis", -1)}), x->dims);
  return true;
}

constexpr Step kSteps[] = {dynamic_dense, dynamic_conv, conv,    conv,    conv,    conv,
                           dense,         dense,        scores,  binary,  binary,  pool,
                           concat,        resize,       to_rows, softmax, function};

}  // namespace

Span<const Step> byte_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
