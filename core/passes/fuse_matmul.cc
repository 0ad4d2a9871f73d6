// MatMul takes in what stands around it.
//
//   Transpose of the last two dims of an operand    transA, transB
//   Mul or Div of an operand or the result by one   alpha
//   number
//   Add of a constant per column, then a function   third input and attribute `activation`
//
// Without the last, which a model to be saved goes without, it becomes com.microsoft FusedMatMul,
// with it folio's FusedMatMul. Float only; a
// bias never broadcasts the product, nor raises its rank.
#include <algorithm>
#include <cmath>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

class MatMulFuser {
 public:
  MatMulFuser(Pattern& pattern, Leaves leaves) : p_(pattern), leaves_(leaves) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      const bool found = p_.is(id, "MatMul") && p_.node(id).inputs.size() == 2;
      if (found && p_.is_float(p_.node(id).outputs[0])) fuse_product(id);
    }
  }

 private:
  struct Product {
    ValueId operands[2] = {kNone, kNone};
    bool trans[2] = {false, false};
    float alpha = 1.0F;
    ValueId bias = kNone;
    std::optional<FusableFunction> function;
    NodeId last = kNone;  // the node whose result this is
  };

  void fuse_product(NodeId id) {
    Product product;
    for (size_t i = 0; i < 2; ++i) take_operand(p_.input(id, i), i, &product);
    product.last = id;
    take_factors(&product);
    if (leaves_ == Leaves::kAll) {
      take_bias(&product);
      take_function(&product);
    }
    const bool is_plain = product.last == id && product.operands[0] == p_.input(id, 0) &&
                          product.operands[1] == p_.input(id, 1);
    if (is_plain) return;
    const bool finishes = product.bias != kNone || product.function;
    Node fused = make_node(p_.node(id).name, finishes ? "folio" : "com.microsoft", "FusedMatMul", 1,
                           {product.operands[0], product.operands[1]});
    if (product.alpha != 1.0F) fused.attributes.set(float_attribute("alpha", product.alpha));
    if (product.trans[0]) fused.attributes.set(int_attribute("transA", 1));
    if (product.trans[1]) fused.attributes.set(int_attribute("transB", 1));
    if (product.bias != kNone) fused.inputs.push_back(product.bias);
    if (product.function) set_function(*product.function, &fused);
    p_.replace(product.last, std::move(fused));
  }

  static void set_function(const FusableFunction& function, Node* fused) {
    fused->attributes.set(text_attribute("activation", function.name));
    const char* names[] = {"activation_alpha", "activation_beta"};
    for (size_t i = 0; i < function.parameters.size() && i < 2; ++i) {
      fused->attributes.set(float_attribute(names[i], function.parameters[i]));
    }
  }

  // Goes up through transposes and factors that only this product reads. Constants were folded.
  void take_operand(ValueId value, size_t i, Product* out) const {
    out->operands[i] = value;
    while (p_.is_read_once(value) && !p_.constant(value)) {
      const auto factor = factor_of(value);
      const NodeId transpose = p_.made_by(value, "Transpose");
      if (factor && scale(factor->second, out)) {
        value = factor->first;
      } else if (transpose != kNone && swaps_last_two(transpose)) {
        out->trans[i] = !out->trans[i];
        value = p_.input(transpose, 0);
      } else {
        break;
      }
      out->operands[i] = value;
    }
  }

  // x and number of x * number or x / number.
  std::optional<std::pair<ValueId, float>> factor_of(ValueId value) const {
    if (const auto found = p_.with_scalar(value, "Mul", /*commutes=*/true)) {
      return std::pair(found->value, found->scalar);
    }
    if (const auto found = p_.with_scalar(value, "Div", /*commutes=*/false)) {
      return std::pair(found->value, 1.0F / found->scalar);
    }
    return std::nullopt;
  }

  static bool scale(float by, Product* product) {
    const float alpha = product->alpha * by;
    // A product that overflows or vanishes as one number may not do so one after the other.
    if (!std::isnormal(alpha)) return false;
    product->alpha = alpha;
    return true;
  }

  bool swaps_last_two(NodeId transpose) const {
    const Dims* dims = p_.dims(p_.input(transpose, 0));
    const auto perm = p_.node(transpose).attributes.get_ints("perm");
    if (!dims || dims->size() < 2 || !perm.is_ok() || !p_.is_float(p_.input(transpose, 0))) {
      return false;
    }
    const auto rank = static_cast<int64_t>(dims->size());
    std::vector<int64_t> swapped;
    for (int64_t i = 0; i < rank; ++i) swapped.push_back(i);
    std::swap(swapped[dims->size() - 1], swapped[dims->size() - 2]);
    return perm.value() == swapped || (perm.value().empty() && rank == 2);
  }

  void take_factors(Product* out) const {
    for (;;) {
      const ValueId y = p_.node(out->last).outputs[0];
      const NodeId reader = p_.sole_reader(y);
      if (reader == kNone || p_.node(reader).outputs.size() != 1) return;
      const auto factor = factor_of(p_.node(reader).outputs[0]);
      if (!factor || factor->first != y || !scale(factor->second, out)) return;
      out->last = reader;
    }
  }

  void take_bias(Product* out) const {
    const ValueId y = p_.node(out->last).outputs[0];
    const NodeId add = p_.sole_reader(y);
    const Dims* dims = p_.dims(y);
    if (add == kNone || !p_.is(add, "Add") || p_.node(add).inputs.size() != 2 || !dims) return;
    const ValueId other = p_.other_input(add, y);
    const Initializer* bias = p_.constant(other);
    if (!bias || bias->dtype != DType::kFloat || dims->empty() || !dims->back().is_value()) return;
    // Of a matrix and a vector the last dim is the rows'.
    const Dims* right = p_.dims(out->operands[1]);
    if (!right || right->size() < 2) return;
    const Shape& shape = bias->shape;
    const auto rank = static_cast<size_t>(shape.rank());
    if (rank < 1 || rank > dims->size() || shape[shape.rank() - 1] != dims->back().value ||
        shape.count() != dims->back().value) {
      return;
    }
    out->bias = other;
    out->last = add;
  }

  void take_function(Product* out) const {
    const ValueId y = p_.node(out->last).outputs[0];
    const NodeId reader = p_.sole_reader(y);
    if (reader == kNone || p_.input(reader, 0) != y || p_.node(reader).outputs.size() != 1) return;
    out->function = fusable_function(p_.graph(), p_.node(reader));
    if (out->function) out->last = reader;
  }

  Pattern& p_;
  const Leaves leaves_;
};

}  // namespace

void fuse_matmul(Model* model, bool* changed, Leaves leaves) {
  for_each_graph(&model->graph, changed,
                 [&](Pattern& pattern) { MatMulFuser(pattern, leaves).fuse(); });
}

}  // namespace folio
