// Products with weights of few bits that DequantizeLinear widens read them as they are.
//
//   DQ w [-> Transpose] -> MatMul                     com.microsoft MatMulNBits
//   DQ w -> Gemm [with transB] [+ bias]
//
// w is a constant matrix of 2 or 4 bits under any scales that do not change along a row's block, or
// of 8 bits in blocks; blocks lie along K and are powers of two from 16 on. Unsigned codes that
// stand as [N, K] in whole blocks are read where they are, and so are their scales and zero points;
// all else is a recipe of codes (ops/block_codes.cc). The weights are not rounded any further:
// accuracy_level 0. Not for models that are saved.
#include <algorithm>
#include <bit>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int64_t kLeastBlock = 16;  // of MatMulNBits
constexpr int64_t kOwnBlock = 128;   // where the model has one scale for a whole row
constexpr int64_t kMostBlock = 1 << 20;

struct Weights {
  ValueId codes = kNone;
  ValueId scale = kNone;
  ValueId zero = kNone;
  const Initializer* of = nullptr;
  const Initializer* scales = nullptr;
  bool trans = false;  // stored as [K, N]
  bool in_blocks = false;
  int64_t k = 0;
  int64_t n = 0;
  int64_t block = 0;
  int bits = 4;
  bool is_signed = false;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t row_bytes() const { return blocks() * block * bits / 8; }
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }
};

class Blocks {
 public:
  explicit Blocks(Pattern& p) : p_(p) {}

  void fuse() {
    const NodeId count = p_.count();
    for (NodeId id = 0; id < count; ++id) {
      if (p_.is(id, "MatMul")) fuse_matmul(id);
      if (p_.is(id, "Gemm")) fuse_gemm(id);
    }
  }

 private:
  void fuse_matmul(NodeId id) {
    ValueId b = p_.input(id, 1);
    bool turned = false;
    if (const NodeId transpose = p_.made_by(b, "Transpose"); transpose != kNone) {
      const auto perm = p_.node(transpose).attributes.get_ints("perm", {1, 0});
      if (!perm.is_ok() || perm.value() != std::vector<int64_t>{1, 0}) return;
      b = p_.input(transpose, 0);
      turned = true;
    }
    const Dims* a = p_.dims(p_.input(id, 0));
    if (a && a->empty()) return;
    replace(id, b, !turned, kNone);
  }

  void fuse_gemm(NodeId id) {
    const Attributes& attrs = p_.node(id).attributes;
    const auto trans_a = attrs.get_int("transA", 0);
    const auto trans_b = attrs.get_int("transB", 0);
    const auto alpha = attrs.get_float("alpha", 1.0F);
    const auto beta = attrs.get_float("beta", 1.0F);
    if (!trans_a.is_ok() || !trans_b.is_ok() || !alpha.is_ok() || !beta.is_ok()) return;
    const ValueId c = p_.input(id, 2);
    if (trans_a.value() != 0 || alpha.value() != 1.0F || (c != kNone && beta.value() != 1.0F)) {
      return;
    }
    replace(id, p_.input(id, 1), trans_b.value() == 0, c);
  }

  static int bits_of(DType dtype) {
    switch (dtype) {
      case DType::kInt2:
      case DType::kUint2:
        return 2;
      case DType::kInt4:
      case DType::kUint4:
        return 4;
      case DType::kInt8:
      case DType::kUint8:
        return 8;
      default:
        return 0;
    }
  }

  // The DequantizeLinear of constants behind `b`; `trans`: its result is [K, N].
  bool read(ValueId b, bool trans, Weights* w) const {
    NodeId id = p_.made_by(b, "DequantizeLinear");
    if (id == kNone) id = p_.made_by(b, "DequantizeLinear", "com.microsoft");
    if (id == kNone || !p_.is_float(b)) return false;
    const Node& node = p_.node(id);
    w->codes = p_.input(id, 0);
    w->scale = p_.input(id, 1);
    w->zero = p_.input(id, 2);
    w->of = p_.constant(w->codes);
    w->scales = p_.constant(w->scale);
    if (!w->of || !w->scales || w->scales->dtype != DType::kFloat || w->of->shape.rank() != 2) {
      return false;
    }
    w->bits = bits_of(w->of->dtype);
    w->is_signed = w->of->dtype == DType::kInt2 || w->of->dtype == DType::kInt4 ||
                   w->of->dtype == DType::kInt8;
    w->trans = trans;
    w->k = w->of->shape[trans ? 0 : 1];
    w->n = w->of->shape[trans ? 1 : 0];
    if (w->bits == 0 || w->k < 1 || w->n < 1 || w->k > INT32_MAX || w->n > INT32_MAX) return false;
    if (w->zero != kNone) {
      const Initializer* zero = p_.constant(w->zero);
      if (!zero || zero->dtype != w->of->dtype || !(zero->shape == w->scales->shape)) return false;
    }
    const auto axis = node.attributes.get_int("axis", 1);
    const auto block = node.attributes.get_int("block_size", 0);
    return axis.is_ok() && block.is_ok() && read_scales(axis.value(), block.value(), w);
  }

  static bool read_scales(int64_t axis, int64_t block, Weights* w) {
    if (axis < 0) axis += 2;
    const Shape& scales = w->scales->shape;
    const int64_t k_axis = w->trans ? 0 : 1;
    if (block == 0) {
      // For a whole matrix or column; bytes compute faster as they are.
      w->block = std::min<int64_t>(
          kOwnBlock,
          std::max<int64_t>(kLeastBlock,
                            static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(w->k)))));
      const bool one = scales.count() == 1 && scales.rank() <= 1;
      const bool each = scales.rank() == 1 && scales[0] == w->n && axis == 1 - k_axis;
      return w->bits < 8 && (one || each);
    }
    w->in_blocks = true;
    w->block = block;
    if (axis != k_axis || block < kLeastBlock || block > kMostBlock || (block & (block - 1)) != 0) {
      return false;
    }
    return scales == (w->trans ? Shape{w->blocks(), w->n} : Shape{w->n, w->blocks()});
  }

  // The same bytes under another type and shape; kNone when they are not at hand.
  ValueId view(ValueId value, const Shape& shape) {
    const Ref<Initializer>& from = p_.graph().constant_value(value)->initializer;
    if (!from->tensor) return kNone;
    auto made = make_ref<Initializer>();
    made->name = from->name;
    made->dtype = DType::kUint8;
    made->shape = shape;
    made->tensor = Tensor(DType::kUint8, shape, const_cast<uint8_t*>(from->tensor->raw()),
                          from->tensor->buffer());
    made->source = from->source;
    made->offset = from->offset;
    return p_.add_constant(made);
  }

  // Rows of codes of `value`, [n, k] or turned.
  ValueId codes_of(ValueId value, const Weights& w, int64_t row_bytes) {
    const std::string& name = p_.graph().constant_value(value)->initializer->name;
    Attributes attributes;
    attributes.set(int_attribute("trans", w.trans ? 1 : 0));
    attributes.set(int_attribute("row_bytes", row_bytes));
    return p_.add_recipe(name + "/codes", "folio", "BlockCodes", 1, std::move(attributes), {value},
                         DType::kUint8, Shape{w.n, row_bytes});
  }

  ValueId weights(const Weights& w) {
    const bool as_it_is = !w.trans && !w.is_signed && w.k % w.block == 0;
    const ValueId made = as_it_is ? view(w.codes, Shape{w.n, w.row_bytes()}) : kNone;
    return made != kNone ? made : codes_of(w.codes, w, w.row_bytes());
  }

  ValueId scales(const Weights& w) {
    if (!w.in_blocks) return spread_scales(w);
    if (!w.trans) return w.scale;
    Attributes turn;
    turn.set(ints_attribute("perm", {1, 0}));
    return p_.add_recipe(w.scales->name + "/columns", "", "Transpose", 13, std::move(turn),
                         {w.scale}, DType::kFloat, Shape{w.n, w.blocks()});
  }

  // One scale of a row for each of its blocks.
  ValueId spread_scales(const Weights& w) {
    const Tensor* bytes = p_.bytes(w.scale);
    if (!bytes) return kNone;
    auto made = allocate_tensor(DType::kFloat, Shape{w.n, w.blocks()});
    if (!made.is_ok()) return kNone;
    Tensor out = std::move(made).take();
    for (int64_t j = 0; j < w.n; ++j) {
      const float scale = bytes->data<float>()[bytes->count() == 1 ? 0 : j];
      std::fill_n(out.data_mut<float>() + j * w.blocks(), w.blocks(), scale);
    }
    return p_.add_constant(w.scales->name + "/blocks", std::move(out));
  }

  // Zero points as MatMulNBits has them; *ok is false when they cannot be given. Absent ones mean
  // the middle of the range there, which signed codes have at 0.
  ValueId zeros(const Weights& w, bool* ok) {
    *ok = true;
    if (w.zero == kNone && w.is_signed) return kNone;
    if (w.zero != kNone && w.in_blocks) {
      const bool as_it_is = !w.trans && !w.is_signed && w.blocks() * w.bits % 8 == 0;
      const ValueId made = as_it_is ? view(w.zero, Shape{w.n, w.zero_bytes()}) : kNone;
      return made != kNone ? made : codes_of(w.zero, w, w.zero_bytes());
    }
    const Tensor* bytes = w.zero == kNone ? nullptr : p_.bytes(w.zero);
    auto made = allocate_tensor(DType::kUint8, Shape{w.n, w.zero_bytes()});
    *ok = made.is_ok() && (w.zero == kNone || bytes);
    if (!*ok) return kNone;
    Tensor out = std::move(made).take();
    std::fill_n(out.raw_mut(), out.bytes(), uint8_t{0});
    for (int64_t j = 0; bytes && j < w.n; ++j) {
      const int64_t at = bytes->count() == 1 ? 0 : j;
      const int mask = (1 << w.bits) - 1;
      const int code = bytes->raw()[at * w.bits / 8] >> at * w.bits % 8 & mask;
      const int zero = w.is_signed ? code ^ (1 << (w.bits - 1)) : code;
      for (int64_t b = 0; b < w.blocks(); ++b) {
        uint8_t& byte = out.raw_mut()[j * w.zero_bytes() + b * w.bits / 8];
        byte = static_cast<uint8_t>(byte | zero << b * w.bits % 8);
      }
    }
    return p_.add_constant(w.of->name + "/zeros", std::move(out));
  }

  void replace(NodeId id, ValueId b, bool trans, ValueId bias) {
    Weights w;
    const ValueId a = p_.input(id, 0);
    if (b == kNone || a == kNone || !p_.is_float(a) || p_.constant(a) || !read(b, trans, &w)) {
      return;
    }
    if (bias != kNone) {
      const auto shape = p_.shape(bias);
      if (!p_.is_float(bias) || !shape || !(*shape == Shape{w.n})) return;
    }
    bool ok = true;
    const ValueId scale = scales(w);
    const ValueId zero = zeros(w, &ok);
    if (scale == kNone || !ok) return;
    Node made = make_node(p_.node(id).name, "com.microsoft", "MatMulNBits", 1,
                          {a, weights(w), scale, zero, kNone, bias});
    while (made.inputs.back() == kNone) made.inputs.pop_back();
    made.attributes.set(int_attribute("K", w.k));
    made.attributes.set(int_attribute("N", w.n));
    made.attributes.set(int_attribute("bits", w.bits));
    made.attributes.set(int_attribute("block_size", w.block));
    p_.replace(id, std::move(made));
  }

  Pattern& p_;
};

}  // namespace

void fuse_blocks(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { Blocks(pattern).fuse(); }, "DequantizeLinear");
}

}  // namespace folio
