// Functions that exporters write as products become the operator of their name.
//
//   0.5 * x * (1 + erf(x / sqrt 2))                          com.microsoft Gelu
//   0.5 * x * (1 + tanh(0.79788 * (x + 0.044715 * x^3)))     com.microsoft FastGelu
//   x * sigmoid(a * x)                                       com.microsoft QuickGelu, alpha = a
//   x * clip(x + 3, 0, 6) / 6, x * hardsigmoid(x, 1/6, 1/2)  HardSwish
//   PRelu with one slope                                     LeakyRelu
//
// A product may be grouped and ordered in any way: it is taken apart into its factors, of which
// scalar constants are multiplied. Float only.
#include <algorithm>
#include <cmath>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752;
constexpr double kTanhScale = 0.79788456080286536;  // sqrt(2 / pi)
constexpr double kCubic = 0.044715;
constexpr size_t kMaxFactors = 5;
constexpr int kHardSwishVersion = 14;

struct Product {
  double scalar = 1.0;
  std::vector<ValueId> factors;
};

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

class FunctionFuser {
 public:
  FunctionFuser(Pattern& pattern, bool has_hard_swish)
      : p_(pattern), has_hard_swish_(has_hard_swish) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "PRelu")) fuse_slope(id);
      if (!p_.is(id, "Mul") && !p_.is(id, "Div")) continue;
      const ValueId y = p_.node(id).outputs[0];
      if (p_.node(id).version < 7 || p_.node(id).inputs.size() != 2 || !p_.is_float(y)) continue;
      Product product;
      take_apart(id, &product);
      if (product.factors.size() != 2) continue;
      for (size_t i = 0; i < 2; ++i) {
        const ValueId x = product.factors[i];
        if (fuse_gate(id, product.scalar, x, product.factors[1 - i])) break;
      }
    }
  }

 private:
  // The factors of what a Mul or Div gives.
  void take_apart(NodeId id, Product* out) const {
    const Node& node = p_.node(id);
    for (size_t i = 0; i < 2; ++i) {
      const ValueId factor = node.inputs[i];
      const auto number = p_.scalar(factor);
      if (number && p_.is(id, "Div") && i == 0) {
        out->factors.resize(kMaxFactors + 1, kNone);  // constant / x is none of ours
      } else if (number) {
        const auto wide = static_cast<double>(*number);
        out->scalar *= p_.is(id, "Div") ? 1.0 / wide : wide;
      } else if (p_.is(id, "Div") && i == 1) {
        out->factors.resize(kMaxFactors + 1, kNone);
      } else {
        add_factor(factor, out);
      }
    }
  }

  void add_factor(ValueId factor, Product* out) const {
    if (out->factors.size() > kMaxFactors) return;
    NodeId from = p_.made_by(factor, "Mul");
    if (from == kNone) from = p_.made_by(factor, "Div");
    const bool opens = from != kNone && p_.is_read_once(factor) && p_.node(from).version >= 7 &&
                       p_.node(from).inputs.size() == 2;
    if (opens) {
      take_apart(from, out);
    } else if (const NodeId pow = p_.made_by(factor, "Pow"); is_cube(pow)) {
      out->factors.insert(out->factors.end(), 3, p_.input(pow, 0));
    } else if (is_square(pow)) {
      out->factors.insert(out->factors.end(), 2, p_.input(pow, 0));
    } else {
      out->factors.push_back(factor);
    }
  }

  bool is_cube(NodeId pow) const { return pow != kNone && p_.is_scalar(p_.input(pow, 1), 3); }
  bool is_square(NodeId pow) const { return pow != kNone && p_.is_scalar(p_.input(pow, 1), 2); }

  Product product_of(ValueId value) const {
    Product out;
    add_factor(value, &out);
    return out;
  }

  // value = number * x
  bool is_scaled(ValueId value, ValueId x, double number) const {
    const Product product = product_of(value);
    return product.factors.size() == 1 && product.factors[0] == x &&
           is_near(product.scalar, number);
  }

  // The other term of value = term + number.
  ValueId without(ValueId value, double number) const {
    const auto sum = p_.with_scalar(value, "Add", /*commutes=*/true);
    return sum && is_near(static_cast<double>(sum->scalar), number) ? sum->value : kNone;
  }

  bool fuse_gate(NodeId id, double scalar, ValueId x, ValueId gate) {
    // Scalars of higher rank would give the result another shape.
    if (!p_.is_float(x) || !p_.dims(x) || !p_.dims(p_.node(id).outputs[0]) ||
        p_.dims(x)->size() != p_.dims(p_.node(id).outputs[0])->size()) {
      return false;
    }
    if (is_near(scalar, 1.0) && fuse_sigmoid(id, x, gate)) return true;
    if (is_near(scalar, 0.5)) {
      const ValueId inner = without(gate, 1.0);
      const NodeId erf = p_.made_by(inner, "Erf");
      if (erf != kNone && is_scaled(p_.input(erf, 0), x, kSqrtHalf)) {
        return put(id, make_node("", "com.microsoft", "Gelu", 1, {x}));
      }
      const NodeId tanh = p_.made_by(inner, "Tanh");
      if (tanh != kNone && is_tanh_argument(p_.input(tanh, 0), x)) {
        return put(id, make_node("", "com.microsoft", "FastGelu", 1, {x}));
      }
    }
    const bool is_hard = (is_near(scalar, 1.0 / 6.0) && is_clipped(gate, x)) ||
                         (is_near(scalar, 1.0) && is_hard_sigmoid(gate, x));
    return is_hard && has_hard_swish_ &&
           put(id, make_node("", "", "HardSwish", kHardSwishVersion, {x}));
  }

  bool fuse_sigmoid(NodeId id, ValueId x, ValueId gate) {
    const NodeId sigmoid = p_.made_by(gate, "Sigmoid");
    if (sigmoid == kNone || !p_.is_read_once(gate)) return false;
    const Product argument =
        p_.input(sigmoid, 0) == x ? Product{1.0, {x}} : product_of(p_.input(sigmoid, 0));
    if (argument.factors.size() != 1 || argument.factors[0] != x) return false;
    Node fused = make_node("", "com.microsoft", "QuickGelu", 1, {x});
    fused.attributes.set(float_attribute("alpha", static_cast<float>(argument.scalar)));
    return put(id, std::move(fused));
  }

  // A function of one number, which goes into products. A slope of higher rank than x is an error
  // that PRelu reports.
  void fuse_slope(NodeId id) {
    const Node& prelu = p_.node(id);
    if (prelu.inputs.size() != 2 || !p_.is_float(prelu.inputs[0])) return;
    const Dims* dims = p_.dims(prelu.inputs[0]);
    const auto slope = p_.scalar(prelu.inputs[1], dims ? dims->size() : 0);
    if (!slope || !std::isfinite(*slope)) return;
    Node fused = make_node("", "", "LeakyRelu", prelu.version, {prelu.inputs[0]});
    fused.attributes.set(float_attribute("alpha", *slope));
    put(id, std::move(fused));
  }

  // 0.79788 * (x + 0.044715 * x^3) or 0.79788 * x * (1 + 0.044715 * x^2)
  bool is_tanh_argument(ValueId value, ValueId x) const {
    const Product product = product_of(value);
    if (!is_near(product.scalar, kTanhScale)) return false;
    if (product.factors.size() == 2) {
      const bool first = product.factors[0] == x;
      if (!first && product.factors[1] != x) return false;
      return is_power(without(product.factors[first ? 1 : 0], 1.0), x, 2);
    }
    if (product.factors.size() != 1) return false;
    const NodeId sum = p_.made_by(product.factors[0], "Add");
    if (sum == kNone || p_.node(sum).inputs.size() != 2) return false;
    const bool reads_x = p_.input(sum, 0) == x || p_.input(sum, 1) == x;
    return reads_x && is_power(p_.other_input(sum, x), x, 3);
  }

  // value = 0.044715 * x^power
  bool is_power(ValueId value, ValueId x, size_t power) const {
    if (value == kNone) return false;
    const Product product = product_of(value);
    return is_near(product.scalar, kCubic) && product.factors.size() == power &&
           std::all_of(product.factors.begin(), product.factors.end(),
                       [&](ValueId factor) { return factor == x; });
  }

  // clip(x + 3, 0, 6)
  bool is_clipped(ValueId gate, ValueId x) const {
    const NodeId clip = p_.made_by(gate, "Clip");
    if (clip == kNone || without(p_.input(clip, 0), 3.0) != x) return false;
    if (p_.node(clip).version >= 11) {
      const auto low = p_.scalar(p_.input(clip, 1));
      return low && *low == 0.0F && p_.is_scalar(p_.input(clip, 2), 6.0);
    }
    const Attributes& attrs = p_.node(clip).attributes;
    const auto low = attrs.get_float("min", -1.0F);
    const auto high = attrs.get_float("max", 0.0F);
    return low.is_ok() && low.value() == 0.0F && high.is_ok() && high.value() == 6.0F;
  }

  bool is_hard_sigmoid(ValueId gate, ValueId x) const {
    const NodeId function = p_.made_by(gate, "HardSigmoid");
    if (function == kNone || p_.input(function, 0) != x) return false;
    const auto alpha = p_.node(function).attributes.get_float("alpha", 0.2F);
    const auto beta = p_.node(function).attributes.get_float("beta", 0.5F);
    return alpha.is_ok() && beta.is_ok() && is_near(static_cast<double>(alpha.value()), 1.0 / 6) &&
           is_near(static_cast<double>(beta.value()), 0.5);
  }

  bool put(NodeId id, Node fused) {
    fused.name = p_.node(id).name;
    p_.replace(id, std::move(fused));
    return true;
  }

  Pattern& p_;
  const bool has_hard_swish_;
};

}  // namespace

void fuse_functions(Model* model, bool* changed, Leaves leaves) {
  // ONNX Runtime has it as a function only, for which an .ort has no place.
  const bool has_hard_swish = leaves == Leaves::kAll;
  for_each_graph(&model->graph, changed,
                 [&](Pattern& pattern) { FunctionFuser(pattern, has_hard_swish).fuse(); });
}

}  // namespace folio
