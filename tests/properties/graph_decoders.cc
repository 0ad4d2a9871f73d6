// Steps over rows that exporters of language models emit: norms with the residual sum, gates,
// embeddings, products with weights of few bits.
#include <cmath>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;
using model_writer::ElementType;

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr double kEpsilon = 0.1;  // no row is so short that a rounding turns it

const Held* pick_rows(GraphDraw& g) {
  return g.pick([](const Held& held) {
    return held.rank() == 3 && held.dims.back() > 1 && held.dims.back() <= 96;
  });
}

const Held* pick_same(GraphDraw& g, const Held& x) {
  return g.pick([&](const Held& held) { return held.dims == x.dims; });
}

// x / sqrt(mean(x^2) + epsilon) * scale as Llama's exporters spell it, in float where x is float16.
std::string rms_by_parts(GraphDraw& g, const std::string& x, int64_t width) {
  const bool widens = g.draw().one_in(2);
  const std::string wide = widens ? cast(g, x, ElementType::kFloat) : x;
  const auto number = [&](double value) {
    return widens ? g.full_floats({}, {static_cast<float>(value)}) : g.term(value);
  };
  const std::string square =
      g.draw().one_in(2) ? g.node("Pow", {wide, number(2)}) : g.node("Mul", {wide, wide});
  const std::string mean = reduced(g, "ReduceMean", square, {-1}, true);
  const std::string sum = g.draw().one_in(2) ? g.node("Add", {mean, number(kEpsilon)})
                                             : g.node("Add", {number(kEpsilon), mean});
  const std::string root = g.node("Sqrt", {sum});
  std::string y;
  switch (g.draw().below(3)) {
    case 0:
      y = g.node("Div", {wide, root});
      break;
    case 1:
      y = g.node("Mul", {wide, g.node("Div", {number(1), root})});
      break;
    default:
      y = g.node("Mul", {g.node("Reciprocal", {root}), wide});
  }
  if (widens) y = cast(g, y, g.element());
  const std::string scale = g.weight({width}, 1);
  return g.draw().one_in(2) ? g.node("Mul", {scale, y}) : g.node("Mul", {y, scale});
}

std::string rms(GraphDraw& g, const std::string& x, int64_t width) {
  Attributes attributes;
  attributes.push_back(real("epsilon", kEpsilon));
  attributes.push_back(integer("axis", -1));
  const int64_t form = g.draw().below(3);
  if (form == 0) return rms_by_parts(g, x, width);
  const bool is_new = form == 1 && g.opset() >= 23;
  return g.node(is_new ? "RMSNormalization" : "SimplifiedLayerNormalization",
                {x, g.weight({width}, 1)}, std::move(attributes));
}

// The norm of a residual sum, which the next one reads too; one term may be of one batch entry or
// position, for all.
bool residual_norm(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  std::string skip = pick_same(g, *x)->name;
  if (g.draw().one_in(4)) {
    skip = g.node("Slice", {skip, g.ints({0}), g.ints({1}), g.ints({g.draw().below(2)})});
  }
  const std::string sum =
      g.draw().one_in(2) ? g.node("Add", {x->name, skip}) : g.node("Add", {skip, x->name});
  const bool centers = g.opset() >= 17 && g.draw().one_in(3);
  if (centers) {
    g.hold(g.node("LayerNormalization", {sum, g.weight({x->dims[2]}, 1)},
                  {real("epsilon", kEpsilon), integer("axis", -1)}),
           x->dims);
  } else {
    g.hold(rms(g, sum, x->dims[2]), x->dims);
  }
  if (g.draw().one_in(2)) g.hold(g.node("Mul", {sum, g.term(0.5)}), x->dims);
  return true;
}

bool plain_norm(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  g.hold(rms(g, x->name, x->dims[2]), x->dims);
  return true;
}

// The sum and its norm as one operator; skip may be of one batch entry, for all.
bool skip_norm(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  const Held* other = pick_same(g, *x);
  std::string skip = other->name;
  if (g.draw().one_in(4)) {
    skip = g.node("Slice", {skip, g.ints({0}), g.ints({1}), g.ints({0})});
    if (g.draw().one_in(2)) skip = g.node("Squeeze", {skip, g.ints({0})});
  }
  const int64_t width = x->dims[2];
  const bool is_simple = g.draw().one_in(2);
  std::vector<std::string> inputs{x->name, skip, g.weight({width}, 1)};
  if (!is_simple) inputs.push_back(g.draw().one_in(2) ? g.weight({width}, 0.3) : "");
  if (g.draw().one_in(3)) inputs.push_back(g.weight({width}, 0.3));
  if (inputs.back().empty()) inputs.pop_back();
  const bool gives_sum = g.draw().one_in(2);
  Attributes attributes;
  attributes.push_back(real("epsilon", kEpsilon));
  const auto y =
      g.nodes(is_simple ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization", inputs,
              gives_sum ? 4 : 1, std::move(attributes), kMicrosoft, GraphDraw::Named::kEnds);
  g.hold(y[0], x->dims);
  if (gives_sum) g.hold(g.node("Mul", {y[3], g.term(0.5)}), x->dims);
  return true;
}

std::string project(GraphDraw& g, const std::string& x, int64_t from, int64_t to) {
  return g.draw().one_in(3) ? block_product(g, x, from, to)
                            : draw_product(g, x, from, to, g.draw().one_in(3));
}

// An activation of one side as operators of com.microsoft and others have it.
std::string gate_of(GraphDraw& g, const std::string& x) {
  switch (g.draw().below(5)) {
    case 0:
      return g.node("Mul", {x, g.node("Sigmoid", {x})});
    case 1:
      return g.node("QuickGelu", {x}, {real("alpha", g.draw().one_in(2) ? 1 : 1.702)}, kMicrosoft);
    case 2:
      return g.node("Gelu", {x}, {}, kMicrosoft);
    case 3:
      if (g.opset() >= 24) return g.node("Swish", {x});
      return g.node("FastGelu", {x}, {}, kMicrosoft);
    default:
      return draw_function(g, x, 0);
  }
}

// W2 (f(W1 x) * W3 x), with W1 and W3 one matrix here and there.
bool gated(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  const int64_t width = x->dims[2];
  const int64_t inner = g.between(1, 6) * 8;
  std::string gate;
  std::string up;
  if (g.draw().one_in(2)) {
    gate = project(g, x->name, width, inner);
    up = project(g, x->name, width, inner);
  } else {
    const std::string both = project(g, x->name, width, 2 * inner);
    const auto parts = g.nodes("Split", {both, g.ints({inner, inner})}, 2, {integer("axis", -1)});
    gate = parts[0];
    up = parts[1];
  }
  const std::string y = g.node("Mul", {gate_of(g, gate), up});
  std::string down = g.node("Mul", {project(g, y, inner, width), g.term(0.5)});
  if (g.draw().one_in(2)) down = g.node("Add", {x->name, down});
  g.hold(down, x->dims);
  return true;
}

// Gelu with the bias of the product before it.
bool biased_gelu(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  const int64_t width = g.between(1, 5) * 8;
  const std::string y = draw_product(g, x->name, x->dims[2], width, false);
  const bool is_fast = g.draw().one_in(2);
  std::vector<std::string> inputs{y};
  if (!is_fast || g.draw().one_in(2)) inputs.push_back(g.weight({width}, 0.5));
  g.hold(g.node(is_fast ? "FastGelu" : "BiasGelu", inputs, {}, kMicrosoft),
         {x->dims[0], x->dims[1], width});
  return true;
}

// Rows of a table for the tokens of another input.
bool embedding(GraphDraw& g) {
  const Held& x = g.exact();
  // More than 64 KiB are not folded when the model is loaded.
  const int64_t count = g.draw().one_in(5) ? g.between(260, 600) : g.between(2, 40);
  const int64_t width = g.draw().one_in(2) ? 32 : 64;
  const std::string at = g.ids(count);
  const Dims64 dims{x.dims[0], x.dims[1], width};
  if (g.draw().one_in(2)) {
    std::string table;
    if (g.draw().one_in(3)) {
      table = cast(g, g.half_weight({count, width}, 1), g.element());
    } else {
      table = g.weight({count, width}, 1);
    }
    g.hold(g.node("Gather", {table, at}), dims);
    if (g.draw().one_in(3)) {  // the head reads the same table
      const std::string turned = g.node("Transpose", {table}, {ints("perm", {1, 0})});
      const std::string y = g.node("MatMul", {g.exact().name, g.weight({x.dims[2], width}, 0.3)});
      g.hold(g.node("MatMul", {y, turned}), {x.dims[0], x.dims[1], count});
    }
    return true;
  }
  const int64_t bits = g.draw().one_in(2) ? 4 : 8;
  const int64_t block = g.draw().one_in(2) ? 16 : 32;
  std::vector<std::string> inputs{
      g.codes({count, width * bits / 8}, -128, 127, ElementType::kUint8), at,
      g.weight({count, width / block}, 4.0 / static_cast<double>(1 << bits))};
  if (g.draw().one_in(2)) {
    const int64_t bytes = (width / block * bits + 7) / 8;
    inputs.push_back(g.codes({count, bytes}, -128, 127, ElementType::kUint8));
  }
  Attributes attributes;
  attributes.push_back(integer("gather_axis", 0));
  attributes.push_back(integer("quantize_axis", 1));
  attributes.push_back(integer("bits", bits));
  attributes.push_back(integer("block_size", block));
  g.hold(g.node("GatherBlockQuantized", inputs, std::move(attributes), kMicrosoft), dims);
  return true;
}

bool projection(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  constexpr int64_t kWidths[] = {16, 32, 32, 64, 24};
  const int64_t width = g.draw().of(kWidths);
  std::string y = project(g, x->name, x->dims[2], width);
  if (g.draw().one_in(2)) y = gate_of(g, y);
  g.hold(y, {x->dims[0], x->dims[1], width});
  return true;
}

constexpr Step kSteps[] = {residual_norm, plain_norm, skip_norm,   skip_norm,  gated,
                           gated,         embedding,  biased_gelu, projection, projection};

}  // namespace

Span<const Step> decoder_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
