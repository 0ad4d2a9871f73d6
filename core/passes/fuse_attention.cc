// Attention by parts becomes folio's StridedAttention.
//
//   softmax(scale * Q K^T [+ mask] [where condition: number]) V over the last dim
//
// Q, K^T and V are values of rank 3 or 4 that are not constant, with heads of known size. Taken in:
// Transposes of Q, K, V and the result which leave rows of heads whole (K^T may stand either way),
// and Mul or Div by one number of Q, K or the scores. The mask is any float value, added; the
// condition is Where's with a constant of one element on either side, nearest to the Softmax. Of K
// and V that repeat each head for several of Q, both as often (grouped queries: a cache of few
// heads by way of [B, G, n, S, D] to [B, G * n, S, D], or of one head), the heads there are are
// read.
#include <algorithm>
#include <cmath>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

using Perm = std::vector<int64_t>;

Perm identity(size_t rank) {
  Perm perm;
  for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  return perm;
}

class AttentionFuser {
 public:
  explicit AttentionFuser(Pattern& pattern) : p_(pattern) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "Softmax")) fuse_at(id);
    }
  }

 private:
  enum class Side { kQueries, kKeys, kValues };
  // Logical dim i is dim perm[i] of the value.
  struct Operand {
    ValueId value = kNone;
    Perm perm;
    int64_t repeats = 1;  // of each head, in consecutive logical ones
  };
  struct Scores {
    Operand q, k;
    float scale = 1.0F;
    ValueId mask = kNone;
    ValueId condition = kNone;
    float fill = 0;
    bool fill_where = true;
  };

  void fuse_at(NodeId softmax) {
    const ValueId x = p_.input(softmax, 0);
    const ValueId weights = p_.node(softmax).outputs[0];
    const Dims* dims = p_.dims(x);
    if (!dims || (dims->size() != 3 && dims->size() != 4) || !p_.is_float(x)) return;
    rank_ = dims->size();
    if (!is_over_last_dim(softmax)) return;
    const NodeId product = p_.sole_reader(weights);
    if (!p_.is(product, "MatMul") || p_.input(product, 0) != weights) return;
    for (const bool repeats : {true, false}) {
      takes_repeats_ = repeats;
      Scores scores;
      if (!find_scores(x, &scores)) return;
      const auto v = operand(p_.input(product, 1), identity(rank_), Side::kValues, nullptr);
      if (!v) return;
      if (agree_in_heads(scores, *v)) return put(softmax, product, scores, *v);
    }
  }

  // K and V repeat their heads alike, for as many as Q has.
  bool agree_in_heads(const Scores& scores, const Operand& v) const {
    if (scores.k.repeats != v.repeats) return false;
    if (v.repeats == 1) return true;
    const Dim queries = heads(scores.q), keys = heads(scores.k), values = heads(v);
    return queries.is_value() && keys == values && keys.value * v.repeats == queries.value;
  }

  Dim heads(const Operand& x) const {
    return (*p_.dims(x.value))[static_cast<size_t>(x.perm[rank_ - 3])];
  }

  void put(NodeId softmax, NodeId product, const Scores& scores, const Operand& v) {
    Node fused = make_node(p_.node(softmax).name, "folio", "StridedAttention", 1,
                           {scores.q.value, scores.k.value, v.value});
    fused.attributes.set(ints_attribute("perm_q", scores.q.perm));
    fused.attributes.set(ints_attribute("perm_k", scores.k.perm));
    fused.attributes.set(ints_attribute("perm_v", v.perm));
    if (v.repeats > 1) fused.attributes.set(int_attribute("repeats", v.repeats));
    fused.attributes.set(float_attribute("scale", scores.scale));
    if (scores.mask != kNone || scores.condition != kNone) fused.inputs.push_back(scores.mask);
    if (scores.condition != kNone) {
      fused.inputs.push_back(scores.condition);
      fused.attributes.set(float_attribute("fill", scores.fill));
      fused.attributes.set(int_attribute("fill_where", scores.fill_where ? 1 : 0));
    }
    Perm placed = identity(rank_);
    const NodeId last = take_transpose(product, &placed);
    fused.attributes.set(ints_attribute("perm_y", placed));
    p_.replace(last, std::move(fused));
  }

  bool is_over_last_dim(NodeId softmax) const {
    const auto axis = p_.node(softmax).attributes.get_int(
        "axis", p_.node(softmax).version < 13 ? int64_t{1} : int64_t{-1});
    const auto rank = static_cast<int64_t>(rank_);
    return axis.is_ok() && (axis.value() == -1 || axis.value() == rank - 1);
  }

  // From the Softmax's input up to the product of Q and K^T.
  bool find_scores(ValueId x, Scores* out) const {
    if (!p_.is_read_once(x)) return false;
    x = take_where(x, out);
    const NodeId add = p_.made_by(x, "Add");
    if (add == kNone) return take_product(x, out);
    if (p_.node(add).inputs.size() != 2 || !p_.is_read_once(x)) return false;
    for (size_t i = 0; i < 2; ++i) {
      out->mask = p_.input(add, 1 - i);
      const bool fits = p_.is_float(out->mask) && is_term(out->mask);
      if (fits && take_product(p_.input(add, i), out)) return true;
    }
    return false;
  }

  // What broadcasts with the scores without giving them a higher rank.
  bool is_term(ValueId value) const {
    const Dims* dims = p_.dims(value);
    return dims && dims->size() <= rank_;
  }

  // Where(condition, number, scores) or Where(condition, scores, number).
  ValueId take_where(ValueId x, Scores* out) const {
    const NodeId where = p_.made_by(x, "Where");
    if (where == kNone || p_.node(where).inputs.size() != 3) return x;
    for (size_t i = 1; i < 3; ++i) {
      const ValueId scores = p_.input(where, 3 - i);
      const auto fill = p_.scalar(p_.input(where, i), rank_);
      if (!fill || !is_term(p_.input(where, 0)) || !p_.is_read_once(scores)) continue;
      out->condition = p_.input(where, 0);
      out->fill = *fill;
      out->fill_where = i == 1;
      return scores;
    }
    return x;
  }

  bool take_product(ValueId x, Scores* out) const {
    float scale = 1.0F;
    while (const auto factor = factor_of(x)) {
      if (!p_.is_read_once(x) || !multiply(factor->second, &scale)) return false;
      x = factor->first;
    }
    const NodeId product = p_.made_by(x, "MatMul");
    const Dims* dims = p_.dims(x);
    const bool fits = product != kNone && p_.is_read_once(x) && dims && dims->size() == rank_;
    if (!fits) return false;
    const auto q = operand(p_.input(product, 0), identity(rank_), Side::kQueries, &scale);
    Perm swapped = identity(rank_);
    std::swap(swapped[rank_ - 1], swapped[rank_ - 2]);
    const auto k = operand(p_.input(product, 1), swapped, Side::kKeys, &scale);
    if (!q || !k) return false;
    out->q = *q;
    out->k = *k;
    out->scale = scale;
    return true;
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

  static bool multiply(float by, float* scale) {
    const float product = *scale * by;
    // What overflows or vanishes as one number may not do so one after the other.
    if (!std::isnormal(product)) return false;
    *scale = product;
    return true;
  }

  // The operand that `value` is a view of, by `perm` so far: goes up through Transposes, and
  // factors where there is a `scale` to take them, that only this reads. Of keys also with the
  // positions of a head side by side instead of its elements.
  std::optional<Operand> operand(ValueId value, Perm perm, Side side, float* scale) const {
    const Dims* dims = p_.dims(value);
    if (!dims || dims->size() != rank_ || !p_.is_float(value) || p_.constant(value)) {
      return std::nullopt;
    }
    const Dim size = (*dims)[static_cast<size_t>(perm.back())];
    if (!size.is_value() || size.value < 1) return std::nullopt;
    const auto last = static_cast<int64_t>(rank_) - 1;
    std::optional<Operand> found;
    float taken = scale ? *scale : 1.0F;
    int64_t repeats = 1;
    for (;;) {
      if (perm[rank_ - 1] == last || (side == Side::kKeys && perm[rank_ - 2] == last)) {
        found = Operand{value, perm, repeats};
        if (scale) *scale = taken;
      }
      const auto factor = scale ? factor_of(value) : std::nullopt;
      const NodeId transpose = p_.made_by(value, "Transpose");
      if (!p_.is_read_once(value)) break;
      const bool may_repeat = takes_repeats_ && side != Side::kQueries && repeats == 1;
      const auto repeated = may_repeat && perm[rank_ - 3] == 1 ? take_repeats(value) : std::nullopt;
      if (repeated) {
        value = repeated->value;
        repeats = repeated->repeats;
      } else if (factor && multiply(factor->second, &taken)) {
        value = factor->first;
      } else if (transpose != kNone && p_.input(transpose, 0) != kNone) {
        const auto order = p_.node(transpose).attributes.get_ints("perm");
        if (!order.is_ok() || order.value().size() != rank_) break;
        for (int64_t& dim : perm) dim = order.value()[static_cast<size_t>(dim)];
        value = p_.input(transpose, 0);
      } else {
        break;
      }
      if (p_.constant(value)) return std::nullopt;
    }
    return found;
  }

  // The value [B, G, S, D] whose heads `value` [B, G * n, S, D] has n times each.
  std::optional<Operand> take_repeats(ValueId value) const {
    const Dims* to = p_.dims(value);
    if (rank_ != 4 || !to) return std::nullopt;
    const NodeId join = p_.made_by(value, "Reshape");
    if (join == kNone) return copied(value, 1);
    const auto copies = copied(p_.input(join, 0), 2);
    if (!copies) return std::nullopt;
    NodeId split = p_.made_by(copies->value, "Unsqueeze");
    if (split == kNone) split = p_.made_by(copies->value, "Reshape");
    const ValueId source = split == kNone ? kNone : p_.input(split, 0);
    const Dims* from = p_.dims(source);
    const Dims* apart = p_.dims(copies->value);
    if (!from || from->size() != 4 || p_.constant(source)) return std::nullopt;
    const Dims wanted_apart{(*from)[0], (*from)[1], Dim::of(1), (*from)[2], (*from)[3]};
    const Dim heads = (*from)[1];
    if (!heads.is_value()) return std::nullopt;
    const Dims wanted{(*from)[0], Dim::of(heads.value * copies->repeats), (*from)[2], (*from)[3]};
    if (!p_.same_dims(*apart, wanted_apart) || !p_.same_dims(*to, wanted)) return std::nullopt;
    return Operand{source, {}, copies->repeats};
  }

  // What Expand or Tile repeats along `axis`, and there alone.
  std::optional<Operand> copied(ValueId value, size_t axis) const {
    NodeId copy = p_.made_by(value, "Expand");
    if (copy == kNone) copy = p_.made_by(value, "Tile");
    const ValueId source = copy == kNone ? kNone : p_.input(copy, 0);
    const Dims* from = p_.dims(source);
    const Dims* to = p_.dims(value);
    if (!from || !to || from->size() <= axis || !((*from)[axis] == Dim::of(1))) return std::nullopt;
    const Dim times = (*to)[axis];
    Dims wanted = *from;
    wanted[axis] = times;
    if (!times.is_value() || times.value < 2 || !p_.same_dims(*to, wanted)) return std::nullopt;
    return Operand{source, {}, times.value};
  }

  // The Transpose that alone reads the result, when it leaves rows whole; else the product.
  NodeId take_transpose(NodeId product, Perm* placed) const {
    const NodeId reader = p_.sole_reader(p_.node(product).outputs[0]);
    if (!p_.is(reader, "Transpose")) return product;
    const auto order = p_.node(reader).attributes.get_ints("perm");
    if (!order.is_ok() || order.value().size() != rank_ ||
        order.value().back() != static_cast<int64_t>(rank_) - 1) {
      return product;
    }
    *placed = order.value();
    return reader;
  }

  Pattern& p_;
  size_t rank_ = 0;
  bool takes_repeats_ = false;
};

}  // namespace

void fuse_attention(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { AttentionFuser(pattern).fuse(); }, "Softmax");
}

}  // namespace folio
