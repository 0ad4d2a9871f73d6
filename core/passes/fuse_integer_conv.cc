// Convolutions of dynamically quantized images give floats at once.
//
//   ConvInteger -> Cast -> Mul scale [-> Add bias]     folio ConvIntegerToFloat
//
// The same arithmetic in the same order, without an int32 image and one or two of floats between.
// The scale, which a run may compute, is of one element or of one a channel; bias is constant and
// of one a channel; values between have no other reader.
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr size_t kIntegerInputs = 4;  // of ConvInteger

class IntegerConvs {
 public:
  explicit IntegerConvs(Pattern& pattern) : p_(pattern) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "ConvInteger")) fuse_conv(id);
    }
  }

 private:
  // The node of this type that alone reads what `id` makes; kNone: none.
  NodeId next(NodeId id, std::string_view type) const {
    if (p_.node(id).outputs.size() != 1) return kNone;
    const NodeId reader = p_.sole_reader(p_.node(id).outputs[0]);
    return p_.is(reader, type) ? reader : kNone;
  }

  // Of `channels` elements along the channels of an image of this rank, or of one.
  bool goes_along_channels(ValueId id, size_t image_rank, int64_t channels, bool or_one) const {
    const auto shape = id != kNone && p_.is_float(id) ? p_.shape(id) : std::nullopt;
    const auto rank = static_cast<int>(image_rank);
    if (!shape || shape->rank() > rank) return false;
    if (or_one && shape->count() == 1) return true;
    const int channel = shape->rank() - rank + 1;
    return channel >= 0 && shape->count() == channels && (*shape)[channel] == channels;
  }

  void fuse_conv(NodeId id) {
    const Initializer* w = p_.constant(p_.input(id, 1));
    const Dims* y = p_.dims(p_.node(id).outputs[0]);
    if (!w || !y || w->shape.rank() < 3 || w->shape.count() == 0) return;
    const NodeId cast = next(id, "Cast");
    if (cast == kNone || !p_.is_float(p_.node(cast).outputs[0])) return;
    const NodeId mul = next(cast, "Mul");
    if (mul == kNone) return;
    const int64_t channels = w->shape[0];
    const ValueId scale = p_.other_input(mul, p_.node(cast).outputs[0]);
    if (!goes_along_channels(scale, y->size(), channels, true)) return;
    const NodeId add = next(mul, "Add");
    const ValueId bias = add == kNone ? kNone : p_.other_input(add, p_.node(mul).outputs[0]);
    const bool has_bias =
        p_.constant(bias) && goes_along_channels(bias, y->size(), channels, false);
    std::vector<ValueId> inputs = p_.node(id).inputs;
    inputs.resize(kIntegerInputs, kNone);
    inputs.push_back(scale);
    if (has_bias) inputs.push_back(bias);
    Node fused = make_node(p_.node(id).name, "folio", "ConvIntegerToFloat", 1, std::move(inputs));
    fused.attributes = p_.node(id).attributes;
    p_.replace(has_bias ? add : mul, std::move(fused));
  }

  Pattern& p_;
};

}  // namespace

void fuse_integer_conv(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { IntegerConvs(pattern).fuse(); },
      "ConvInteger");
}

}  // namespace folio
