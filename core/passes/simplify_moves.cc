// Removes and merges nodes that only move or rename elements.
//
//   of one input: Concat, Sum, Max, Min, Mean; all of it:     gone
//   Slice, Expand, Tile, Pad, Reshape, Transpose
//   Sum of two                                                Add
//   Expand to the dims of what Add, Sub, Mul, Div, Pow,       what Expand reads: they broadcast
//   Max, Min or a comparison read beside it
//   Transpose, Transpose                                      one, or none
//   Transpose, functions of elements, Transpose               the functions, one Transpose or none
//   Transpose that moves dims of size 1 only                  Reshape (a view)
//   Reshape of what a Reshape, Squeeze .. alone gave          Reshape
//   Reshape to dims of its input and numbers that are known   Reshape to a constant
//   Cast to a type that holds every value, Cast               the second
//   Pad by zeros that one Conv or AveragePool reads           pads of that
//   Pad that one MaxPool reads, of what is no greater         pads of that
//
// The constant target makes Shape, Gather, Unsqueeze, Concat before it unread. All types.
#include <algorithm>
#include <limits>

#include "core/ops/op_window.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int kTransposeVersion = 1;

using Perm = std::vector<int64_t>;

bool is_identity(const Perm& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

class MoveSimplifier {
 public:
  explicit MoveSimplifier(Pattern& pattern) : p_(pattern) {}

  void simplify() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.node(id).dead || !p_.node(id).domain.empty()) continue;
      if (p_.node(id).outputs.empty() || p_.node(id).outputs[0] == kNone) continue;
      if (does_nothing(id) && p_.bypass(p_.node(id).outputs[0], p_.input(id, 0))) continue;
      if (p_.is(id, "Sum") && p_.node(id).inputs.size() == 2) sum_of_two(id);
      expand(id);
      if (p_.is(id, "Transpose")) transpose(id);
      if (p_.is(id, "Reshape")) reshape(id);
      if (p_.is(id, "Cast")) cast(id);
      take_pad_in(id);
    }
  }

 private:
  // ---------------------------------------------------------------- nothing to do

  bool does_nothing(NodeId id) const {
    const Node& node = p_.node(id);
    const ValueId x = p_.input(id, 0);
    if (x == kNone || node.outputs.size() != 1) return false;
    for (const char* type : {"Concat", "Sum", "Max", "Min", "Mean"}) {
      if (p_.is(id, type)) return node.inputs.size() == 1;
    }
    if (p_.is(id, "Transpose")) {
      const auto perm = perm_of(id);
      return perm && is_identity(*perm);
    }
    if (p_.is(id, "Slice")) return takes_all(id);
    if (p_.is(id, "Pad")) return pads_nothing(id);
    if (p_.is(id, "Expand")) {  // dims that are not known may turn out not to fit
      const auto to = p_.ints(p_.input(id, 1));
      if (!to || std::any_of(to->begin(), to->end(), [](int64_t dim) { return dim < 0; })) {
        return false;
      }
    }
    if (p_.is(id, "Reshape") || p_.is(id, "Expand") || p_.is(id, "Tile")) {
      const auto from = p_.shape(x);
      const auto to = p_.shape(node.outputs[0]);
      return from && to && *from == *to;
    }
    return false;
  }

  bool takes_all(NodeId id) const {
    if (p_.node(id).version < 10) return false;
    const auto starts = p_.ints(p_.input(id, 1));
    const auto ends = p_.ints(p_.input(id, 2));
    const Dims* dims = p_.dims(p_.input(id, 0));
    if (!starts || !ends || !dims || starts->size() != ends->size()) return false;
    std::vector<int64_t> axes;
    for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
    for (size_t i = 3; i < 5; ++i) {
      if (p_.input(id, i) == kNone) continue;
      const auto given = p_.ints(p_.input(id, i));
      if (!given || given->size() != starts->size()) return false;
      const bool steps = i == 4;
      if (steps && std::any_of(given->begin(), given->end(), [](int64_t s) { return s != 1; })) {
        return false;
      }
      if (!steps) axes = *given;
    }
    const auto rank = static_cast<int64_t>(dims->size());
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank || (*starts)[i] != 0) return false;
      const Dim dim = (*dims)[static_cast<size_t>(axis)];
      const bool beyond = (*ends)[i] >= std::numeric_limits<int32_t>::max();
      if (!beyond && !(dim.is_value() && (*ends)[i] >= dim.value)) return false;
    }
    return true;
  }

  std::optional<std::vector<int64_t>> pads_of(NodeId id) const {
    const Node& node = p_.node(id);
    if (node.version >= 11) {
      // Pads of chosen axes are left alone.
      return p_.input(id, 3) == kNone ? p_.ints(p_.input(id, 1)) : std::nullopt;
    }
    auto pads = node.attributes.get_ints(node.version >= 2 ? "pads" : "paddings");
    if (!pads.is_ok()) return std::nullopt;
    return pads.value();
  }

  bool pads_nothing(NodeId id) const {
    const auto pads = pads_of(id);
    const Dims* dims = p_.dims(p_.input(id, 0));
    return pads && dims && pads->size() == 2 * dims->size() &&
           std::all_of(pads->begin(), pads->end(), [](int64_t pad) { return pad == 0; });
  }

  void sum_of_two(NodeId id) {
    p_.replace(id, make_node(p_.node(id).name, "", "Add", 7,
                             {p_.node(id).inputs[0], p_.node(id).inputs[1]}));
  }

  // ---------------------------------------------------------------- expands

  static bool broadcasts(const Node& node) {
    constexpr std::string_view kTypes[] = {"Add",  "Sub",     "Mul",         "Div",
                                           "Pow",  "Max",     "Min",         "Equal",
                                           "Less", "Greater", "LessOrEqual", "GreaterOrEqual"};
    return std::find(std::begin(kTypes), std::end(kTypes), node.op_type) != std::end(kTypes) &&
           node.version >= 7 && node.inputs.size() == 2 && node.subgraphs.empty();
  }

  void expand(NodeId id) {
    for (size_t i = 0; i < 2 && broadcasts(p_.node(id)); ++i) {
      const NodeId made = p_.made_by(p_.input(id, i), "Expand");
      if (made == kNone || !p_.same_dims(p_.input(id, i), p_.input(id, 1 - i))) continue;
      const Node& node = p_.node(id);
      Node direct = make_node(node.name, node.domain, node.op_type, node.version, node.inputs);
      direct.attributes = node.attributes;
      direct.inputs[i] = p_.input(made, 0);
      p_.replace(id, std::move(direct));
    }
  }

  // ---------------------------------------------------------------- transposes

  std::optional<Perm> perm_of(NodeId id) const {
    const Dims* dims = p_.dims(p_.input(id, 0));
    auto given = p_.node(id).attributes.get_ints("perm");
    if (!dims || !given.is_ok()) return std::nullopt;
    Perm perm = given.value();
    if (perm.empty()) {
      for (size_t i = dims->size(); i > 0; --i) perm.push_back(static_cast<int64_t>(i) - 1);
    }
    // Wrong ones are for the operator to refuse.
    Perm sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    if (perm.size() != dims->size() || !is_identity(sorted)) return std::nullopt;
    return perm;
  }

  // Functions of one input's elements (others are numbers) may stand on either side.
  bool is_elementwise(NodeId id, ValueId x) const {
    if (id == kNone || p_.node(id).outputs.size() != 1 || !p_.node(id).subgraphs.empty()) {
      return false;
    }
    for (const char* type :
         {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Exp", "Log",
          "Sqrt", "Abs", "Neg", "Erf", "Cast", "Softplus"}) {
      if (p_.is(id, type)) return true;
    }
    if (p_.is(id, "Clip")) return p_.input(id, 0) == x;
    const bool binary = p_.is(id, "Add") || p_.is(id, "Mul") || p_.is(id, "Sub") ||
                        p_.is(id, "Div") || p_.is(id, "Pow");
    if (!binary || p_.node(id).inputs.size() != 2) return false;
    const Initializer* number = p_.constant(p_.other_input(id, x));
    return number && number->shape.count() == 1 &&
           static_cast<size_t>(number->shape.rank()) <= p_.dims(x)->size();
  }

  void transpose(NodeId id) {
    const auto perm = perm_of(id);
    if (!perm) return;
    if (merge_transposes(id, *perm)) return;
    if (!p_.is(id, "Transpose") || !moves_ones_only(id, *perm)) return;
    const Dims* dims = p_.dims(p_.node(id).outputs[0]);
    to_constant_reshape(id, *dims, nullptr);
  }

  bool merge_transposes(NodeId id, const Perm& perm) {
    // Up through functions to the Transpose that made their input.
    std::vector<NodeId> functions;
    ValueId value = p_.input(id, 0);
    NodeId first = p_.made_by(value, "Transpose");
    while (first == kNone && p_.is_read_once(value) && p_.dims(value)) {
      const NodeId function = p_.producer(value);
      if (function == kNone || !p_.node(function).domain.empty()) return false;
      const ValueId x = varying_input(function);
      if (x == kNone || !p_.dims(x) || !is_elementwise(function, x)) return false;
      functions.push_back(function);
      value = x;
      first = p_.made_by(value, "Transpose");
    }
    if (first == kNone) return false;
    const auto before = perm_of(first);
    if (!before || before->size() != perm.size()) return false;
    Perm both;
    for (const int64_t axis : perm) both.push_back((*before)[static_cast<size_t>(axis)]);
    // Behind functions only what undoes the first: else a Transpose would only change its place.
    if (!functions.empty() && (!is_identity(both) || !p_.is_read_once(value))) return false;
    return apply_merge(id, first, functions, both);
  }

  ValueId varying_input(NodeId id) const {
    ValueId found = kNone;
    for (const ValueId input : p_.node(id).inputs) {
      if (input == kNone || p_.constant(input)) continue;
      if (found != kNone) return kNone;
      found = input;
    }
    return found;
  }

  bool apply_merge(NodeId id, NodeId first, const std::vector<NodeId>& functions,
                   const Perm& both) {
    const ValueId source = p_.input(first, 0);
    const ValueId y = p_.node(id).outputs[0];
    if (!functions.empty()) {
      const TypeInfo type = p_.graph().value(source).type;
      const ValueId transposed = p_.node(first).outputs[0];
      if (!p_.can_bypass(y) || !p_.bypass(transposed, source)) return false;
      for (const NodeId function : functions) {
        p_.graph().value(p_.node(function).outputs[0]).type.dims = type.dims;
      }
      return p_.bypass(y, p_.node(functions.front()).outputs[0]);
    }
    if (is_identity(both)) return p_.bypass(y, source);
    Node merged = make_node(p_.node(id).name, "", "Transpose", kTransposeVersion, {source});
    merged.attributes.set(ints_attribute("perm", both));
    p_.replace(id, std::move(merged));
    return true;
  }

  bool moves_ones_only(NodeId id, const Perm& perm) const {
    const Dims& dims = *p_.dims(p_.input(id, 0));
    int64_t last = -1;
    for (const int64_t axis : perm) {
      const Dim dim = dims[static_cast<size_t>(axis)];
      if (dim.is_value() && dim.value == 1) continue;
      if (axis < last) return false;
      last = axis;
    }
    return true;
  }

  // ---------------------------------------------------------------- reshapes

  void reshape(NodeId id) {
    if (p_.node(id).version < kReshapeVersion || p_.node(id).inputs.size() != 2) return;
    const auto zeros = p_.node(id).attributes.get_int("allowzero", 0);
    if (!zeros.is_ok() || zeros.value() != 0) return;
    const ValueId target = p_.input(id, 1);
    if (!p_.constant(target)) {
      const auto& known = p_.graph().value(target).data;
      if (known) to_constant_reshape(id, Dims(*known), p_.dims(p_.input(id, 0)));
    }
    if (p_.is(id, "Reshape") && !p_.constant(p_.input(id, 1))) reshape_by_parts(id);
    while (merge_reshapes(id)) {
    }
  }

  // Target dims as a constant: a number, 0 for a dim of the input at the same place, and one -1 for
  // what is left. `same` null: nothing is known to be at the same place.
  void to_constant_reshape(NodeId id, const Dims& target, const Dims* same) {
    std::vector<int64_t> numbers;
    bool has_rest = false;
    bool copies = false;
    for (size_t i = 0; i < target.size(); ++i) {
      const Dim dim = target[i];
      if (dim.is_value()) {
        if (dim.value <= 0) return;  // 0 and -1 have meanings of their own
        numbers.push_back(dim.value);
      } else if (dim.is_symbol() && same && i < same->size() && (*same)[i] == dim) {
        numbers.push_back(0);
        copies = true;
      } else if (dim.is_symbol() && !has_rest) {
        numbers.push_back(-1);
        has_rest = true;
      } else {
        return;
      }
    }
    // Of an empty tensor, -1 beside a copied 0 has no answer.
    if (has_rest && copies) return;
    put_reshape(id, numbers);
  }

  // One element of a target: a number, or dim `axis` of a value.
  struct Element {
    int64_t number = 0;  // when `of` is none
    ValueId of = kNone;
    int64_t axis = 0;
  };

  // A target that Concat puts together from numbers and dims of values: exact where inference knows
  // too little to name the dims.
  void reshape_by_parts(NodeId id) {
    const NodeId concat = p_.made_by(p_.input(id, 1), "Concat");
    const ValueId x = p_.input(id, 0);
    if (concat == kNone) return;
    std::vector<Element> elements;
    for (const ValueId part : p_.node(concat).inputs) {
      if (!add_elements(part, &elements)) return;
    }
    std::vector<int64_t> numbers;
    int copies = 0;
    int rests = 0;
    int asked_rests = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
      const Element& element = elements[i];
      const bool copied = is_dim_of(element, x, i);
      const bool asks_rest = element.of == kNone && element.number == -1;
      if (element.of == kNone && element.number <= 0 && !asks_rest) return;
      asked_rests += asks_rest ? 1 : 0;
      copies += copied ? 1 : 0;
      rests += element.of != kNone && !copied ? 1 : 0;
      numbers.push_back(element.of == kNone ? element.number : copied ? 0 : -1);
    }
    // A -1 that the model asks for may stand beside copies: an empty tensor failed before too.
    if (rests + asked_rests > 1 || (rests == 1 && copies > 0)) return;
    put_reshape(id, numbers);
  }

  // Dim i of x, or of what x is a transpose of.
  bool is_dim_of(const Element& element, ValueId x, size_t i) const {
    if (element.of == kNone) return false;
    if (element.of == x) return element.axis == static_cast<int64_t>(i);
    const NodeId transpose = p_.made_by(x, "Transpose");
    if (transpose == kNone || p_.input(transpose, 0) != element.of) return false;
    const auto perm = perm_of(transpose);
    return perm && i < perm->size() && (*perm)[i] == element.axis;
  }

  bool add_elements(ValueId part, std::vector<Element>* out) const {
    if (const auto numbers = p_.ints(part)) {
      for (const int64_t number : *numbers) out->push_back({number, kNone, 0});
      return true;
    }
    // Shape(of)[axis], as Gather by a scalar that Unsqueeze makes [1], or by [axis].
    ValueId value = part;
    const NodeId unsqueeze = p_.made_by(value, "Unsqueeze");
    if (unsqueeze != kNone) value = p_.input(unsqueeze, 0);
    const NodeId gather = p_.made_by(value, "Gather");
    const NodeId shape = gather == kNone ? kNone : p_.made_by(p_.input(gather, 0), "Shape");
    const Dims* dims = shape == kNone ? nullptr : p_.dims(p_.input(shape, 0));
    const Dims* one = p_.dims(part);
    const auto index = gather == kNone ? std::nullopt : p_.ints(p_.input(gather, 1));
    if (!dims || !one || one->size() != 1 || !index || index->size() != 1) return false;
    // Since opset 15 Shape may begin elsewhere.
    const Attributes& attrs = p_.node(shape).attributes;
    if (attrs.has("start") || attrs.has("end")) return false;
    const auto rank = static_cast<int64_t>(dims->size());
    const int64_t axis = (*index)[0] < 0 ? (*index)[0] + rank : (*index)[0];
    if (axis < 0 || axis >= rank) return false;
    out->push_back({0, p_.input(shape, 0), axis});
    return true;
  }

  void put_reshape(NodeId id, const std::vector<int64_t>& numbers) {
    auto made = make_int64_tensor(numbers, Shape{static_cast<int64_t>(numbers.size())});
    if (!made.is_ok()) return;
    const ValueId shape = p_.add_constant(p_.node(id).name + "/shape", std::move(made).take());
    p_.replace(
        id, make_node(p_.node(id).name, "", "Reshape", kReshapeVersion, {p_.input(id, 0), shape}));
  }

  bool merge_reshapes(NodeId id) {
    const ValueId x = p_.input(id, 0);
    const auto target = p_.ints(p_.input(id, 1));
    const NodeId before = p_.producer(x);
    if (!target || before == kNone || !p_.is_read_once(x) || !p_.node(before).domain.empty())
      return false;
    // A copied dim is one of the value between.
    if (std::find(target->begin(), target->end(), 0) != target->end()) return false;
    for (const char* type : {"Reshape", "Squeeze", "Unsqueeze", "Flatten"}) {
      if (!p_.is(before, type) || p_.input(before, 0) == kNone) continue;
      // What does not fit is refused by the run.
      const auto from = p_.shape(p_.input(before, 0));
      const auto between = p_.shape(x);
      if (from && !(between && between->count() == from->count())) continue;
      p_.replace(id, make_node(p_.node(id).name, "", "Reshape", kReshapeVersion,
                               {p_.input(before, 0), p_.input(id, 1)}));
      return true;
    }
    return false;
  }

  // ---------------------------------------------------------------- others

  // True when every value of `from` is one of `to`.
  static bool holds(DType from, DType to) {
    switch (to) {
      case DType::kDouble:
        return from == DType::kFloat || from == DType::kFloat16 || from == DType::kBfloat16;
      case DType::kFloat:
        return from == DType::kFloat16 || from == DType::kBfloat16;
      case DType::kInt64:
        return from == DType::kInt32 || from == DType::kBool;
      case DType::kInt32:
        return from == DType::kBool;
      default:
        return false;
    }
  }

  void cast(NodeId id) {
    const NodeId before = p_.made_by(p_.input(id, 0), "Cast");
    if (before == kNone || p_.input(before, 0) == kNone || p_.node(id).version < 6) return;
    const ValueId x = p_.input(before, 0);
    const TypeInfo& from = p_.graph().value(x).type;
    const TypeInfo& between = p_.graph().value(p_.input(id, 0)).type;
    const TypeInfo& to = p_.graph().value(p_.node(id).outputs[0]).type;
    if (!from.is_tensor() || !between.is_tensor() || !to.is_tensor()) return;
    // Strings show the type they were printed from, and small integers wrap by their own rule.
    if (to.dtype == DType::kString || !holds(from.dtype, between.dtype)) return;
    if (from.dtype == to.dtype && p_.bypass(p_.node(id).outputs[0], x)) return;
    Node cast = make_node(p_.node(id).name, "", "Cast", p_.node(id).version, {x});
    cast.attributes = p_.node(id).attributes;
    p_.replace(id, std::move(cast));
  }

  // ---------------------------------------------------------------- pads

  // What a Pad puts around; none where that is some of the image.
  std::optional<float> padding_of(NodeId pad) const {
    const Attributes& attrs = p_.node(pad).attributes;
    const auto mode = attrs.get_string("mode", "constant");
    if (!mode.is_ok() || mode.value() != "constant") return std::nullopt;
    if (p_.node(pad).version >= 11) {
      return p_.input(pad, 2) == kNone ? 0.0F : p_.scalar(p_.input(pad, 2));
    }
    const auto value = attrs.get_float("value", 0.0F);
    return value.is_ok() ? std::optional<float>(value.value()) : std::nullopt;
  }

  // Whether it has no number below 0: `steps` back at most.
  bool is_never_negative(ValueId value, int steps = 3) const {
    const NodeId id = p_.producer(value);
    if (id == kNone || steps == 0) return false;
    if (p_.is(id, "Relu") || p_.is(id, "Sigmoid")) return true;
    if (p_.is(id, "MaxPool")) return is_never_negative(p_.input(id, 0), steps - 1);
    const auto& inputs = p_.node(id).inputs;
    return p_.is(id, "Concat") && std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
             return is_never_negative(input, steps - 1);
           });
  }

  // Whether windows that leave out what is beyond an image have the same maxima as with `padding`.
  bool is_below(float padding, ValueId image) const {
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    return padding == kLowest || (padding <= 0 && is_never_negative(image));
  }

  // Whether the operator takes for what is beyond its image what `pad` puts there; of pools, if
  // no window is beyond it as a whole.
  bool takes_padding(NodeId id, NodeId pad) const {
    const std::optional<float> padding = padding_of(pad);
    if (!padding) return false;
    if (p_.is(id, "Conv")) return *padding == 0;
    const Attributes& attrs = p_.node(id).attributes;
    const auto window = parse_window(attrs);
    if (!window.is_ok() || window.value().ceil_mode || !all_are(window.value().dilations, 1)) {
      return false;
    }
    if (p_.is(id, "MaxPool")) {
      const auto& outputs = p_.node(id).outputs;
      const bool has_indices = outputs.size() > 1 && outputs[1] != kNone;  // of the padded image
      return !has_indices && is_below(*padding, p_.input(pad, 0));
    }
    constexpr int kCountsPads = 7;
    const auto counts = attrs.get_int("count_include_pad", 0);
    return p_.is(id, "AveragePool") && *padding == 0 && p_.node(id).version >= kCountsPads &&
           ((counts.is_ok() && counts.value() == 1) || all_are(window.value().pads, 0));
  }

  // Pads of the operator with those of `pad`.
  std::optional<std::vector<int64_t>> joined_pads(NodeId id, NodeId pad) const {
    const auto added = pads_of(pad);
    const Dims* dims = p_.dims(p_.input(pad, 0));
    const Attributes& attrs = p_.node(id).attributes;
    const auto automatic = attrs.get_string("auto_pad", "NOTSET");
    auto given = attrs.get_ints("pads");
    if (!added || !dims || dims->size() < 3 || added->size() != 2 * dims->size() ||
        !automatic.is_ok() || (automatic.value() != "NOTSET" && automatic.value() != "VALID") ||
        !given.is_ok()) {
      return std::nullopt;
    }
    const size_t rank = dims->size();
    const size_t spatial = rank - 2;
    std::vector<int64_t> pads = given.value();
    if (pads.empty() || automatic.value() == "VALID") pads.assign(2 * spatial, 0);
    if (pads.size() != 2 * spatial) return std::nullopt;
    constexpr int64_t kMost = 1 << 20;
    for (size_t i = 0; i < 2 * rank; ++i) {
      const int64_t by = (*added)[i];
      const size_t axis = i % rank;
      if (by < 0 || by > kMost || (axis < 2 && by != 0)) return std::nullopt;
      if (axis >= 2) pads[i / rank * spatial + axis - 2] += by;
    }
    return pads;
  }

  bool sees_the_image(NodeId pool, const std::vector<int64_t>& pads) const {
    const auto kernel = p_.node(pool).attributes.get_ints("kernel_shape");
    if (!kernel.is_ok() || 2 * kernel.value().size() != pads.size()) return false;
    for (size_t i = 0; i < pads.size(); ++i) {
      if (pads[i] >= kernel.value()[i % kernel.value().size()]) return false;
    }
    return true;
  }

  void take_pad_in(NodeId id) {
    const ValueId x = p_.input(id, 0);
    const NodeId pad = p_.made_by(x, "Pad");
    if (pad == kNone || !p_.is_read_once(x) || !p_.is_float(x) || !takes_padding(id, pad)) return;
    std::optional<std::vector<int64_t>> pads = joined_pads(id, pad);
    if (!pads || (!p_.is(id, "Conv") && !sees_the_image(id, *pads))) return;
    const Node& node = p_.node(id);
    Node padded = make_node(node.name, "", node.op_type, node.version, node.inputs);
    padded.attributes = node.attributes;
    padded.attributes.set(text_attribute("auto_pad", "NOTSET"));
    padded.attributes.set(ints_attribute("pads", *std::move(pads)));
    if (p_.is(id, "AveragePool")) padded.attributes.set(int_attribute("count_include_pad", 1));
    padded.inputs[0] = p_.input(pad, 0);
    p_.replace(id, std::move(padded));
  }

  Pattern& p_;
};

}  // namespace

void simplify_moves(Model* model, bool* changed) {
  for_each_graph(&model->graph, changed,
                 [](Pattern& pattern) { MoveSimplifier(pattern).simplify(); });
}

}  // namespace folio
