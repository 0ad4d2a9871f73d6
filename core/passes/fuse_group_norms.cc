// Group normalization by parts becomes one operator.
//
//   Reshape to [N, G, ...] -> InstanceNormalization -> Reshape back [-> Mul, Add of one constant a
//   channel]   ->   GroupNormalization with a scale and bias of each channel
//
// As PyTorch's exporter has it. Scale and bias must be constants at hand, the values between read
// by nothing else. The numbers are multiplied once where the parts do so twice. Private: the
// operator set of the model may not have it.
#include "core/passes/channel_affine.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int kGroupNormVersion = 21;  // whose scale and bias are of channels

class GroupNormFuser {
 public:
  explicit GroupNormFuser(Pattern& pattern) : p_(pattern) {}

  void fuse() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "InstanceNormalization")) fuse_at(id);
    }
  }

 private:
  // The groups of [N, C, ...] that [N, G, ...] is another form of; 0: it is none.
  int64_t groups_of(ValueId x, ValueId flat) const {
    const Dims* dims = p_.dims(x);
    const Dims* other = p_.dims(flat);
    if (!dims || !other || dims->size() < 3 || other->size() < 3) return 0;
    const Dims batch{(*dims)[0]};
    if (!p_.same_dims(batch, Dims{(*other)[0]})) return 0;
    const Dim channels = (*dims)[1];
    const Dim groups = (*other)[1];
    const bool divides = channels.is_value() && groups.is_value() && groups.value > 0 &&
                         channels.value % groups.value == 0;
    return divides && channels.value > 0 ? groups.value : 0;
  }

  // Numbers of each channel, or one for all, beside an image of this rank.
  std::optional<std::vector<double>> beside(ValueId value, int64_t channels, size_t rank) const {
    const Initializer* constant = p_.constant(value);
    if (!constant) return std::nullopt;
    const Span<const int64_t> dims = constant->shape.dims();
    if (dims.size() > rank) return std::nullopt;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool is_channel = i + rank == dims.size() + 1;
      if (dims[i] != 1 && !(is_channel && dims[i] == channels)) return std::nullopt;
    }
    return channel_numbers(p_, value, channels);
  }

  // Takes in the node that alone reads `*value`, and goes on to its result.
  template <typename Join>
  void take(std::string_view type, ValueId x, int64_t channels, ValueId* value, NodeId* last,
            const Join& join) const {
    const NodeId id = p_.sole_reader(*value);
    if (id == kNone || !p_.is(id, type) || p_.node(id).inputs.size() != 2) return;
    const ValueId out = p_.node(id).outputs[0];
    const auto numbers = beside(p_.other_input(id, *value), channels, p_.dims(x)->size());
    if (!numbers || !p_.same_dims(x, out)) return;
    for (size_t c = 0; c < numbers->size(); ++c) join(c, (*numbers)[c]);
    *value = out;
    *last = id;
  }

  void fuse_at(NodeId id) {
    const Node& norm = p_.node(id);
    if (norm.inputs.size() != 3) return;
    const NodeId into = p_.made_by(norm.inputs[0], "Reshape");
    NodeId last = p_.sole_reader(norm.outputs[0]);
    if (into == kNone || last == kNone || !p_.is(last, "Reshape") ||
        !p_.is_read_once(norm.inputs[0]) || p_.input(last, 0) != norm.outputs[0]) {
      return;
    }
    const ValueId x = p_.input(into, 0);
    ValueId y = p_.node(last).outputs[0];
    const int64_t groups = p_.is_float(x) ? groups_of(x, norm.inputs[0]) : 0;
    const auto epsilon = norm.attributes.get_float("epsilon", 1e-5F);
    if (groups == 0 || !p_.same_dims(x, y) || !epsilon.is_ok()) return;
    const int64_t channels = (*p_.dims(x))[1].value;
    const auto of_groups = channel_numbers(p_, norm.inputs[1], groups);
    const auto shifts = channel_numbers(p_, norm.inputs[2], groups);
    if (!of_groups || !shifts) return;
    ChannelAffine affine;
    for (int64_t c = 0; c < channels; ++c) {
      const auto g = static_cast<size_t>(c / (channels / groups));
      affine.scale.push_back((*of_groups)[g]);
      affine.shift.push_back((*shifts)[g]);
    }
    take("Mul", x, channels, &y, &last, [&](size_t c, double by) {
      affine.scale[c] *= by;
      affine.shift[c] *= by;
    });
    take("Add", x, channels, &y, &last, [&](size_t c, double more) { affine.shift[c] += more; });
    if (!affine.is_finite()) return;
    const std::string name = norm.name;
    const ValueId scale = add_floats(&p_, name + "/scale", Shape{channels}, affine.scale);
    const ValueId bias = add_floats(&p_, name + "/bias", Shape{channels}, affine.shift);
    if (scale == kNone || bias == kNone) return;
    Node fused = make_node(name, "", "GroupNormalization", kGroupNormVersion, {x, scale, bias});
    fused.attributes.set(int_attribute("num_groups", groups));
    fused.attributes.set(float_attribute("epsilon", epsilon.value()));
    p_.replace(last, std::move(fused));
  }

  Pattern& p_;
};

}  // namespace

void fuse_group_norms(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { GroupNormFuser(pattern).fuse(); },
      "InstanceNormalization");
}

}  // namespace folio
