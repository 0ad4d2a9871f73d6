// Convolutions and pooling compute with channels last, and what stands between them follows.
//
//   Conv, FusedConv, MaxPool, AveragePool, Global*Pool,  become those of domain folio.nhwc
//   LRN
//   QLinearConv, QLinear*Pool, MaxPool of bytes          those of com.microsoft with channels last
//   element-wise operators, Concat, Split, Pad, Resize, Slice, Softmax, reductions
//                                                        follow, with axes and constants renumbered
//   Reshape, Transpose, Reshape that shuffle channels     follow, of the last dims
//   Reshape that leaves batch and channels                follows
//   BatchNormalization of constants [then a function]    follows as a Conv of one tap over one
//                                                        channel each: x * scale + shift, rounded
//                                                        once
//   ConvTranspose [then a function]                      becomes that of domain folio.nhwc
//   InstanceNormalization, GroupNormalization [then a function]
//                                                        follow in domain folio.nhwc
//   Transpose                                            meets the one that it would undo
//
// A value keeps its id for readers that want channels first; its twin with channels last is made by
// whoever can, and a Transpose stands where one form is wanted and the other is there: at the edges
// of such a region. The input image of a convolution is worth turning; anything else follows only
// when its input has a twin already; a few convolutions that would only be turned and turned back
// keep channels first (keep_planes.h). Convolutions with weights of 4 bits that are left in floats
// between codes keep channels first: their sums are small multiples of one number, which often
// stand in the middle between two codes, and the order in which they are added decides which code
// it is. Private: the result is never saved.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "core/base/checked_math.h"
#include "core/ops/op_conv_transpose.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_reduce.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_unpack.h"
#include "core/passes/axes_last.h"
#include "core/passes/channel_affine.h"
#include "core/passes/channel_shuffle.h"
#include "core/passes/constants_last.h"
#include "core/passes/keep_planes.h"
#include "core/passes/narrow_codes.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"
#include "core/passes/pixels_last.h"

namespace folio {
namespace {

constexpr std::string_view kFused = "com.microsoft";

class ChannelsLast {
 public:
  ChannelsLast(Graph* graph, int opset) : graph_(*graph), pattern_(graph), opset_(opset) {}

  bool run() {
    const std::vector<bool> keeps =
        convs_that_keep_planes(pattern_, [](const Node& node) { return turning_of(node); });
    note_functions();
    note_shuffles();
    codes_ = NeighbouringCodes(graph_);
    std::vector<Node> nodes = std::move(graph_.nodes);
    note_turned(nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      if (node.dead || is_taken_[i] || (!keeps[i] && convert(node))) continue;
      Graph::for_each_read(node, [&](ValueId read) { need_first(read); });
      if (keeps[i]) keep_planes(&node);
      out_.push_back(std::move(node));
    }
    for (const ValueId output : graph_.outputs) need_first(output);
    graph_.nodes = std::move(out_);
    return changed_;
  }

 private:
  // ------------------------------------------------------------- values

  // What alone reads the result of one of these, as a function that a convolution takes in.
  void note_functions() {
    is_taken_.resize(graph_.nodes.size(), false);
    const auto takes_function = [](const Node& node) {
      return !node.dead && node.domain.empty() &&
             (node.op_type == "BatchNormalization" || node.op_type == "InstanceNormalization" ||
              node.op_type == "GroupNormalization" || node.op_type == "ConvTranspose");
    };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), takes_function)) return;
    const ValueLinks links(graph_);
    for (const Node& node : graph_.nodes) {
      if (!takes_function(node) || node.outputs.empty() || node.outputs[0] == kNone) continue;
      const auto y = static_cast<size_t>(node.outputs[0]);
      const NodeId id = links.uses[y] == 1 ? links.readers[y] : kNone;
      if (id == kNone) continue;
      const Node& reader = graph_.nodes[static_cast<size_t>(id)];
      const bool fits = reader.subgraphs.empty() && reader.outputs.size() == 1 &&
                        reader.inputs[0] == node.outputs[0] && pattern_.is_float(reader.outputs[0]);
      auto function = fits ? fusable_function(graph_, reader) : std::nullopt;
      if (function) functions_[node.outputs[0]] = {id, reader.outputs[0], std::move(*function)};
    }
  }

  void note_shuffles() {
    for (NodeId id = 0; id < pattern_.count(); ++id) {
      const auto shuffle = channel_shuffle_at(pattern_, id);
      if (shuffle) shuffles_[pattern_.node(id).outputs[0]] = *shuffle;
    }
  }

  // What a Transpose made of an image with channels last: that image is its twin, if one is wanted.
  void note_turned(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (node.dead || node.op_type != "Transpose" || node.outputs.empty()) continue;
      const auto perm = node.attributes.get_ints("perm");
      if (perm.is_ok() && perm.value().size() >= 3 && rank(node.inputs[0]) == perm.value().size() &&
          perm.value() == to_first_order(perm.value().size())) {
        turned_[node.outputs[0]] = node.inputs[0];
      }
    }
  }

  const Dims* dims(ValueId id) const { return id == kNone ? nullptr : pattern_.dims(id); }
  size_t rank(ValueId id) const { return dims(id) ? dims(id)->size() : 0; }
  bool has_twin(ValueId id) const { return id != kNone && last_.contains(id); }

  ValueId new_value(std::string name, const TypeInfo& like, std::optional<Dims> dims) {
    TypeInfo type = like;
    type.dims = std::move(dims);
    return pattern_.add_value(std::move(name), std::move(type));
  }

  // The twin that a node is about to make.
  ValueId make_twin(ValueId first) {
    const GraphValue& value = graph_.value(first);
    const std::string name = value.name + "/nhwc";
    const ValueId id = new_value(name, value.type, to_last(*value.type.dims));
    last_[first] = id;
    only_last_.insert({first, true});
    return id;
  }

  void add_transpose(ValueId from, ValueId to, std::vector<int64_t> perm) {
    Node node = make_node(graph_.value(to).name, "", "Transpose", opset_, {from});
    node.attributes.set(ints_attribute("perm", std::move(perm)));
    node.outputs = {to};
    out_.push_back(std::move(node));
  }

  // Somebody reads the value with channels first.
  void need_first(ValueId first) {
    const auto found = only_last_.find(first);
    if (found == only_last_.end() || !found->second) return;
    found->second = false;
    add_transpose(last_[first], first, to_first_order(rank(first)));
  }

  ValueId twin(ValueId first) {
    const auto found = last_.find(first);
    if (found != last_.end()) return found->second;
    const auto turned = turned_.find(first);
    if (turned != turned_.end()) {
      need_first(turned->second);  // it may have a twin itself, which that Transpose reads now
      return last_[first] = turned->second;
    }
    const ValueId id = make_twin(first);
    only_last_[first] = false;
    add_transpose(first, id, to_last_order(rank(first)));
    return id;
  }

  // ------------------------------------------------------------- nodes

  using Convert = bool (ChannelsLast::*)(Node&);
  struct Rule {
    std::string_view domain, type;
    Convert convert;
    bool begins = false;  // also when its input has no twin yet
    bool gains = true;    // faster so, or what makes or reads it is
  };

  static const Rule* rule_of(const Node& node) {
    static constexpr Rule kRules[] = {
        {"", "Conv", &ChannelsLast::convert_conv, true},
        {kFused, "FusedConv", &ChannelsLast::convert_conv, true},
        {"", "QLinearConv", &ChannelsLast::convert_byte_conv, true},
        {kFused, "QLinearConv", &ChannelsLast::convert_byte_conv, true},
        {"folio", "QLinearConvAdd", &ChannelsLast::convert_byte_conv, true},
        {"folio", "ConvIntegerToFloat", &ChannelsLast::convert_bytes, true},
        {"", "ConvTranspose", &ChannelsLast::convert_transpose_conv, true},
        {"", "DynamicQuantizeLinear", &ChannelsLast::convert_dynamic},
        {"", "MaxPool", &ChannelsLast::convert_pool},
        {"", "AveragePool", &ChannelsLast::convert_pool},
        {"", "GlobalMaxPool", &ChannelsLast::convert_pool},
        {"", "GlobalAveragePool", &ChannelsLast::convert_pool},
        {"", "LRN", &ChannelsLast::convert_pool, false, false},
        {kFused, "QLinearAveragePool", &ChannelsLast::convert_bytes},
        {kFused, "QLinearGlobalAveragePool", &ChannelsLast::convert_bytes},
        {"", "QuantizeLinear", &ChannelsLast::convert_quantize},
        {"", "DequantizeLinear", &ChannelsLast::convert_quantize},
        {"folio", "ByteTable", &ChannelsLast::convert_table},
        {"", "Transpose", &ChannelsLast::convert_transpose},
        {"", "Concat", &ChannelsLast::convert_axis, true},
        {"", "Split", &ChannelsLast::convert_axis},
        {"", "Softmax", &ChannelsLast::convert_axis},
        {"", "LogSoftmax", &ChannelsLast::convert_axis},
        {"", "Pad", &ChannelsLast::convert_pad},
        {"", "Slice", &ChannelsLast::convert_slice},
        {"", "Resize", &ChannelsLast::convert_resize},
        {"", "Shape", &ChannelsLast::convert_shape},
        {"", "BatchNormalization", &ChannelsLast::convert_normalization, false, false},
        {"", "InstanceNormalization", &ChannelsLast::convert_group_norm},
        {"", "GroupNormalization", &ChannelsLast::convert_group_norm},
    };
    static constexpr Rule kReduce{"", "Reduce", &ChannelsLast::convert_reduce, false, false};
    for (const Rule& rule : kRules) {
      if (rule.domain == node.domain && rule.type == node.op_type) return &rule;
    }
    const bool reduces = node.domain.empty() && node.op_type.rfind(kReduce.type, 0) == 0;
    return reduces ? &kReduce : nullptr;
  }

  static Turning turning_of(const Node& node) {
    if (const Rule* rule = rule_of(node)) return rule->gains ? Turning::kGains : Turning::kFollows;
    return is_elementwise(node) ? Turning::kFollows : Turning::kStays;
  }

  // True when the node was put into `out_` in another form.
  bool convert(Node& node) {
    if (!node.subgraphs.empty() || node.outputs.empty() || node.inputs.empty()) return false;
    const Rule* rule = rule_of(node);
    bool done = false;
    if (rule && (rule->begins || has_twin(node.inputs[0]))) done = (this->*rule->convert)(node);
    if (!rule && is_elementwise(node)) done = convert_elementwise(node);
    if (node.op_type == "Reshape" &&
        (has_twin(node.inputs[0]) || turned_.contains(node.inputs[0]))) {
      done = convert_shuffle(node) || convert_pixels(node);
    }
    changed_ |= done;
    return done;
  }

  // The same convolution, which reads its weights where they stand in the file.
  void keep_planes(Node* node) {
    Node made = make_node(node->name, "folio", "PlanesConv", 1, node->inputs);
    made.attributes = std::move(node->attributes);
    made.outputs = node->outputs;
    *node = std::move(made);
    changed_ = true;
  }

  bool is_image(ValueId id) const {
    return id != kNone && pattern_.is_float(id) && rank(id) >= 3 && rank(id) <= 5;
  }

  bool is_bytes(ValueId id) const {
    if (id == kNone || rank(id) < 3 || rank(id) > 5) return false;
    const DType dtype = graph_.value(id).type.dtype;
    return dtype == DType::kUint8 || dtype == DType::kInt8;
  }

  void emit(Node node, const std::vector<ValueId>& outputs) {
    for (const ValueId output : outputs) {
      node.outputs.push_back(output == kNone ? kNone : make_twin(output));
    }
    out_.push_back(std::move(node));
  }

  bool convert_conv(Node& node) {
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    const Initializer* w = pattern_.constant(node.inputs[1]);
    // Of computed weights, too, the form depends on the shape.
    const std::optional<Shape> shape = pattern_.shape(node.inputs[1]);
    const auto group = node.attributes.get_int("group", 1);
    if (!is_image(x) || !is_image(y) || !shape || !pattern_.is_float(node.inputs[1]) ||
        !group.is_ok() || static_cast<size_t>(shape->rank()) != rank(x) || rank(y) != rank(x) ||
        !fits_nhwc_conv(shape->dims(), group.value()) ||
        (w && codes_.are_around(x, y) && are_of_narrow_codes(*w))) {
      return false;
    }
    if (!w && !has_twin(x) && !repays_turning(*shape, group.value())) return false;
    const ValueId z = node.inputs.size() > 3 ? node.inputs[3] : kNone;
    if (z != kNone && (!is_image(z) || rank(z) != rank(y))) return false;  // of a file's FusedConv
    Node made = make_node(node.name, kNhwcDomain, "Conv", 1, node.inputs);
    made.attributes = std::move(node.attributes);
    if (reads_planes(x, *shape, made.attributes)) {
      made.attributes.set(int_attribute(std::string(kPlanesAttribute), 1));
    } else {
      made.inputs[0] = twin(x);
    }
    if (z != kNone) made.inputs[3] = twin(z);
    if (w) take_scale_out(*w, group.value(), &made);
    emit(std::move(made), {y});
    return true;
  }

  // Products of one tap and filters over one channel each do well with channels first (of
  // constants, keep_planes decides).
  static bool repays_turning(const Shape& w, int64_t group) {
    return w.count() > w[0] * w[1] && !is_depthwise_conv(w.dims(), group);
  }

  // An image of few channels that nobody has with channels last: turning it would cost as much as
  // some of its products.
  bool reads_planes(ValueId x, const Shape& w, const Attributes& attributes) const {
    const auto attrs = parse_conv(attributes);
    return !has_twin(x) && !turned_.contains(x) && attrs.is_ok() &&
           fits_planes(w.dims(), attrs.value());
  }

  // Weights times one number for each filter, not computed yet (fold_scales): the sums are scaled
  // instead. So the weights stay those of the file, shared and mapped.
  void take_scale_out(const Initializer& w, int64_t group, Node* node) {
    const Recipe* recipe = w.recipe.get();
    if (w.tensor || !recipe || !recipe->domain.empty() || recipe->op_type != "Mul" ||
        is_window_conv(w.shape.dims(), group)) {
      return;
    }
    const Ref<Initializer>& whole = recipe->inputs[0];
    const Ref<Initializer>& scale = recipe->inputs[1];
    // Of halves that the file has, a Cast is no computing: the products widen them.
    const Ref<Initializer>* half = half_behind(*whole);
    if (is_computed(half ? **half : *whole) || !scale->tensor || !(whole->shape == w.shape) ||
        scale->shape.rank() != w.shape.rank() || scale->shape[0] != w.shape[0] ||
        scale->shape.count() != w.shape[0]) {
      return;
    }
    node->inputs.resize(5, kNone);
    node->inputs[1] = pattern_.add_constant(whole);
    node->inputs[4] = pattern_.add_constant(scale);
  }

  // com.microsoft's form has an attribute for it, and Folio's.
  bool convert_byte_conv(Node& node) {
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    const auto already = node.attributes.get_int("channels_last", 0);
    if (!is_bytes(x) || !is_bytes(y) || rank(x) != rank(y) || node.inputs.size() < 8 ||
        !already.is_ok() || already.value() != 0) {
      return false;
    }
    constexpr size_t kAddend = 9;
    if (node.inputs.size() > kAddend) {
      const ValueId z = node.inputs[kAddend];
      if (!is_bytes(z) || rank(z) != rank(x)) return false;
      node.inputs[kAddend] = twin(z);
    }
    if (node.domain.empty()) node.domain = kFused;
    emit_channels_last(node);
    return true;
  }

  // Scale and zero point are of the whole image.
  bool convert_dynamic(Node& node) {
    const ValueId y = node.outputs[0];
    if (!is_image(node.inputs[0]) || y == kNone || rank(y) != rank(node.inputs[0])) return false;
    Node made = make_node(node.name, "", node.op_type, node.version, {twin(node.inputs[0])});
    made.outputs = std::move(node.outputs);
    made.outputs[0] = make_twin(y);
    out_.push_back(std::move(made));
    return true;
  }

  bool convert_bytes(Node& node) {
    const auto already = node.attributes.get_int("channels_last", 0);
    if (!is_bytes(node.inputs[0]) || rank(node.outputs[0]) != rank(node.inputs[0]) ||
        !already.is_ok() || already.value() != 0) {
      return false;
    }
    emit_channels_last(node);
    return true;
  }

  void emit_channels_last(Node& node) {
    Node made = make_node(node.name, node.domain, node.op_type, 1, node.inputs);
    made.attributes = std::move(node.attributes);
    made.attributes.set(int_attribute("channels_last", 1));
    made.inputs[0] = twin(made.inputs[0]);
    emit(std::move(made), {node.outputs[0]});
  }

  // Pools, and LRN, which looks at one image as they do.
  bool convert_pool(Node& node) {
    const bool single = node.outputs.size() == 1 || node.outputs[1] == kNone;
    const bool bytes = is_bytes(node.inputs[0]) && node.op_type == "MaxPool";
    if (!single || (!bytes && !is_image(node.inputs[0])) ||
        rank(node.outputs[0]) != rank(node.inputs[0])) {
      return false;
    }
    Node made = bytes ? make_node(node.name, kFused, "NhwcMaxPool", 1, {twin(node.inputs[0])})
                      : make_node(node.name, kNhwcDomain, node.op_type, 1, {twin(node.inputs[0])});
    made.attributes = std::move(node.attributes);
    emit(std::move(made), {node.outputs[0]});
    return true;
  }

  // A filter of one tap over one channel each.
  bool convert_normalization(Node& node) {
    const ValueId x = node.inputs[0];
    ValueId y = node.outputs[0];
    const size_t r = rank(x);
    const Initializer* scale = node.inputs.size() > 1 ? pattern_.constant(node.inputs[1]) : nullptr;
    if (!is_image(x) || rank(y) != r || !scale || scale->shape.rank() != 1) return false;
    Shape filters{scale->shape[0]};
    for (size_t i = 1; i < r; ++i) filters.push_back(1);
    const auto affine = affine_of_normalization(pattern_, node, filters[0]);
    if (!affine || !affine->is_finite() || !is_depthwise_conv(filters.dims(), filters[0])) {
      return false;
    }
    const ValueId w = add_floats(&pattern_, node.name + "/scale", filters, affine->scale);
    const ValueId b = add_floats(&pattern_, node.name + "/shift", Shape{filters[0]}, affine->shift);
    if (w == kNone || b == kNone) return false;
    Node made = make_node(node.name, kNhwcDomain, "Conv", 1, {twin(x), w, b});
    made.attributes.set(int_attribute("group", filters[0]));
    y = take_function(y, &made);
    emit(std::move(made), {y});
    return true;
  }

  // Scale and bias of each channel are vectors in both forms.
  bool convert_group_norm(Node& node) {
    constexpr int kOneForEach = 21;  // of GroupNormalization: a scale of a channel, not of a group
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    const bool is_groups = node.op_type == "GroupNormalization";
    if (!is_image(x) || rank(y) != rank(x) || node.inputs.size() != 3 ||
        (is_groups && node.version < kOneForEach)) {
      return false;
    }
    Node made = make_node(node.name, kNhwcDomain, node.op_type, 1,
                          {twin(x), node.inputs[1], node.inputs[2]});
    made.attributes = std::move(node.attributes);
    const ValueId result = take_function(y, &made);
    emit(std::move(made), {result});
    return true;
  }

  bool convert_transpose_conv(Node& node) {
    const ValueId x = node.inputs[0];
    const ValueId y = node.outputs[0];
    const Initializer* w = node.inputs.size() > 1 ? pattern_.constant(node.inputs[1]) : nullptr;
    const auto attrs = parse_conv_transpose(node.attributes);
    if (!is_image(x) || rank(y) != rank(x) || !w || w->dtype != DType::kFloat || !attrs.is_ok() ||
        static_cast<size_t>(w->shape.rank()) != rank(x) ||
        !fits_nhwc_transpose(w->shape.dims(), attrs.value())) {
      return false;
    }
    Node made = make_node(node.name, kNhwcDomain, node.op_type, 1, node.inputs);
    made.attributes = std::move(node.attributes);
    made.inputs[0] = twin(x);
    const ValueId result = take_function(y, &made);
    emit(std::move(made), {result});
    return true;
  }

  // With such a node goes the function that alone reads it: gives that one's result.
  ValueId take_function(ValueId y, Node* made) {
    const auto reader = functions_.find(y);
    if (reader == functions_.end()) return y;
    set_function(reader->second.function, made);
    is_taken_[static_cast<size_t>(reader->second.node)] = true;
    return reader->second.result;
  }

  // What is left of an image in the order of its dims is the same in both forms where channels go,
  // or all else but the batch.
  bool convert_reduce(Node& node) {
    const size_t r = rank(node.inputs[0]);
    const bool has_input = node.inputs.size() > 1 && node.inputs[1] != kNone;
    const auto keeps = keeps_dims(node.attributes);
    const auto given = node.attributes.get_ints("axes");
    if (r < 3 || r > 5 || !keeps.is_ok() || !given.is_ok()) return false;
    const auto axes = has_input ? pattern_.ints(node.inputs[1]) : given.value();
    if (!axes || axes->empty()) return false;
    std::vector<int64_t> last;
    std::vector<bool> goes(r, false);
    for (const int64_t axis : *axes) {
      const std::optional<int64_t> to = axis_last(axis, r);
      if (!to) return false;
      last.push_back(*to);
      goes[static_cast<size_t>(*to)] = true;
    }
    const bool keeps_order = goes[r - 1] || std::all_of(goes.begin() + 1, goes.end() - 1,
                                                        [](bool is_gone) { return is_gone; });
    if (keeps.value() ? rank(node.outputs[0]) != r : !keeps_order) return false;
    const ValueId constant = pattern_.add_ints(node.name + "/axes/nhwc", last);
    if (constant == kNone) return false;
    Node made = make_node(node.name, "", node.op_type, node.version, {twin(node.inputs[0])});
    made.attributes = std::move(node.attributes);
    if (has_input) {
      made.inputs.push_back(constant);
    } else {
      made.attributes.set(ints_attribute("axes", std::move(last)));
    }
    if (keeps.value()) {
      emit(std::move(made), {node.outputs[0]});
    } else {
      made.outputs = {node.outputs[0]};
      out_.push_back(std::move(made));
    }
    return true;
  }

  static bool is_old_prelu(const Node& node) {
    constexpr int kBroadcasts = 7;
    return node.op_type == "PRelu" && node.version < kBroadcasts;
  }

  bool convert_elementwise(Node& node) {
    const ValueId y = node.outputs[0];
    const size_t r = rank(y);
    // Before opset 7 an axis said where the other operand stands, and PRelu's was of channels.
    const bool has_own_rule = node.attributes.has("axis") || is_old_prelu(node);
    if (node.outputs.size() != 1 || r < 3 || r > 5 || has_own_rule) return false;
    bool any_twin = false;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      if (input == kNone || pattern_.constant(input)) continue;
      if (rank(input) != r) return false;
      any_twin |= has_twin(input);
    }
    if (!any_twin) return false;
    for (const ValueId input : node.inputs) {
      const bool constant = input != kNone && pattern_.constant(input);
      inputs.push_back(constant ? constant_last(&pattern_, input, r) : input);
      if (constant && inputs.back() == kNone) return false;
    }
    for (ValueId& input : inputs) {
      if (input != kNone && !pattern_.constant(input)) input = twin(input);
    }
    Node made = make_node(node.name, node.domain, node.op_type, node.version, std::move(inputs));
    made.attributes = std::move(node.attributes);
    emit(std::move(made), {y});
    return true;
  }

  // One scale for all: the axis says nothing.
  bool convert_quantize(Node& node) {
    const Initializer* scale = pattern_.constant(node.inputs[1]);
    uint64_t count = 0;
    const size_t r = rank(node.inputs[0]);
    if (!scale || !checked_count(scale->shape.dims(), &count) || count != 1 ||
        scale->shape.rank() > 1 || r < 3 || r > 5 || rank(node.outputs[0]) != r) {
      return false;
    }
    Node made = make_node(node.name, "", node.op_type, node.version, node.inputs);
    made.attributes = std::move(node.attributes);
    made.inputs[0] = twin(made.inputs[0]);
    emit(std::move(made), {node.outputs[0]});
    return true;
  }

  bool convert_table(Node& node) {
    if (!is_bytes(node.inputs[0]) || rank(node.outputs[0]) != rank(node.inputs[0])) return false;
    Node made = make_node(node.name, node.domain, node.op_type, node.version, node.inputs);
    made.inputs[0] = twin(made.inputs[0]);
    emit(std::move(made), {node.outputs[0]});
    return true;
  }

  bool convert_transpose(Node& node) {
    const auto perm = node.attributes.get_ints("perm");
    const size_t r = rank(node.inputs[0]);
    if (!perm.is_ok() || perm.value().size() != r) return false;
    std::vector<int64_t> composed;
    for (const int64_t axis : perm.value()) {
      const std::optional<int64_t> from = axis_last(axis, r);
      if (!from) return false;
      composed.push_back(*from);
    }
    const bool is_same = std::is_sorted(composed.begin(), composed.end());
    Node made = make_node(node.name, "", is_same ? "Identity" : "Transpose", opset_,
                          {twin(node.inputs[0])});
    if (!is_same) made.attributes.set(ints_attribute("perm", std::move(composed)));
    made.outputs = {node.outputs[0]};
    out_.push_back(std::move(made));
    return true;
  }

  bool convert_pixels(Node& node) {
    const ValueId target = pixels_target_last(&pattern_, node);
    if (target == kNone) return false;
    emit(make_node(node.name, "", "Reshape", kReshapeVersion, {twin(node.inputs[0]), target}),
         node.outputs);
    return true;
  }

  // The Reshape that begins a shuffle of channels, with what is behind it.
  bool convert_shuffle(Node& node) {
    const auto found = shuffles_.find(node.outputs[0]);
    if (found == shuffles_.end()) return false;
    const ChannelShuffle& shuffle = found->second;
    std::vector<Node> nodes =
        shuffle_last(&pattern_, shuffle, node.name, twin(node.inputs[0]), opset_);
    if (nodes.empty()) return false;
    Node join = std::move(nodes.back());
    nodes.pop_back();
    for (Node& made : nodes) out_.push_back(std::move(made));
    emit(std::move(join), {shuffle.result});
    for (const NodeId id : {shuffle.transpose, shuffle.last}) {
      is_taken_[static_cast<size_t>(id)] = true;
    }
    return true;
  }

  // Operators that name one axis; Concat's inputs are images and constants beside them.
  bool convert_axis(Node& node) {
    const size_t r = rank(node.inputs[0]);
    const bool softmax = node.op_type == "Softmax" || node.op_type == "LogSoftmax";
    if (softmax && node.version < 13) return false;  // flattens from the axis on
    const auto axis = node.attributes.get_int("axis", softmax ? -1 : 0);
    const std::optional<int64_t> to = axis.is_ok() ? axis_last(axis.value(), r) : std::nullopt;
    if (!to || r < 3 || r > 5) return false;
    const size_t images = node.op_type == "Concat" ? node.inputs.size() : 1;
    size_t twins = 0;
    size_t others = 0;
    for (size_t i = 0; i < images; ++i) {
      if (rank(node.inputs[i]) != r) return false;
      if (pattern_.constant(node.inputs[i])) continue;
      ++(has_twin(node.inputs[i]) ? twins : others);
    }
    if (twins == 0 || twins < others) return false;
    for (const ValueId output : node.outputs) {
      if (output != kNone && rank(output) != r) return false;
    }
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i = 0; i < images; ++i) {
      if (pattern_.constant(inputs[i])) inputs[i] = constant_last(&pattern_, inputs[i], r);
      if (inputs[i] == kNone) return false;
    }
    for (size_t i = 0; i < images; ++i) {
      if (!pattern_.constant(inputs[i])) inputs[i] = twin(inputs[i]);
    }
    Node made = make_node(node.name, "", node.op_type, node.version, std::move(inputs));
    made.attributes = std::move(node.attributes);
    made.attributes.set(int_attribute("axis", *to));
    emit(std::move(made), node.outputs);
    return true;
  }

  // All begins, then all ends.
  static std::vector<int64_t> pads_last(const std::vector<int64_t>& pads) {
    const auto middle = pads.begin() + static_cast<int64_t>(pads.size() / 2);
    std::vector<int64_t> last = to_last(std::vector<int64_t>(pads.begin(), middle));
    const std::vector<int64_t> ends = to_last(std::vector<int64_t>(middle, pads.end()));
    last.insert(last.end(), ends.begin(), ends.end());
    return last;
  }

  // Before opset 11 pads are an attribute.
  bool convert_pad(Node& node) {
    const size_t r = rank(node.inputs[0]);
    if (r < 3 || rank(node.outputs[0]) != r) return false;
    std::optional<std::vector<int64_t>> pads;
    ValueId constant = kNone;
    if (node.version >= 11) {
      const bool has_axes = node.inputs.size() > 3 && node.inputs[3] != kNone;
      if (!has_axes && node.inputs.size() > 1) pads = pattern_.ints(node.inputs[1]);
    } else if (auto given = node.attributes.get_ints("pads"); given.is_ok()) {
      pads = std::move(given).take();
    }
    if (!pads || pads->size() != 2 * r) return false;
    const std::vector<int64_t> last = pads_last(*pads);
    if (node.version >= 11) {
      constant = pattern_.add_ints(node.name + "/pads/nhwc", last);
      if (constant == kNone) return false;
    }
    Node made = make_node(node.name, "", "Pad", node.version, std::move(node.inputs));
    made.attributes = std::move(node.attributes);
    made.inputs[0] = twin(made.inputs[0]);
    if (constant != kNone) {
      made.inputs[1] = constant;
    } else {
      made.attributes.set(ints_attribute("pads", last));
    }
    emit(std::move(made), node.outputs);
    return true;
  }

  bool convert_slice(Node& node) {
    const size_t r = rank(node.inputs[0]);
    if (r < 3 || rank(node.outputs[0]) != r || node.version < 10 || node.inputs.size() < 4 ||
        node.inputs[3] == kNone) {
      return false;
    }
    const std::optional<std::vector<int64_t>> axes = pattern_.ints(node.inputs[3]);
    if (!axes) return false;
    std::vector<int64_t> last;
    for (const int64_t axis : *axes) {
      const std::optional<int64_t> to = axis_last(axis, r);
      if (!to) return false;
      last.push_back(*to);
    }
    const ValueId constant = pattern_.add_ints(node.name + "/axes/nhwc", last);
    if (constant == kNone) return false;
    Node made = make_node(node.name, "", "Slice", node.version, std::move(node.inputs));
    made.inputs[0] = twin(made.inputs[0]);
    made.inputs[3] = constant;
    emit(std::move(made), node.outputs);
    return true;
  }

  // A constant with one entry an axis, renumbered; kNone stays.
  std::optional<ValueId> per_axis(ValueId id, size_t r) {
    if (id == kNone) return kNone;
    const Tensor* tensor = pattern_.bytes(id);
    if (!tensor || tensor->rank() != 1) return std::nullopt;
    if (tensor->count() == 0) return id;
    if (tensor->dim(0) != static_cast<int64_t>(r)) return std::nullopt;
    const size_t size = tensor->bytes() / r;
    auto made = allocate_tensor(tensor->dtype(), tensor->shape());
    if (!made.is_ok()) return std::nullopt;
    Tensor last = std::move(made).take();
    const std::vector<int64_t> order = to_last_order(r);
    for (size_t i = 0; i < r; ++i) {
      std::memcpy(last.raw_mut() + i * size, tensor->raw() + static_cast<size_t>(order[i]) * size,
                  size);
    }
    return pattern_.add_constant(graph_.value(id).name + "/nhwc", std::move(last));
  }

  // scales and sizes are one entry an axis; a region of interest is left alone.
  bool convert_resize(Node& node) {
    const size_t r = rank(node.inputs[0]);
    if (r < 3 || rank(node.outputs[0]) != r || node.version < 11 || node.attributes.has("axes")) {
      return false;
    }
    const auto mode = node.attributes.get_string("coordinate_transformation_mode", "");
    if (!mode.is_ok() || mode.value() == "tf_crop_and_resize") return false;
    std::vector<ValueId> inputs = node.inputs;
    inputs.resize(std::max<size_t>(inputs.size(), 2), kNone);
    for (size_t i = 2; i < inputs.size(); ++i) {
      const std::optional<ValueId> renumbered = per_axis(inputs[i], r);
      if (!renumbered) return false;
      inputs[i] = *renumbered;
    }
    inputs[1] = kNone;
    inputs[0] = twin(inputs[0]);
    Node made = make_node(node.name, "", "Resize", node.version, std::move(inputs));
    made.attributes = std::move(node.attributes);
    emit(std::move(made), node.outputs);
    return true;
  }

  // Only the dims are read: no reason to turn the value.
  bool convert_shape(Node& node) {
    const ValueId x = node.inputs[0];
    const auto found = only_last_.find(x);
    if (found == only_last_.end() || !found->second || !node.attributes.all().empty()) return false;
    const size_t r = rank(x);
    const ValueId order = pattern_.add_ints(node.name + "/nchw", to_first_order(r));
    if (order == kNone) return false;
    const ValueId y = node.outputs[0];
    const ValueId shape =
        new_value(graph_.value(y).name + "/nhwc", graph_.value(y).type, graph_.value(y).type.dims);
    Node first = make_node(node.name, "", "Shape", node.version, {twin(x)});
    first.outputs = {shape};
    out_.push_back(std::move(first));
    Node gather = make_node(node.name, "", "Gather", opset_, {shape, order});
    gather.outputs = {y};
    out_.push_back(std::move(gather));
    return true;
  }

  // A node that a normalization takes in, and what that makes then.
  struct Reader {
    NodeId node = kNone;
    ValueId result = kNone;
    FusableFunction function;
  };

  Graph& graph_;
  Pattern pattern_;  // for values and constants only: the nodes are on their way to `out_`
  int opset_;
  std::vector<Node> out_;
  std::unordered_map<ValueId, ValueId> last_;      // value -> its twin
  std::unordered_map<ValueId, ValueId> turned_;    // made by a Transpose -> what of
  std::unordered_map<ValueId, bool> only_last_;    // twins made first: is the value itself missing?
  NeighbouringCodes codes_;                        // of 8 bits or fewer
  std::unordered_map<ValueId, Reader> functions_;  // of what a normalization makes
  std::unordered_map<ValueId, ChannelShuffle> shuffles_;  // of what the first Reshape makes
  std::vector<bool> is_taken_;                            // nodes that are part of another now
  bool changed_ = false;
};

}  // namespace

void channels_last(Model* model, bool* changed) {
  const int opset = model->opset_version("");
  for_inner_graphs_first(&model->graph, [&](Graph& graph) {
    if (!ChannelsLast(&graph, opset > 0 ? opset : kNewestOpset).run()) return;
    graph.compact();
    *changed = true;
  });
}

}  // namespace folio
