// Convolutions of bytes take in the sum with another image that reads their result.
//
//   QLinearConv, z -> QLinearAdd     folio QLinearConvAdd
//
// The same arithmetic in the same order: the result is rounded to its own codes, then added. One
// pass over both images less. z must have the shape of the result in every run: QLinearAdd would
// broadcast. Of two convolutions the later takes the sum: it moves the least.
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr std::string_view kContrib = "com.microsoft";

// Inputs A, A_scale, A_zero, B, B_scale, B_zero, C_scale, C_zero.
constexpr size_t kA = 0;
constexpr size_t kB = 3;
constexpr size_t kAddInputs = 8;
constexpr size_t kConvInputs = 9;

class ByteAdds {
 public:
  explicit ByteAdds(Pattern& pattern) : p_(pattern) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (!p_.is(id, "QLinearAdd", kContrib) || p_.node(id).outputs.size() != 1) continue;
      const NodeId of_a = conv_of(id, kA, kB);
      const NodeId of_b = conv_of(id, kB, kA);
      if (of_a == kNone && of_b == kNone) continue;
      if (of_a > of_b) {
        replace(id, of_a, kB);
      } else {
        replace(id, of_b, kA);
      }
    }
  }

 private:
  static bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8; }

  // The QLinearConv that makes an operand for this sum alone; kNone: none.
  NodeId conv_of(NodeId add, size_t operand, size_t other) const {
    const ValueId y = p_.input(add, operand);
    const ValueId z = p_.input(add, other);
    if (y == kNone || z == kNone || p_.sole_reader(y) != add || !p_.same_dims(y, z)) return kNone;
    const DType dtype = p_.graph().value(y).type.dtype;
    if (!is_byte(dtype) || p_.graph().value(z).type.dtype != dtype) return kNone;
    const NodeId conv = p_.made_by(y, "QLinearConv");
    return conv != kNone ? conv : p_.made_by(y, "QLinearConv", kContrib);
  }

  void replace(NodeId add, NodeId conv, size_t addend) {
    std::vector<ValueId> inputs = p_.node(conv).inputs;
    inputs.resize(kConvInputs, kNone);
    inputs.push_back(p_.input(add, addend));
    for (size_t i = 0; i < kAddInputs; ++i) {
      if (i != kA && i != kB) inputs.push_back(p_.input(add, i));
    }
    Node fused = make_node(p_.node(conv).name, "folio", "QLinearConvAdd", 1, std::move(inputs));
    fused.attributes = p_.node(conv).attributes;
    fused.attributes.set(int_attribute("addend_is_a", addend == kA ? 1 : 0));
    p_.replace(add, std::move(fused));
  }

  Pattern& p_;
};

}  // namespace

void fuse_byte_adds(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { ByteAdds(pattern).fuse(); }, "QLinearAdd");
}

}  // namespace folio
