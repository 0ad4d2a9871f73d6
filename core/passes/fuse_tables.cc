// Functions of one quantized value become a table.
//
//   DQ x -> any element-wise operators, their other operands constants of one element -> Q
//   QLinearSigmoid | QLinearLeakyRelu, and QLinearAdd | QLinearMul of x and itself or such a
//   function of it                                                    folio ByteTable
//
// x and the result are bytes under one constant scale each; x may go in more than once (x
// sigmoid(x), HardSwish by parts), and the two types may differ. Functions of functions are one
// table. It is a recipe: the same operators on all 256 codes. What others read of the parts stays.
// Private.
#include <algorithm>
#include <unordered_map>

#include "core/ops/op_registry.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr size_t kMostNodes = 32;

bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

class Tables {
 public:
  explicit Tables(Pattern& p) : p_(p) {}

  void fuse() {
    const NodeId count = p_.count();
    for (NodeId id = 0; id < count; ++id) {
      if (p_.node(id).dead || !(quantizes(id) || maps_codes(id))) continue;
      order_.clear();
      codes_ = kNone;
      depth_ = 0;
      if (gather_inputs(id) && codes_ != kNone && keeps_shape(p_.node(id).outputs[0])) replace(id);
    }
  }

 private:
  static bool is_type(const Node& node, std::string_view type) {
    return node.op_type == type && (node.domain.empty() || node.domain == "com.microsoft");
  }
  DType dtype(ValueId id) const {
    const TypeInfo& type = p_.graph().value(id).type;
    return type.is_tensor() ? type.dtype : DType::kUndefined;
  }
  // One constant scale, and a constant zero point or none.
  bool has_one_scale(const Node& node) const {
    const auto one = [&](size_t i) {
      const Tensor* bytes = p_.bytes(node.inputs[i]);
      return bytes && bytes->count() == 1 && bytes->rank() <= 1;
    };
    const auto block = node.attributes.get_int("block_size", 0);
    if (node.inputs.size() < 2 || node.inputs[0] == kNone || node.inputs[1] == kNone ||
        !block.is_ok() || block.value() != 0) {
      return false;
    }
    return one(1) && (node.inputs.size() < 3 || node.inputs[2] == kNone || one(2));
  }
  bool quantizes(NodeId id) const {
    const Node& node = p_.node(id);
    return is_type(node, "QuantizeLinear") && node.outputs.size() == 1 &&
           node.outputs[0] != kNone && is_byte(dtype(node.outputs[0])) && has_one_scale(node);
  }

  bool maps_codes(NodeId id) const {
    constexpr std::string_view kTypes[] = {"QLinearAdd", "QLinearLeakyRelu", "QLinearMul",
                                           "QLinearSigmoid"};
    const Node& node = p_.node(id);
    return node.domain == "com.microsoft" && node.outputs.size() == 1 && node.outputs[0] != kNone &&
           is_byte(dtype(node.outputs[0])) &&
           std::find(std::begin(kTypes), std::end(kTypes), node.op_type) != std::end(kTypes);
  }

  bool is_table(NodeId id) const {
    return p_.is(id, "ByteTable", "folio") && p_.node(id).outputs.size() == 1;
  }

  bool gather_inputs(NodeId id) {
    if (depth_ >= kMostNodes) return false;
    ++depth_;
    const auto& inputs = p_.node(id).inputs;
    const auto end = is_table(id) ? inputs.begin() + 1 : inputs.end();
    const bool done =
        std::all_of(inputs.begin(), end, [this](ValueId input) { return gather(input); });
    --depth_;
    return done;
  }

  // Of codes that are a function of others what makes them; else they are those.
  bool gather_codes(ValueId codes) {
    const NodeId id = p_.producer(codes);
    if (id != kNone && (quantizes(id) || maps_codes(id) || is_table(id))) {
      if (std::find(order_.begin(), order_.end(), id) != order_.end()) return true;
      const size_t count = order_.size();
      const ValueId before = codes_;
      if (order_.size() < kMostNodes && gather_inputs(id) && codes_ != kNone) {
        order_.push_back(id);
        return true;
      }
      order_.resize(count);
      codes_ = before;
    }
    if (codes_ != kNone && codes_ != codes) return false;
    codes_ = codes;
    return true;
  }

  // Puts what makes `value` of the codes into order_, inputs first; false when it is another thing.
  bool gather(ValueId value) {
    if (value == kNone) return true;  // an absent input
    if (p_.constant(value)) {
      const Tensor* bytes = p_.bytes(value);
      return bytes && bytes->count() == 1 && bytes->rank() <= 1 && !bytes->is_string();
    }
    if (is_byte(dtype(value))) return gather_codes(value);
    const NodeId id = p_.producer(value);
    if (id == kNone || p_.node(id).outputs.size() != 1) return false;
    if (std::find(order_.begin(), order_.end(), id) != order_.end()) return true;
    if (order_.size() >= kMostNodes) return false;
    const Node& node = p_.node(id);
    if (is_type(node, "DequantizeLinear")) {
      if (!has_one_scale(node) || !is_byte(dtype(node.inputs[0])) || p_.constant(node.inputs[0]) ||
          !gather_codes(node.inputs[0])) {
        return false;
      }
      order_.push_back(id);
      return true;
    }
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    if (!def || !def->elementwise || !def->foldable || !node.subgraphs.empty() ||
        node.attributes.has("axis")) {
      return false;
    }
    if (!gather_inputs(id)) return false;
    order_.push_back(id);
    return true;
  }

  // Constants of rank 1 must not make the result's rank larger than that of the codes.
  bool keeps_shape(ValueId value) const {
    const Dims* x = p_.dims(codes_);
    const Dims* y = p_.dims(value);
    if (x) return !x->empty() || (y && y->empty());
    return y && !y->empty();
  }

  // What the node makes of all codes.
  Ref<Initializer> table_of(const Node& node, DType dtype) {
    auto made = make_ref<Initializer>();
    made->name = node.name + "/table";
    made->dtype = dtype;
    made->shape = Shape{256};
    made->recipe = std::make_unique<Recipe>(recipe_of(node, [this](ValueId input) {
      const auto found = made_.find(input);
      return found != made_.end() ? found->second : p_.graph().constant_value(input)->initializer;
    }));
    // One scale has no axis, and the one that is named may not be there in 256 codes.
    if (node.attributes.has("axis")) made->recipe->attributes.set(int_attribute("axis", 0));
    return made;
  }

  void replace(NodeId id) {
    auto allocated = allocate_tensor(dtype(codes_), Shape{256});
    if (!allocated.is_ok()) return;
    Tensor all = std::move(allocated).take();
    for (int code = 0; code < 256; ++code) all.raw_mut()[code] = static_cast<uint8_t>(code);
    auto codes = make_ref<Initializer>();
    codes->name = "codes";
    codes->dtype = all.dtype();
    codes->shape = all.shape();
    codes->tensor = std::move(all);
    made_.clear();
    made_.emplace(codes_, std::move(codes));
    order_.push_back(id);
    for (const NodeId part : order_) {
      const ValueId output = p_.node(part).outputs[0];
      made_.emplace(output, table_of(p_.node(part), dtype(output)));
    }
    const ValueId table = p_.add_constant(made_.at(p_.node(id).outputs[0]));
    p_.replace(id, make_node(p_.node(id).name, "folio", "ByteTable", 1, {codes_, table}));
  }

  Pattern& p_;
  std::vector<NodeId> order_;
  ValueId codes_ = kNone;
  size_t depth_ = 0;  // of nodes that are being looked at: a chain may be longer than the stack
  std::unordered_map<ValueId, Ref<Initializer>> made_;
};

}  // namespace

void fuse_tables(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { Tables(pattern).fuse(); }, "QuantizeLinear");
}

}  // namespace folio
