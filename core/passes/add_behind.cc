// Convolutions with channels last take in the Add that alone reads their result: behind their
// function, as the shortcuts of YOLO's blocks are.
//
//   folio.nhwc.Conv, ConvChain -> Add z   the same, with z
//
// One pass over the result less. z has the dims of the result in every run. Private: the result is
// never saved.
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_chain.h"
#include "core/passes/channel_readers.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

constexpr NodeId kMostBetween = 4;  // nodes: the convolution runs where the Add did

class AddsBehind {
 public:
  explicit AddsBehind(Pattern& pattern) : p_(pattern) {}

  void run() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (!p_.is(id, "Add")) continue;
      const NodeId a = conv_of(id, 0);
      const NodeId b = conv_of(id, 1);
      if (a != kNone || b != kNone) take(id, std::max(a, b));
    }
  }

 private:
  // That makes input i of an Add for it alone, and adds nothing yet.
  NodeId conv_of(NodeId add, size_t i) const {
    const ValueId y = p_.input(add, i);
    const ValueId z = p_.input(add, 1 - i);
    const NodeId id = p_.producer(y);
    if (id == kNone || y == z || id < add - kMostBetween || p_.sole_reader(y) != add ||
        !p_.is_float(y) || !p_.same_dims(y, z)) {
      return kNone;
    }
    const std::optional<ConvStep> step = last_step(p_, id);
    if (!step || step->attributes.has(kPlanesAttribute) || p_.input(id, z_input(id)) != kNone) {
      return kNone;
    }
    const bool adds = p_.is(id, "Conv", kNhwcDomain) || step->prefix == kChainSteps[kLastStep];
    return adds ? id : kNone;
  }

  size_t z_input(NodeId id) const {
    return static_cast<size_t>(p_.is(id, "Conv", kNhwcDomain) ? kConvZ : kChainZ);
  }

  void take(NodeId add, NodeId id) {
    Node node = operator_of(p_.node(id));
    node.attributes.set(int_attribute(std::string(kAddsLastAttribute), 1));
    const size_t z = z_input(id);
    if (node.inputs.size() <= z) node.inputs.resize(z + 1, kNone);
    node.inputs[z] = p_.other_input(add, p_.node(id).outputs[0]);
    p_.replace(add, std::move(node));
  }

  Pattern& p_;
};

}  // namespace

void add_behind(Model* model) {
  bool changed = false;
  for_each_fitting_graph(
      &model->graph, &changed, [](Pattern& p) { AddsBehind(p).run(); },
      [](const Graph& graph) { return has_convs_beside(graph, {"Add"}); });
}

}  // namespace folio
