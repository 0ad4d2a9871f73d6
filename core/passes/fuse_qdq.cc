// Operators between DequantizeLinear and QuantizeLinear compute in bytes.
//
//   DQ x, DQ w [, DQ bias] -> Conv -> [Relu | Clip] -> Q     com.microsoft QLinearConv
//   DQ a, DQ b -> MatMul [-> Q]                              QLinearMatMul, MatMulIntegerToFloat
//   DQ a, DQ b [, DQ c] -> Gemm [-> [Relu | Clip] -> Q]      com.microsoft QGemm
//   DQ a, DQ b -> Add | Mul -> [Relu | Clip] -> Q            com.microsoft QLinearAdd, QLinearMul
//   DQ x -> AveragePool | GlobalAveragePool | Sigmoid | LeakyRelu -> Q    their QLinear kin
//   DQ x -> MaxPool | Reshape | Transpose | Resize (nearest) | Gather ... -> Q, the same parameters
//                                                       the operator on bytes
//   DQ x -> Q, the same parameters                           x
//
// Scales and zero points must be constants at hand, and so must weights that have one for each
// column or filter; the value between an operator and its Q has no other reader. DQ nodes stay for
// others that read them. Portable.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// Sorted.
constexpr std::string_view kMoves[] = {
    "DepthToSpace", "Expand",       "Flatten", "Gather", "MaxPool",   "Reshape",  "Resize",
    "Slice",        "SpaceToDepth", "Squeeze", "Tile",   "Transpose", "Unsqueeze"};

// Resize of the nearest neighbours only chooses; a region of interest may bring in another value.
bool only_moves(const Node& node) {
  if (node.op_type != "Resize") return true;
  const auto mode = node.attributes.get_string("mode", "nearest");
  const auto where = node.attributes.get_string("coordinate_transformation_mode", "half_pixel");
  return mode.is_ok() && where.is_ok() && mode.value() == "nearest" &&
         where.value() != "tf_crop_and_resize";
}

bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

// A Dequantize- or QuantizeLinear: what is quantized and how.
struct Quantization {
  const Node* node = nullptr;
  ValueId codes = kNone;
  ValueId scale = kNone;
  ValueId zero = kNone;  // or absent: 0
  DType dtype = DType::kUndefined;
  const Tensor* scales = nullptr;
  const Tensor* zeros = nullptr;  // null when absent

  bool per_tensor() const { return scales->count() == 1; }
  float scale_at(int64_t i) const { return scales->data<float>()[per_tensor() ? 0 : i]; }
  int32_t zero_at(int64_t i) const {
    if (!zeros) return 0;
    const int64_t at = zeros->count() == 1 ? 0 : i;
    if (dtype == DType::kInt32) return zeros->data<int32_t>()[at];
    return dtype == DType::kInt8 ? zeros->data<int8_t>()[at] : zeros->raw()[at];
  }
  bool same_as(const Quantization& other) const {
    return per_tensor() && other.per_tensor() && dtype == other.dtype &&
           scale_at(0) == other.scale_at(0) && zero_at(0) == other.zero_at(0);
  }
};

class QdqFuser {
 public:
  QdqFuser(Graph* graph, bool* changed, Leaves leaves)
      : graph_(*graph),
        changed_(changed),
        is_portable_(leaves == Leaves::kPortable),
        links_(*graph) {}

  void fuse() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      Node& at = graph_.nodes[i];
      if (at.dead || !at.domain.empty() || at.outputs.size() != 1 || at.inputs.empty()) continue;
      if (at.op_type == "Conv") fuse_conv(id);
      if (at.op_type == "MatMul") fuse_matmul(id);
      if (at.op_type == "Gemm") fuse_gemm(id);
      if (at.op_type == "Add" || at.op_type == "Mul") fuse_binary(id);
      if (at.op_type == "Concat") fuse_concat(id);
      if (at.op_type == "AveragePool" || at.op_type == "GlobalAveragePool" ||
          at.op_type == "Sigmoid" || at.op_type == "LeakyRelu") {
        fuse_unary(id);
      }
      if (std::binary_search(std::begin(kMoves), std::end(kMoves), at.op_type)) fuse_move(id);
    }
    cancel_pairs();
    graph_.compact();
  }

 private:
  // What ONNX Runtime has no kernel for stays as it is in a model that is saved: products of signed
  // activations and unsigned weights, weights that a zero point is missing of ...
  bool takes_product(const Quantization& x, const Quantization& w) const {
    const bool is_mixed = x.dtype == DType::kInt8 && w.dtype == DType::kUint8;
    return !is_portable_ || (!is_mixed && x.zero != kNone && w.zero != kNone);
  }
  // ... and, of sums, products and windows' averages, scales of one dim.
  bool takes_scales(const Quantization& q) const {
    return !is_portable_ || (q.scales->rank() == 0 && (!q.zeros || q.zeros->rank() == 0));
  }

  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  const Tensor* constant(ValueId id) const {
    const GraphValue* value = id == kNone ? nullptr : graph_.constant_value(id);
    return value && value->initializer->tensor ? &*value->initializer->tensor : nullptr;
  }

  static bool is_op(const Node& node, std::string_view type) {
    return !node.dead && node.op_type == type &&
           (node.domain.empty() || node.domain == "com.microsoft");
  }

  // Parameters of a quantizing node; false when they are not constants of the plain kind.
  bool read(const Node& from, ValueId codes, Quantization* out) const {
    out->node = &from;
    out->codes = codes;
    const TypeInfo& type = graph_.value(codes).type;
    out->scale = from.inputs[1];
    out->zero = from.inputs.size() > 2 ? from.inputs[2] : kNone;
    out->scales = constant(out->scale);
    out->zeros = constant(out->zero);
    if (!type.is_tensor() || !out->scales || out->scales->dtype() != DType::kFloat) return false;
    out->dtype = type.dtype;
    if (out->zero != kNone && !out->zeros) return false;
    if (out->zeros &&
        (out->zeros->dtype() != out->dtype || out->zeros->count() != out->scales->count())) {
      return false;
    }
    const auto block = from.attributes.get_int("block_size", 0);
    const bool is_plain = block.is_ok() && block.value() == 0 && out->scales->rank() <= 1;
    return is_plain && out->scales->count() > 0;
  }

  // The DequantizeLinear that makes a value.
  bool dequantized(ValueId id, Quantization* out) const {
    if (id == kNone) return false;
    const NodeId maker = links_.makers[static_cast<size_t>(id)];
    if (maker == kNone) return false;
    const Node& from = graph_.nodes[static_cast<size_t>(maker)];
    if (!is_op(from, "DequantizeLinear") || from.inputs.size() < 2 || from.inputs[0] == kNone) {
      return false;
    }
    const TypeInfo& type = graph_.value(id).type;
    return type.is_tensor() && type.dtype == DType::kFloat && read(from, from.inputs[0], out);
  }
  // Of bytes under one scale.
  bool activation(ValueId id, Quantization* out) const {
    return dequantized(id, out) && is_byte(out->dtype) && out->per_tensor();
  }
  // Constant bytes under one scale or one for each element of `axis`.
  bool weights(ValueId id, int64_t axis, Quantization* out) const {
    if (!dequantized(id, out) || !is_byte(out->dtype)) return false;
    const GraphValue* value = graph_.constant_value(out->codes);
    if (!value) return false;
    if (out->per_tensor()) return true;
    const Shape& shape = value->initializer->shape;
    auto given = out->node->attributes.get_int("axis", 1);
    if (!given.is_ok()) return false;
    const int64_t at = given.value() < 0 ? given.value() + shape.rank() : given.value();
    return at == axis && axis < shape.rank() &&
           shape[static_cast<int>(axis)] == out->scales->count();
  }
  // int32 with the scale of the sums; absent is fine.
  bool bias(const Node& from, size_t input, const Quantization& x, const Quantization& w,
            ValueId* out) const {
    *out = kNone;
    if (input >= from.inputs.size() || from.inputs[input] == kNone) return true;
    Quantization q;
    if (!dequantized(from.inputs[input], &q) || q.dtype != DType::kInt32) return false;
    const int64_t count = std::max(q.scales->count(), w.scales->count());
    if (!q.per_tensor() && !w.per_tensor() && q.scales->count() != w.scales->count()) return false;
    const float* const q_scales = q.scales->data<float>();
    const float* const w_scales = w.scales->data<float>();
    const int64_t q_step = q.per_tensor() ? 0 : 1;
    const int64_t w_step = w.per_tensor() ? 0 : 1;
    const float x_scale = x.scale_at(0);
    for (int64_t i = 0; i < count; ++i) {
      const float sums = x_scale * w_scales[i * w_step];
      if (!(std::abs(q_scales[i * q_step] - sums) <= 1e-5F * std::abs(sums))) return false;
    }
    if (q.zeros) {
      const int32_t* const zeros = q.zeros->data<int32_t>();
      if (std::any_of(zeros, zeros + q.zeros->count(), [](int32_t z) { return z != 0; })) {
        return false;
      }
    }
    *out = q.codes;
    return true;
  }

  // The node that alone reads the only output of `id`, once.
  NodeId sole_reader(NodeId id) {
    const ValueId output = node(id).outputs[0];
    if (output == kNone || links_.uses[static_cast<size_t>(output)] != 1) return kNone;
    const NodeId reader = links_.readers[static_cast<size_t>(output)];
    return reader != kNone && !node(reader).dead && node(reader).inputs[0] == output ? reader
                                                                                     : kNone;
  }

  bool quantized(NodeId reader, Quantization* out) const {
    if (reader == kNone) return false;
    const Node& to = graph_.nodes[static_cast<size_t>(reader)];
    return is_op(to, "QuantizeLinear") && to.inputs.size() >= 2 && to.outputs.size() == 1 &&
           to.outputs[0] != kNone && read(to, to.outputs[0], out) && is_byte(out->dtype) &&
           out->per_tensor();
  }

  // Bounds of Relu or Clip; false for other nodes.
  bool bounds(const Node& function, float* lo, float* hi) const {
    *lo = -INFINITY;
    *hi = INFINITY;
    if (is_op(function, "Relu")) {
      *lo = 0;
      return true;
    }
    if (!is_op(function, "Clip")) return false;
    if (function.version < 11) {
      const auto low = function.attributes.get_float("min", *lo);
      const auto high = function.attributes.get_float("max", *hi);
      if (!low.is_ok() || !high.is_ok()) return false;
      *lo = low.value();
      *hi = high.value();
      return true;
    }
    float* const targets[] = {nullptr, lo, hi};
    for (size_t i = 1; i < function.inputs.size() && i < 3; ++i) {
      if (function.inputs[i] == kNone) continue;
      const Tensor* tensor = constant(function.inputs[i]);
      if (!tensor || tensor->dtype() != DType::kFloat || tensor->count() != 1) return false;
      *targets[i] = *tensor->data<float>();
    }
    return true;
  }

  // The QuantizeLinear behind `id`, perhaps with a Relu or Clip between that the range of the codes
  // implies (zero points stand for 0, so a Relu where none is negative).
  bool quantized_after(NodeId id, std::vector<NodeId>* gone, Quantization* out) {
    const NodeId reader = sole_reader(id);
    if (quantized(reader, out)) {
      *gone = {id, reader};
      return true;
    }
    float lo = 0;
    float hi = 0;
    if (reader == kNone || node(reader).outputs.size() != 1 || !bounds(node(reader), &lo, &hi)) {
      return false;
    }
    const NodeId last = sole_reader(reader);
    if (!quantized(last, out)) return false;
    const int32_t least = out->dtype == DType::kInt8 ? -128 : 0;
    const float scale = out->scale_at(0);
    const float low = static_cast<float>(least - out->zero_at(0)) * scale;
    const float high = static_cast<float>(least + 255 - out->zero_at(0)) * scale;
    if (!(low >= lo) || !(high <= hi)) return false;
    *gone = {id, reader, last};
    return true;
  }

  // Puts `fused` in the place of the last of `gone`: all its inputs are made by then.
  void replace(const std::vector<NodeId>& gone, Node fused) {
    fused.outputs = node(gone.back()).outputs;
    for (const NodeId id : gone) {
      node(id) = Node();
      node(id).dead = true;
    }
    links_.makers[static_cast<size_t>(fused.outputs[0])] = gone.back();
    node(gone.back()) = std::move(fused);
    *changed_ = true;
  }

  static Node make(const Node& from, std::string type, std::vector<ValueId> inputs) {
    Node fused;
    fused.name = from.name;
    fused.domain = "com.microsoft";
    fused.op_type = std::move(type);
    fused.version = 1;
    fused.inputs = std::move(inputs);
    fused.attributes = from.attributes;
    return fused;
  }

  void fuse_conv(NodeId id) {
    const Node& conv = node(id);
    Quantization x, w, y;
    std::vector<NodeId> gone;
    ValueId b = kNone;
    if (conv.inputs.size() < 2 || !activation(conv.inputs[0], &x) ||
        (!weights(conv.inputs[1], 0, &w) && !activation(conv.inputs[1], &w)) ||
        !bias(conv, 2, x, w, &b) || !quantized_after(id, &gone, &y) || y.zero == kNone ||
        !takes_product(x, w)) {
      return;
    }
    std::vector<ValueId> inputs = {x.codes, x.scale, x.zero,  w.codes,
                                   w.scale, w.zero,  y.scale, y.zero};
    if (b != kNone) inputs.push_back(b);
    replace(gone, make(conv, "QLinearConv", std::move(inputs)));
  }

  void fuse_matmul(NodeId id) {
    const Node& matmul = node(id);
    Quantization a, b, y;
    std::vector<NodeId> gone;
    if (matmul.inputs.size() != 2 || !activation(matmul.inputs[0], &a)) return;
    if (!activation(matmul.inputs[1], &b) && !weights(matmul.inputs[1], 1, &b)) return;
    if (!b.per_tensor() && graph_.constant_value(b.codes)->initializer->shape.rank() != 2) return;
    if (!takes_product(a, b)) return;
    if (quantized_after(id, &gone, &y) && y.zero != kNone && a.zero != kNone && b.zero != kNone) {
      Node fused = make(matmul, "QLinearMatMul",
                        {a.codes, a.scale, a.zero, b.codes, b.scale, b.zero, y.scale, y.zero});
      fused.domain.clear();
      fused.version = std::max(10, matmul.version);
      replace(gone, std::move(fused));
      return;
    }
    if (matmul.outputs[0] == kNone) return;
    replace({id}, make(matmul, "MatMulIntegerToFloat",
                       {a.codes, b.codes, a.scale, b.scale, a.zero, b.zero}));
  }

  void fuse_gemm(NodeId id) {
    const Node& gemm = node(id);
    const auto trans_b = gemm.attributes.get_int("transB", 0);
    const auto alpha = gemm.attributes.get_float("alpha", 1.0F);
    const auto beta = gemm.attributes.get_float("beta", 1.0F);
    if (!trans_b.is_ok() || !alpha.is_ok() || !beta.is_ok() || alpha.value() != 1.0F) return;
    Quantization a, b, y;
    std::vector<NodeId> gone;
    ValueId c = kNone;
    if (gemm.inputs.size() < 2 || !activation(gemm.inputs[0], &a) ||
        !weights(gemm.inputs[1], trans_b.value() != 0 ? 0 : 1, &b) || !bias(gemm, 2, a, b, &c) ||
        (c != kNone && beta.value() != 1.0F) || gemm.outputs[0] == kNone || !takes_product(a, b)) {
      return;
    }
    std::vector<ValueId> inputs = {a.codes, a.scale, a.zero, b.codes, b.scale, b.zero, c};
    if (quantized_after(id, &gone, &y) && y.zero != kNone) {
      inputs.push_back(y.scale);
      inputs.push_back(y.zero);
    } else {
      gone = {id};
    }
    replace(gone, make(gemm, "QGemm", std::move(inputs)));
  }

  void fuse_binary(NodeId id) {
    const Node& sum = node(id);
    Quantization a, b, y;
    std::vector<NodeId> gone;
    if (sum.inputs.size() != 2 || !activation(sum.inputs[0], &a) ||
        !activation(sum.inputs[1], &b) || !quantized_after(id, &gone, &y) || a.dtype != b.dtype ||
        a.dtype != y.dtype || !takes_scales(a) || !takes_scales(b) || !takes_scales(y)) {
      return;
    }
    replace(gone, make(sum, sum.op_type == "Add" ? "QLinearAdd" : "QLinearMul",
                       {a.codes, a.scale, a.zero, b.codes, b.scale, b.zero, y.scale, y.zero}));
  }

  // Of windows that hang over the padding QLinearAveragePool counts more than AveragePool.
  static bool counts_otherwise(const Node& pool) {
    const auto ceil_mode = pool.attributes.get_int("ceil_mode", 0);
    const auto count_pad = pool.attributes.get_int("count_include_pad", 0);
    return !ceil_mode.is_ok() || !count_pad.is_ok() ||
           (ceil_mode.value() != 0 && count_pad.value() != 0);
  }

  void fuse_unary(NodeId id) {
    const Node& function = node(id);
    Quantization x, y;
    std::vector<NodeId> gone;
    if (function.inputs.size() != 1 || !activation(function.inputs[0], &x)) return;
    if (counts_otherwise(function)) return;
    if (!quantized_after(id, &gone, &y) || gone.size() != 2 || x.dtype != y.dtype) return;
    if (function.op_type == "AveragePool" && (!takes_scales(x) || !takes_scales(y))) return;
    replace(gone, make(function, "QLinear" + function.op_type,
                       {x.codes, x.scale, x.zero, y.scale, y.zero}));
  }

  // What only moves or chooses codes.
  void fuse_move(NodeId id) {
    Quantization x, y;
    std::vector<NodeId> gone;
    if (!only_moves(node(id)) || !activation(node(id).inputs[0], &x) ||
        !quantized_after(id, &gone, &y)) {
      return;
    }
    if (gone.size() != 2 || !x.same_as(y)) return;
    Node moved = std::move(node(id));
    moved.inputs[0] = x.codes;
    // Before, it knew no bytes.
    if (moved.op_type == "MaxPool") moved.version = std::max(12, moved.version);
    replace(gone, std::move(moved));
  }

  void fuse_concat(NodeId id) {
    Quantization x, y;
    std::vector<NodeId> gone;
    if (!quantized_after(id, &gone, &y) || gone.size() != 2 || y.zero == kNone) return;
    std::vector<ValueId> codes;
    std::vector<ValueId> inputs = {y.scale, y.zero};
    bool is_same = true;
    for (const ValueId input : node(id).inputs) {
      if (!activation(input, &x) || x.dtype != y.dtype) return;
      is_same = is_same && x.same_as(y);
      codes.push_back(x.codes);
      inputs.insert(inputs.end(), {x.codes, x.scale, x.zero});
    }
    if (!is_same) {
      replace(gone, make(node(id), "QLinearConcat", std::move(inputs)));
      return;
    }
    Node moved = std::move(node(id));
    moved.inputs = std::move(codes);
    replace(gone, std::move(moved));
  }

  // Codes that become numbers and the same codes again.
  void cancel_pairs() {
    Graph::Replacements replacements;
    for (Node& at : graph_.nodes) {
      Quantization x, y;
      if (!is_op(at, "QuantizeLinear") || at.outputs.size() != 1 || at.outputs[0] == kNone) {
        continue;
      }
      const bool is_output = std::find(graph_.outputs.begin(), graph_.outputs.end(),
                                       at.outputs[0]) != graph_.outputs.end();
      if (is_output || !read(at, at.outputs[0], &y) || !activation(at.inputs[0], &x) ||
          !x.same_as(y)) {
        continue;
      }
      const auto source = replacements.find(x.codes);
      replacements[at.outputs[0]] = source == replacements.end() ? x.codes : source->second;
      at.dead = true;
      *changed_ = true;
    }
    graph_.replace_uses(replacements);
  }

  Graph& graph_;
  bool* changed_;
  bool is_portable_;
  ValueLinks links_;  // before any node was fused; makers of what was
};

}  // namespace

void fuse_qdq(Model* model, bool* changed, Leaves leaves) {
  for_inner_graphs_first(&model->graph, [&](Graph& graph) {
    if (has_operator(graph, "DequantizeLinear")) QdqFuser(&graph, changed, leaves).fuse();
  });
}

}  // namespace folio
