// Nodes of com.microsoft.nchwc become those of ai.onnx and com.microsoft on plain images.
//
//   ReorderInput                  [Transpose], Pad by channels that are 0
//   ReorderOutput                 Slice to its channels, [Transpose]
//   Conv                          Conv or FusedConv; the filter is put in order by a recipe
//   MaxPool, AveragePool, Global*Pool   those of ai.onnx
//   Upsample                      Resize or Upsample
//   functions of elements, Concat of channels, Reshapes to [N, C / block, H, W, block] and back
//                                 follow, the Reshapes as nothing
//
// An image in blocks has a twin, the same image [N, C, H, W]: what stands between nodes of the
// domain goes from twin to twin. Where anything else reads such an image, or it is an output of the
// graph, it is put in blocks as ONNX Runtime's memory has it, so that results are the same whatever
// a model does. Channels that were added up to whole blocks stay until ReorderOutput drops them.
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/op_registry.h"
#include "core/passes/nchwc.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr std::string_view kFused = "com.microsoft";
constexpr size_t kRank = 4;  // ONNX Runtime knows blocks of images of two dims alone

// The same image without blocks. `channels`: 0 where the model does not say. `split`: the value in
// blocks has dims that say so, [N, C / block, H, W, block].
struct Twin {
  ValueId value = kNone;
  int64_t channels = 0;
  bool split = false;
};

class TakeNchwc {
 public:
  TakeNchwc(Graph* graph, int opset, int64_t block)
      : graph_(*graph), pattern_(graph), opset_(opset), block_(block) {}

  Status run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    note_filters(nodes);
    for (Node& node : nodes) {
      if (is_nchwc(node)) {
        auto status = take(node);
        if (!status.is_ok()) return std::move(status).with_context(node.label());
      } else if (!follow(node)) {
        Graph::for_each_read(node, [&](ValueId read) { need(read); });
        out_.push_back(std::move(node));
      }
    }
    for (const ValueId output : graph_.outputs) need(output);
    graph_.nodes = std::move(out_);
    graph_.compact();
    return Status::ok();
  }

 private:
  // ------------------------------------------------------------- values

  // How many channels ReorderInput must give, where a convolution says it.
  void note_filters(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (!is_nchwc(node, "Conv") || node.inputs.size() < 2) continue;
      const GraphValue* filter = graph_.constant_value(node.inputs[1]);
      const auto group = node.attributes.get_int("group", 1);
      if (!filter || filter->initializer->shape.rank() != kRank || !group.is_ok()) continue;
      int64_t channels = 0;
      if (!__builtin_mul_overflow(filter->initializer->shape[1], group.value(), &channels)) {
        wanted_channels_.emplace(node.inputs[0], channels);
      }
    }
  }

  ValueId new_value(ValueId like, std::string_view what) {
    return pattern_.add_value(cat(graph_.value(like).name, what), TypeInfo());
  }

  ValueId ints(const std::vector<int64_t>& values) {
    const auto [it, added] = ints_.try_emplace(values, kNone);
    // Of none, the node that reads it says that its input is missing.
    if (added) it->second = pattern_.add_ints("nchwc", values);
    return it->second;
  }

  // Appends a node that gives `to`.
  Node& emit(std::string_view type, std::vector<ValueId> inputs, ValueId to) {
    Node node = make_node(graph_.value(to).name, "", type, opset_, std::move(inputs));
    node.outputs = {to};
    out_.push_back(std::move(node));
    return out_.back();
  }

  ValueId transposed(ValueId from, std::vector<int64_t> perm, ValueId to) {
    emit("Transpose", {from}, to).attributes.set(ints_attribute("perm", std::move(perm)));
    return to;
  }
  ValueId reshaped(ValueId from, const std::vector<int64_t>& dims, ValueId to) {
    emit("Reshape", {from, ints(dims)}, to);
    return to;
  }

  // Its count of channels as a dim of Reshape.
  int64_t blocks_of(int64_t channels) const { return channels > 0 ? channels / block_ : -1; }

  // Somebody reads the value in blocks.
  void need(ValueId id) {
    if (missing_.erase(id) == 0) return;
    const Twin twin = twins_.at(id);
    const ValueId last = transposed(twin.value, {0, 2, 3, 1}, new_value(id, "/nhwc"));
    const ValueId blocks =
        reshaped(last, {0, 0, 0, blocks_of(twin.channels), block_}, new_value(id, "/blocks"));
    if (twin.split) {
      transposed(blocks, {0, 3, 1, 2, 4}, id);
      return;
    }
    const ValueId split = transposed(blocks, {0, 3, 1, 2, 4}, new_value(id, "/split"));
    reshaped(split, {0, twin.channels > 0 ? twin.channels : -1, 0, 0}, id);
  }

  static ValueId input_of(const Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : kNone;
  }

  const Twin* find_twin(ValueId id) const {
    const auto it = twins_.find(id);
    return it == twins_.end() ? nullptr : &it->second;
  }

  // Of a value in blocks that nodes of the domain read; one that no such node made is turned.
  Result<Twin> twin_of(const Node& node, size_t input) {
    const ValueId id = input_of(node, input);
    if (id == kNone) return invalid_graph("input ", input, " is missing");
    if (const Twin* known = find_twin(id); known && !known->split) return *known;
    need(id);
    Twin twin;
    const TypeInfo& type = graph_.value(id).declared;
    if (type.has_rank() && type.rank() == kRank && (*type.dims)[1].is_value()) {
      twin.channels = (*type.dims)[1].value;
      if (twin.channels % block_ != 0) return not_whole("input", twin.channels);
    }
    const std::vector<int64_t> split{0, blocks_of(twin.channels), 0, 0, block_};
    const ValueId blocks = reshaped(id, split, new_value(id, "/split"));
    const ValueId last = transposed(blocks, {0, 2, 3, 1, 4}, new_value(id, "/blocks"));
    const std::vector<int64_t> whole{0, 0, 0, twin.channels > 0 ? twin.channels : -1};
    const ValueId merged = reshaped(last, whole, new_value(id, "/nhwc"));
    twin.value = transposed(merged, {0, 3, 1, 2}, new_value(id, "/nchw"));
    if (!find_twin(id)) twins_[id] = twin;
    return twin;
  }

  Status not_whole(std::string_view what, int64_t channels) const {
    return invalid_graph("the ", what, " has ", channels, " channels, expected whole blocks of ",
                         block_, " (folio.nchwc_block_size)");
  }

  // The twin that a node gives in the place of its output.
  ValueId make_twin(ValueId output, int64_t channels, bool split = false) {
    const ValueId value = new_value(output, "/nchw");
    set_twin(output, {value, channels, split});
    return value;
  }
  void set_twin(ValueId output, Twin twin) {
    twins_[output] = twin;
    missing_.insert(output);
  }

  // ------------------------------------------------------------- nodes of the domain

  Status take(Node& node) {
    struct Rule {
      std::string_view type;
      Status (TakeNchwc::*take)(Node&);
      size_t most_inputs;
    };
    static constexpr Rule kRules[] = {
        {"ReorderInput", &TakeNchwc::take_reorder_input, 1},
        {"ReorderOutput", &TakeNchwc::take_reorder_output, 1},
        {"Conv", &TakeNchwc::take_conv, 4},
        {"MaxPool", &TakeNchwc::take_pool, 1},
        {"AveragePool", &TakeNchwc::take_pool, 1},
        {"GlobalMaxPool", &TakeNchwc::take_pool, 1},
        {"GlobalAveragePool", &TakeNchwc::take_pool, 1},
        {"Upsample", &TakeNchwc::take_upsample, 1},
    };
    for (const Rule& rule : kRules) {
      if (rule.type != node.op_type) continue;
      if (node.version != 1) break;
      if (node.outputs.size() != 1 || node.inputs.empty() ||
          node.inputs.size() > rule.most_inputs) {
        return invalid_graph("has ", node.inputs.size(), " inputs and ", node.outputs.size(),
                             " outputs, expected 1 to ", rule.most_inputs, " and 1");
      }
      return node.outputs[0] == kNone ? Status::ok() : (this->*rule.take)(node);
    }
    out_.push_back(std::move(node));  // check_supported lists it
    return Status::ok();
  }

  // The channels that the input is declared with; 0: it does not say.
  int64_t declared_channels(ValueId id, bool last) const {
    const TypeInfo& type = graph_.value(id).declared;
    if (!type.has_rank() || type.rank() != kRank) return 0;
    const Dim dim = (*type.dims)[last ? kRank - 1 : 1];
    return dim.is_value() ? dim.value : 0;
  }

  Status take_reorder_input(Node& node) {
    FOLIO_TRY(const int64_t last, node.attributes.get_int("channels_last", 0));
    ValueId x = node.inputs[0];
    if (x == kNone) return invalid_graph("input 0 is missing");
    need(x);
    const ValueId y = node.outputs[0];
    const int64_t known = declared_channels(x, last != 0);
    const auto wanted = wanted_channels_.find(y);
    const int64_t whole = known > 0 ? (known + block_ - 1) / block_ * block_
                          : wanted != wanted_channels_.end() ? wanted->second
                                                             : 0;
    if (whole % block_ != 0) return not_whole("filter that reads the output", whole);
    if (last != 0) x = transposed(x, {0, 3, 1, 2}, new_value(y, "/first"));
    // Pools alone read it: ONNX Runtime writes them for whole blocks only.
    if (whole == 0 || whole == known) {
      set_twin(y, {x, whole, false});
      return Status::ok();
    }
    // Where the input's channels are not known, a block is added, and what is too much cut off.
    const int64_t added = known > 0 ? whole - known : block_;
    const ValueId padded = known > 0 ? make_twin(y, whole) : new_value(y, "/padded");
    emit_pad(x, added, padded);
    if (known == 0) emit_slice(padded, whole, make_twin(y, whole));
    return Status::ok();
  }

  void emit_pad(ValueId x, int64_t added, ValueId to) {
    const std::vector<int64_t> pads{0, 0, 0, 0, 0, added, 0, 0};
    if (opset_ >= 11) {
      emit("Pad", {x, ints(pads)}, to);
    } else {
      emit("Pad", {x}, to).attributes.set(ints_attribute("pads", pads));
    }
  }

  void emit_slice(ValueId x, int64_t channels, ValueId to) {
    if (opset_ >= 10) {
      emit("Slice", {x, ints({0}), ints({channels}), ints({1})}, to);
      return;
    }
    Node& slice = emit("Slice", {x}, to);
    slice.attributes.set(ints_attribute("starts", {0}));
    slice.attributes.set(ints_attribute("ends", {channels}));
    slice.attributes.set(ints_attribute("axes", {1}));
  }

  Status take_reorder_output(Node& node) {
    FOLIO_TRY(const int64_t last, node.attributes.get_int("channels_last", 0));
    FOLIO_TRY(const int64_t channels, node.attributes.get_int("channels"));
    FOLIO_TRY(const Twin x, twin_of(node, 0));
    if (channels <= 0 ||
        (x.channels > 0 && (channels > x.channels || x.channels - channels >= block_))) {
      return invalid_graph("attribute 'channels' is ", channels, ", the input has ", x.channels,
                           " channels in blocks of ", block_, " (folio.nchwc_block_size)");
    }
    const ValueId y = node.outputs[0];
    const bool cut = channels != x.channels;
    const ValueId sliced = cut && last != 0 ? new_value(y, "/cut") : cut ? y : x.value;
    if (cut) emit_slice(x.value, channels, sliced);
    if (last != 0) {
      transposed(sliced, {0, 2, 3, 1}, y);
    } else if (!cut) {
      emit("Identity", {x.value}, y);
    }
    return Status::ok();
  }

  struct Filter {
    ValueId value = kNone;
    int64_t outputs = 0;
    bool reads_blocks = true;
  };

  // The filter [M, C / group, kh, kw] in the order that its dims say.
  Result<Filter> filter_of(const Node& node) {
    const ValueId id = input_of(node, 1);
    const GraphValue* value = id == kNone ? nullptr : graph_.constant_value(id);
    if (!value) return invalid_graph("its filter is no constant");
    const Initializer& w = *value->initializer;
    FOLIO_TRY(const int64_t group, node.attributes.get_int("group", 1));
    if (w.dtype != DType::kFloat || w.shape.rank() != kRank || w.shape.count() == 0) {
      return invalid_graph("its filter '", value->name, "' is ", dtype_name(w.dtype), " ",
                           w.shape.to_string(), ", expected float of 4 dims");
    }
    Filter filter;
    filter.outputs = w.shape[0];
    const int64_t inputs = w.shape[1];
    const bool depthwise = group > 1 && inputs == 1 && group == filter.outputs;
    const bool in_both = inputs >= block_;
    filter.reads_blocks = in_both || depthwise;
    if (filter.outputs % block_ != 0) return not_whole("filter's output", filter.outputs);
    if (in_both && inputs % block_ != 0) return not_whole("filter's input", inputs);
    const auto [it, added] = filters_.try_emplace({id, in_both}, kNone);
    if (added) it->second = put_in_order(id, in_both);
    filter.value = it->second;
    return filter;
  }

  // [M / b, C / b, kh, kw, b of C, b of M] or [M / b, C, kh, kw, b of M].
  ValueId put_in_order(ValueId id, bool in_both) {
    const Initializer& w = *graph_.constant_value(id)->initializer;
    const Shape shape = w.shape;
    const std::string name = w.name + "/oihw";
    const auto ordered = [&](const Shape& from, std::vector<int64_t> perm) {
      std::vector<int64_t> dims;
      for (const int64_t axis : perm) dims.push_back(from[static_cast<int>(axis)]);
      const Shape to{Span<const int64_t>(dims)};
      const ValueId split = reshape_recipe(name, id, from);
      Attributes attributes;
      attributes.set(ints_attribute("perm", std::move(perm)));
      const ValueId turned = pattern_.add_recipe(name, "", "Transpose", opset_,
                                                 std::move(attributes), {split}, DType::kFloat, to);
      return reshape_recipe(name, turned, shape);
    };
    const int64_t m = shape[0] / block_;
    if (in_both) {
      return ordered(Shape{m, shape[1] / block_, shape[2], shape[3], block_, block_},
                     {0, 5, 1, 4, 2, 3});
    }
    return ordered(Shape{m, shape[1], shape[2], shape[3], block_}, {0, 4, 1, 2, 3});
  }

  ValueId reshape_recipe(const std::string& name, ValueId from, const Shape& to) {
    const ValueId dims = ints({to.dims().begin(), to.dims().end()});
    return pattern_.add_recipe(name, "", "Reshape", opset_, {}, {from, dims}, DType::kFloat, to);
  }

  Status take_conv(Node& node) {
    FOLIO_TRY(const Filter filter, filter_of(node));
    Node made = make_node(node.name, "", "Conv", opset_, {kNone, filter.value});
    if (filter.reads_blocks) {
      FOLIO_TRY(const Twin x, twin_of(node, 0));
      made.inputs[0] = x.value;
    } else {
      made.inputs[0] = node.inputs[0];
      if (made.inputs[0] != kNone) need(made.inputs[0]);
    }
    if (node.inputs.size() > 2) {
      made.inputs.push_back(node.inputs[2]);
      if (node.inputs[2] != kNone) need(node.inputs[2]);
    }
    const bool adds = node.inputs.size() > 3 && node.inputs[3] != kNone;
    if (adds) {
      FOLIO_TRY(const Twin sum, twin_of(node, 3));
      made.inputs.push_back(sum.value);
    }
    if (adds || node.attributes.has("activation")) {
      made.domain = kFused;
      made.op_type = "FusedConv";
      made.version = 1;
    }
    made.attributes = std::move(node.attributes);
    made.outputs = {make_twin(node.outputs[0], filter.outputs)};
    out_.push_back(std::move(made));
    return Status::ok();
  }

  Status take_pool(Node& node) {
    FOLIO_TRY(const Twin x, twin_of(node, 0));
    Node made = make_node(node.name, "", node.op_type, opset_, {x.value});
    made.attributes = std::move(node.attributes);
    made.outputs = {make_twin(node.outputs[0], x.channels)};
    out_.push_back(std::move(made));
    return Status::ok();
  }

  Status take_upsample(Node& node) {
    FOLIO_TRY(const Twin x, twin_of(node, 0));
    FOLIO_TRY(const std::vector<int64_t> scales, node.attributes.get_ints("scales"));
    FOLIO_TRY(const std::string mode, node.attributes.get_string("mode", "nearest"));
    FOLIO_TRY(const std::string coordinates,
              node.attributes.get_string("coordinate_transformation_mode", "asymmetric"));
    // A float counts no further without gaps, nor would an image.
    constexpr int64_t kMostScale = 1 << 24;
    const bool fits = scales.size() == kRank && scales[0] == 1 && scales[1] == 1 &&
                      std::all_of(scales.begin(), scales.end(),
                                  [](int64_t s) { return s > 0 && s <= kMostScale; });
    if (!fits) {
      return invalid_graph("attribute 'scales' has ", scales.size(),
                           " numbers, expected 1, 1 and two from 1 to ", kMostScale);
    }
    if (opset_ < 9 || (opset_ < 11 && coordinates != "asymmetric")) {
      return not_implemented("Upsample with coordinates ", coordinates, " at opset ", opset_);
    }
    auto allocated = allocate_tensor(DType::kFloat, Shape{static_cast<int64_t>(kRank)});
    FOLIO_TRY(Tensor factors, std::move(allocated));
    std::copy(scales.begin(), scales.end(), factors.data_mut<float>());
    const ValueId y = node.outputs[0];
    const ValueId constant = pattern_.add_constant(node.name + "/scales", std::move(factors));
    const ValueId to = make_twin(y, x.channels);
    Node& made = opset_ >= 11 ? emit("Resize", {x.value, kNone, constant}, to)
                              : emit(opset_ == 10 ? "Resize" : "Upsample", {x.value, constant}, to);
    made.attributes.set(text_attribute("mode", mode));
    if (opset_ >= 11) {
      made.attributes.set(text_attribute("coordinate_transformation_mode", coordinates));
      made.attributes.set(text_attribute("nearest_mode", "floor"));
    }
    return Status::ok();
  }

  // ------------------------------------------------------------- what stands between them

  bool follow(Node& node) {
    if (!node.subgraphs.empty() || node.outputs.size() != 1 || node.outputs[0] == kNone ||
        std::none_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id != kNone && find_twin(id); })) {
      return false;
    }
    if (node.domain.empty() && node.op_type == "Reshape") return follow_reshape(node);
    if (node.domain.empty() && node.op_type == "Concat") return follow_concat(node);
    return follow_elementwise(node);
  }

  // Between [N, C, H, W] and [N, C / block, H, W, block] as the dims say it.
  bool follow_reshape(const Node& node) {
    const Twin* x = find_twin(node.inputs[0]);
    if (node.inputs.size() != 2 || !x || x->channels == 0) return false;
    const auto dims = pattern_.ints(node.inputs[1]);
    const std::vector<int64_t> expected =
        x->split ? std::vector<int64_t>{0, x->channels, 0, 0}
                 : std::vector<int64_t>{0, x->channels / block_, 0, 0, block_};
    const auto keeps = node.attributes.get_int("allowzero", 0);
    if (dims != expected || !keeps.is_ok() || keeps.value() != 0) return false;
    set_twin(node.outputs[0], {x->value, x->channels, !x->split});
    return true;
  }

  bool follow_concat(Node& node) {
    const auto axis = node.attributes.get_int("axis", 1);
    if (!axis.is_ok() || axis.value() != 1) return false;
    int64_t channels = 0;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      const Twin* x = input == kNone ? nullptr : find_twin(input);
      if (!x || x->split || x->channels == 0) return false;
      if (__builtin_add_overflow(channels, x->channels, &channels)) return false;
      inputs.push_back(x->value);
    }
    emit_like(node, std::move(inputs), {kNone, channels, false});
    return true;
  }

  bool follow_elementwise(Node& node) {
    const OpDef* def = op_registry().find(node.domain, node.op_type, node.version);
    // Before opset 7 an axis said where the other operand stands.
    if (!def || !def->elementwise || node.attributes.has("axis")) return false;
    const Twin* first = nullptr;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      const Twin* x = input == kNone ? nullptr : find_twin(input);
      if (!x && input != kNone && !is_one_element(input)) return false;
      if (x && !first) first = x;
      if (x && (x->split != first->split || x->channels != first->channels)) return false;
      inputs.push_back(x ? x->value : input);
    }
    emit_like(node, std::move(inputs), *first);
    return true;
  }

  bool is_one_element(ValueId id) const {
    const GraphValue* value = graph_.constant_value(id);
    if (!value || value->initializer->shape.rank() > static_cast<int>(kRank)) return false;
    const Span<const int64_t> dims = value->initializer->shape.dims();
    return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; });
  }

  void emit_like(Node& node, std::vector<ValueId> inputs, Twin form) {
    const ValueId y = node.outputs[0];
    node.inputs = std::move(inputs);
    node.outputs[0] = make_twin(y, form.channels, form.split);
    out_.push_back(std::move(node));
  }

  Graph& graph_;
  Pattern pattern_;  // for values and constants only: the nodes are on their way to `out_`
  int opset_;
  int64_t block_;
  std::vector<Node> out_;
  std::unordered_map<ValueId, Twin> twins_;
  std::unordered_set<ValueId> missing_;  // values whose twins alone are there
  std::unordered_map<ValueId, int64_t> wanted_channels_;
  std::map<std::pair<ValueId, bool>, ValueId> filters_;  // put in order already
  std::map<std::vector<int64_t>, ValueId> ints_;
};

bool has_nchwc(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return is_nchwc(node) || std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                                         [](const auto& subgraph) { return has_nchwc(*subgraph); });
  });
}

Status take_in(Graph* graph, int opset, int64_t block) {
  for (Node& node : graph->nodes) {
    for (auto& subgraph : node.subgraphs) {
      FOLIO_RETURN_IF_ERROR(take_in(subgraph.get(), opset, block));
    }
  }
  const bool any = std::any_of(graph->nodes.begin(), graph->nodes.end(),
                               [](const Node& node) { return is_nchwc(node); });
  return any ? TakeNchwc(graph, opset, block).run() : Status::ok();
}

}  // namespace

Status take_nchwc(Model* model, int64_t block) {
  if (model->opset_version(kNchwcDomain) == 0 || !has_nchwc(model->graph)) return Status::ok();
  const int opset = model->opset_version("");
  // Before opset 7 operators that are made here had other forms; ONNX Runtime wrote none.
  constexpr int kOldest = 7;
  if (block == 0) block = nchwc_block_size(model->graph);
  return take_in(&model->graph, opset > 0 ? std::max(opset, kOldest) : kNewestOpset, block);
}

}  // namespace folio
