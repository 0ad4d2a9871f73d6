// draw_function: functions of elements as exporters spell them.
#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

// Commutative, the operands in any order.
std::string either(GraphDraw& g, std::string_view type, const std::string& a,
                   const std::string& b) {
  return g.draw().one_in(2) ? g.node(type, {a, b}) : g.node(type, {b, a});
}
std::string times(GraphDraw& g, const std::string& a, const std::string& b) {
  return either(g, "Mul", a, b);
}
std::string plus(GraphDraw& g, const std::string& a, const std::string& b) {
  return either(g, "Add", a, b);
}
// By a number, as a product or a quotient.
std::string scaled(GraphDraw& g, const std::string& x, double by) {
  return g.draw().one_in(2) ? times(g, x, g.term(by)) : g.node("Div", {x, g.term(1 / by)});
}

std::string clip(GraphDraw& g, const std::string& x, double low, double high) {
  return g.node("Clip", {x, g.number(low), g.number(high)});
}

// f(x) / 2 x, the three factors in any order.
std::string half_of_product(GraphDraw& g, const std::string& x, const std::string& f) {
  switch (g.draw().below(3)) {
    case 0:
      return times(g, scaled(g, x, 0.5), f);
    case 1:
      return scaled(g, times(g, x, f), 0.5);
    default:
      return times(g, x, scaled(g, f, 0.5));
  }
}

std::string gelu_by_erf(GraphDraw& g, const std::string& x, int64_t) {
  if (g.opset() >= 20 && g.draw().one_in(3)) return g.node("Gelu", {x});
  const std::string erf = g.node("Erf", {scaled(g, x, 0.7071067811865476)});
  return half_of_product(g, x, plus(g, erf, g.term(1)));
}

std::string gelu_by_tanh(GraphDraw& g, const std::string& x, int64_t) {
  const std::string cube =
      g.draw().one_in(2) ? g.node("Pow", {x, g.term(3)}) : times(g, times(g, x, x), x);
  const std::string inner = plus(g, x, times(g, cube, g.term(0.044715)));
  const std::string tanh = g.node("Tanh", {times(g, inner, g.term(0.7978845608028654))});
  return half_of_product(g, x, plus(g, tanh, g.term(1)));
}

std::string silu(GraphDraw& g, const std::string& x, int64_t) {
  const bool is_quick = g.draw().one_in(2);
  return times(g, x, g.node("Sigmoid", {is_quick ? times(g, x, g.term(1.702)) : x}));
}

std::string hard_swish(GraphDraw& g, const std::string& x, int64_t) {
  switch (g.opset() >= 14 ? g.draw().below(3) : g.between(1, 2)) {
    case 0:
      return g.node("HardSwish", {x});
    case 1:
      return times(g, x, g.node("HardSigmoid", {x}, {real("alpha", 1.0 / 6), real("beta", 0.5)}));
    default:
      return scaled(g, times(g, x, clip(g, plus(g, x, g.term(3)), 0, 6)), 1.0 / 6);
  }
}

std::string mish(GraphDraw& g, const std::string& x, int64_t) {
  return times(g, x, g.node("Tanh", {g.node("Softplus", {x})}));
}

std::string prelu(GraphDraw& g, const std::string& x, int64_t channels) {
  const bool is_wide = channels > 0 && g.draw().one_in(2);
  return g.node("PRelu", {x, g.weight(is_wide ? Dims64{channels, 1, 1} : Dims64{1}, 0.3)});
}

std::string plain(GraphDraw& g, const std::string& x, int64_t) {
  constexpr const char* kTypes[] = {"Relu", "Sigmoid", "Tanh", "Abs",      "Neg",
                                    "Elu",  "Erf",     "Exp",  "Softsign", "Softplus"};
  const std::string type = g.draw().of(kTypes);
  return g.node(type, {type == "Exp" ? clip(g, x, -2, 1) : x});
}

std::string bounded(GraphDraw& g, const std::string& x, int64_t) {
  switch (g.draw().below(4)) {
    case 0:
      return g.node("LeakyRelu", {x}, {real("alpha", 0.1)});
    case 1:
      return clip(g, x, 0, 6);
    case 2:
      return g.node("Clip", {x, "", g.number(0.5)});
    default:
      return g.node("HardSigmoid", {x});
  }
}

using Function = std::string (*)(GraphDraw&, const std::string&, int64_t);
constexpr Function kFunctions[] = {gelu_by_erf, gelu_by_tanh, silu,  hard_swish, mish,
                                   prelu,       plain,        plain, bounded,    bounded};

}  // namespace

std::string draw_function(GraphDraw& g, const std::string& x, int64_t channels) {
  return g.draw().of(kFunctions)(g, x, channels);
}

}  // namespace folio::properties
