// Layer and RMS normalization by parts become one operator, and take the sum before them in.
//
//   d = x - mean(x), d / sqrt(mean(d^2) + epsilon) * scale [+ bias]   LayerNormalization
//   x / sqrt(mean(x^2) + epsilon) * scale                             SimplifiedLayerNormalization
//   the same of a + b                                                 com.microsoft Skip... of them
//
// Means over the last dim, which must be known and the length of scale and bias. Float only. The
// sum goes in where both terms have the same dims at every run, and is given as an output where
// others read it.
#include <algorithm>

#include "core/ops/op_reduce.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int kLayerNormVersion = 17;

class NormFuser {
 public:
  explicit NormFuser(Pattern& pattern) : p_(pattern) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) fuse_from(id);
  }

  void fuse_sums(Leaves leaves) {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "LayerNormalization") || p_.is(id, "SimplifiedLayerNormalization")) {
        fuse_sum(id, leaves);
      }
    }
  }

 private:
  struct Normal {
    ValueId x = kNone;
    ValueId y = kNone;
    bool rms = false;
    float epsilon = 0;
  };

  // x / sqrt(..), or x * (1 / sqrt(..))
  std::optional<Normal> normal_at(NodeId id) const {
    if (p_.is(id, "Div") && p_.node(id).inputs.size() == 2) {
      return normal_of(p_.input(id, 0), p_.input(id, 1), p_.node(id).outputs[0]);
    }
    if (!p_.is(id, "Mul") || p_.node(id).inputs.size() != 2) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId inverse = p_.input(id, i);
      NodeId from = p_.made_by(inverse, "Reciprocal");
      ValueId root = from == kNone ? kNone : p_.input(from, 0);
      if (from == kNone && (from = p_.made_by(inverse, "Div")) != kNone) {
        const auto one = p_.scalar(p_.input(from, 0));
        if (one && *one == 1.0F) root = p_.input(from, 1);
      }
      if (root == kNone) continue;
      const auto found = normal_of(p_.input(id, 1 - i), root, p_.node(id).outputs[0]);
      if (found) return found;
    }
    return std::nullopt;
  }

  std::optional<Normal> normal_of(ValueId top, ValueId root, ValueId y) const {
    const NodeId sqrt = p_.made_by(root, "Sqrt");
    if (sqrt == kNone || !p_.is_float(y)) return std::nullopt;
    const auto sum = p_.with_scalar(p_.input(sqrt, 0), "Add", /*commutes=*/true);
    if (!sum || !(sum->scalar >= 0.0F)) return std::nullopt;
    const ValueId squares = mean_of(sum->value);
    const ValueId squared = squares == kNone ? kNone : square_root_of(squares);
    if (squared == kNone) return std::nullopt;
    Normal out;
    out.y = y;
    out.epsilon = sum->scalar;
    const ValueId centred = source_of_centred(top);
    if (centred != kNone && (squared == top || source_of_centred(squared) == centred)) {
      out.x = centred;
    } else if (squared == top) {
      out.x = top;
      out.rms = true;
    } else {
      return std::nullopt;
    }
    return out;
  }

  // What `value` is the mean of over its last dim, which is kept; kNone otherwise.
  ValueId mean_of(ValueId value) const {
    const NodeId mean = p_.made_by(value, "ReduceMean");
    if (mean == kNone) return kNone;
    const Node& node = p_.node(mean);
    const auto keeps = keeps_dims(node.attributes);
    if (!keeps.is_ok() || !keeps.value()) return kNone;
    std::vector<int64_t> axes;
    if (node.version >= 18) {
      const auto given = p_.ints(p_.input(mean, 1));
      if (!given) return kNone;
      axes = *given;
    } else {
      auto given = node.attributes.get_ints("axes");
      if (!given.is_ok()) return kNone;
      axes = given.value();
    }
    const ValueId x = p_.input(mean, 0);
    const Dims* dims = p_.dims(x);
    if (!dims || axes.size() != 1) return kNone;
    const auto rank = static_cast<int64_t>(dims->size());
    return axes[0] == -1 || axes[0] == rank - 1 ? x : kNone;
  }

  // x of x^2 or x * x.
  ValueId square_root_of(ValueId value) const {
    if (const NodeId pow = p_.made_by(value, "Pow"); pow != kNone) {
      return p_.is_scalar(p_.input(pow, 1), 2) && p_.is_float(p_.input(pow, 0)) ? p_.input(pow, 0)
                                                                                : kNone;
    }
    const NodeId mul = p_.made_by(value, "Mul");
    return mul != kNone && p_.input(mul, 0) == p_.input(mul, 1) ? p_.input(mul, 0) : kNone;
  }

  // x of x - mean(x).
  ValueId source_of_centred(ValueId value) const {
    const NodeId sub = p_.made_by(value, "Sub");
    if (sub == kNone) return kNone;
    const ValueId x = p_.input(sub, 0);
    return p_.is_float(x) && mean_of(p_.input(sub, 1)) == x ? x : kNone;
  }

  // The other input of the one Mul or Add that reads `value`, when it is [n], n the last dim.
  ValueId parameter(NodeId reader, std::string_view type, ValueId value, Dim n) const {
    if (!p_.is(reader, type) || p_.node(reader).inputs.size() != 2) return kNone;
    const ValueId other = p_.other_input(reader, value);
    const Dims* dims = p_.dims(other);
    const bool fits = other != value && p_.is_float(other) && dims && dims->size() == 1 &&
                      (*dims)[0].is_value() && (*dims)[0] == n;
    return fits ? other : kNone;
  }

  void fuse_from(NodeId id) {
    const auto normal = normal_at(id);
    if (!normal) return;
    const Dims* dims = p_.dims(normal->x);
    if (!dims || dims->empty() || !dims->back().is_value()) return;
    // Numbers of higher rank (the exponent, the 1 of 1 / sqrt) give the result another shape.
    const Dims* result = p_.dims(normal->y);
    if (!result || result->size() != dims->size()) return;
    const Dim n = dims->back();
    NodeId last = p_.sole_reader(normal->y);
    if (last == kNone) return;
    const ValueId scale = parameter(last, "Mul", normal->y, n);
    if (scale == kNone) return;
    Node fused = make_node(p_.node(last).name, "",
                           normal->rms ? "SimplifiedLayerNormalization" : "LayerNormalization",
                           normal->rms ? 1 : kLayerNormVersion, {normal->x, scale});
    fused.attributes.set(int_attribute("axis", -1));
    fused.attributes.set(float_attribute("epsilon", normal->epsilon));
    if (!normal->rms) {
      const ValueId scaled = p_.node(last).outputs[0];
      const NodeId add = p_.sole_reader(scaled);
      const ValueId bias = add == kNone ? kNone : parameter(add, "Add", scaled, n);
      if (bias != kNone) {
        fused.inputs.push_back(bias);
        last = add;
      }
    }
    p_.replace(last, std::move(fused));
  }

  void fuse_sum(NodeId id, Leaves leaves) {
    const Node& norm = p_.node(id);
    const bool rms = norm.op_type != "LayerNormalization";
    for (size_t i = 1; i < norm.outputs.size(); ++i) {
      if (norm.outputs[i] != kNone) return;
    }
    const ValueId sum = p_.input(id, 0);
    const NodeId add = p_.made_by(sum, "Add");
    const Dims* dims = p_.dims(sum);
    if (add == kNone || p_.node(add).inputs.size() != 2 || !dims) return;
    const auto rank = static_cast<int64_t>(dims->size());
    const auto axis = norm.attributes.get_int("axis", -1);
    const auto epsilon = norm.attributes.get_float("epsilon", 1e-5F);
    bool fits = (rank == 2 || rank == 3) && axis.is_ok() && epsilon.is_ok() &&
                (axis.value() == -1 || axis.value() == rank - 1) && dims->back().is_value();
    for (size_t i = 1; fits && i < norm.inputs.size(); ++i) {
      const auto shape = p_.shape(norm.inputs[i]);
      fits = norm.inputs[i] == kNone || (shape && *shape == Shape{dims->back().value});
    }
    const ValueId a = p_.input(add, 0);
    const ValueId b = p_.input(add, 1);
    if (!fits || !p_.is_float(a) || !p_.is_float(b)) return;
    const bool broadcasts = !p_.same_dims(a, b);
    if (broadcasts && (leaves == Leaves::kPortable || !may_agree(a, b))) return;
    // The sum that others read is made where it was: what else goes in must be there by then.
    const bool is_shared = !p_.is_read_once(sum);
    for (size_t i = 1; i < norm.inputs.size(); ++i) {
      if (is_shared && norm.inputs[i] != kNone && !p_.constant(norm.inputs[i])) return;
    }
    Node fused = make_node(norm.name, "com.microsoft",
                           rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization", 1,
                           {a, b, norm.inputs[1]});
    if (!rms && norm.inputs.size() > 2) fused.inputs.push_back(norm.inputs[2]);
    fused.attributes.set(float_attribute("epsilon", epsilon.value()));
    if (broadcasts) fused.attributes.set(int_attribute("broadcasts", 1));
    const ValueId y = norm.outputs[0];
    if (!is_shared) {
      p_.replace(id, std::move(fused));
      return;
    }
    fused.outputs = {y, kNone, kNone, sum};
    p_.remove(id);
    p_.replace(add, std::move(fused));
  }

  // Dims that no number keeps from being the same, which only a run can tell of names and of what
  // inference does not know.
  bool may_agree(ValueId a, ValueId b) const {
    const Dims* left = p_.dims(a);
    const Dims* right = p_.dims(b);
    return left && right &&
           std::equal(left->begin(), left->end(), right->begin(), right->end(),
                      [](Dim x, Dim y) { return !x.is_value() || !y.is_value() || x == y; }) &&
           left->back().is_value() && right->back().is_value();
  }

  Pattern& p_;
};

}  // namespace

void fuse_norms(Model* model, bool* changed) {
  for_each_graph(&model->graph, changed, [](Pattern& pattern) { NormFuser(pattern).fuse(); });
}

void fuse_skips(Model* model, bool* changed, Leaves leaves) {
  for_each_graph(&model->graph, changed,
                 [=](Pattern& pattern) { NormFuser(pattern).fuse_sums(leaves); });
}

}  // namespace folio
