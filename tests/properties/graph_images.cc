// Steps over images [N, C, H, W].
#include <cmath>
#include <limits>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;

constexpr int64_t kMostElements = 60000;

struct Window {
  int64_t kernel[2], stride[2], dilation[2], pads[4];

  int64_t extent(int64_t axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  // Negative: the window does not fit.
  int64_t out(int64_t axis, int64_t in) const {
    const int64_t room = in + pads[axis] + pads[axis + 2] - extent(axis);
    return room < 0 ? -1 : room / stride[axis] + 1;
  }
  Attributes attributes() const {
    return {ints("kernel_shape", {kernel[0], kernel[1]}), ints("strides", {stride[0], stride[1]}),
            ints("pads", {pads[0], pads[1], pads[2], pads[3]})};
  }
};

Window draw_window(GraphDraw& g) {
  constexpr int64_t kSizes[] = {1, 1, 3, 3, 3, 2, 5, 7};
  Window out{};
  const int64_t size = g.draw().of(kSizes);
  const bool is_square = !g.draw().one_in(5);
  const int64_t stride = g.draw().one_in(3) ? 2 : 1;
  const int64_t dilation = g.draw().one_in(8) ? 2 : 1;
  for (int axis = 0; axis < 2; ++axis) {
    out.kernel[axis] = is_square ? size : g.draw().of(kSizes);
    out.stride[axis] = g.draw().one_in(10) ? 3 - stride : stride;
    out.dilation[axis] = dilation;
    const int64_t same = (out.extent(axis) - 1) / 2;
    const bool is_same = !g.draw().one_in(4);
    out.pads[axis] = is_same ? same : g.draw().below(same + 1);
    out.pads[axis + 2] = is_same ? same : g.draw().below(same + 2);
  }
  return out;
}

bool conv(GraphDraw& g) {
  constexpr int64_t kFilters[] = {1, 3, 8, 8, 16, 16, 17, 24, 32, 40};
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const Window window = draw_window(g);
  const int64_t channels = x->dims[1];
  int64_t groups = g.draw().one_in(3) ? channels : 1;
  for (const int64_t each : {2, 4, 8}) {
    if (channels % each == 0 && g.draw().one_in(8)) groups = each;
  }
  const int64_t filters =
      groups == 1 ? g.draw().of(kFilters) : groups * (g.draw().one_in(2) ? 1 : g.between(1, 4));
  const Dims64 dims{x->dims[0], filters, window.out(0, x->dims[2]), window.out(1, x->dims[3])};
  if (dims[2] <= 0 || dims[3] <= 0 || count_of(dims) > kMostElements) return false;
  const int64_t terms = channels / groups * window.kernel[0] * window.kernel[1];
  std::vector<std::string> inputs{
      x->name,
      g.weight({filters, channels / groups, window.kernel[0], window.kernel[1]}, range_for(terms))};
  if (!g.draw().one_in(3)) inputs.push_back(g.weight({filters}, 0.5));
  Attributes attributes = window.attributes();
  attributes.push_back(ints("dilations", {window.dilation[0], window.dilation[1]}));
  attributes.push_back(integer("group", groups));
  std::string y = g.node("Conv", inputs, std::move(attributes));
  if (g.draw().one_in(3)) {  // BatchNormalization
    y = g.node("BatchNormalization",
               {y, g.weight({filters}, 1), g.weight({filters}, 0.3), g.weight({filters}, 0.3),
                g.floats({filters}, std::vector<float>(static_cast<size_t>(filters), 0.7F))});
  }
  const Held* other =
      g.draw().one_in(3) ? g.pick([&](const Held& held) { return held.dims == dims; }) : nullptr;
  if (other)
    y = g.draw().one_in(2) ? g.node("Add", {y, other->name}) : g.node("Add", {other->name, y});
  if (!g.draw().one_in(3)) y = draw_function(g, y, filters);
  g.hold(y, dims);
  return true;
}

// Perhaps beside what a convolution makes of it.
void hold_or_join(GraphDraw& g, const std::string& y, const Dims64& dims) {
  const int64_t filters = g.between(15, 24);
  Dims64 joined = dims;
  joined[1] += filters;
  const bool is_joined = g.draw().one_in(2) && count_of(joined) <= kMostElements;
  if (!is_joined || g.draw().one_in(4)) g.hold(y, dims);
  if (!is_joined) return;
  const std::string other =
      g.node("Conv", {y, g.weight({filters, dims[1], 1, 1}, range_for(dims[1]))});
  const bool is_first = g.draw().one_in(2);
  const std::vector<std::string> parts = {is_first ? y : other, is_first ? other : y};
  g.hold(g.node("Concat", parts, {integer("axis", 1)}), joined);
}

bool conv_transpose(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const int64_t size = g.between(2, 4);
  const int64_t stride = g.between(1, 2);
  const int64_t pad = g.draw().below(2);
  const int64_t groups = x->dims[1] % 2 == 0 && g.draw().one_in(4) ? 2 : 1;
  const int64_t filters = groups * g.between(1, 12);
  Dims64 dims{x->dims[0], filters};
  for (const int axis : {2, 3}) dims.push_back((x->dims[axis] - 1) * stride + size - 2 * pad);
  if (dims[2] <= 0 || dims[3] <= 0 || count_of(dims) > kMostElements) return false;
  std::vector<std::string> inputs{
      x->name, g.weight({x->dims[1], filters / groups, size, size}, range_for(x->dims[1] * 2))};
  if (g.draw().one_in(2)) inputs.push_back(g.weight({filters}, 0.5));
  const std::string y = g.node("ConvTranspose", inputs,
                               {ints("strides", {stride, stride}),
                                ints("pads", {pad, pad, pad, pad}), integer("group", groups)});
  hold_or_join(g, g.draw().one_in(2) ? y : draw_function(g, y, filters), dims);
  return true;
}

bool pool(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  Window window = draw_window(g);
  const Dims64 dims{x->dims[0], x->dims[1], ((window.dilation[0] = 1), window.out(0, x->dims[2])),
                    ((window.dilation[1] = 1), window.out(1, x->dims[3]))};
  if (dims[2] <= 0 || dims[3] <= 0) return false;
  for (const int axis : {0, 1, 2, 3}) {  // at least one pixel in each window
    if (window.pads[axis] >= window.kernel[axis % 2]) return false;
  }
  const bool is_max = g.draw().one_in(2);
  Attributes attributes = window.attributes();
  if (!is_max) attributes.push_back(integer("count_include_pad", g.draw().below(2)));
  g.hold(g.node(is_max ? "MaxPool" : "AveragePool", {x->name}, std::move(attributes)), dims);
  return true;
}

// Squeeze and excite: a gate for each channel.
bool gate(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const int64_t channels = x->dims[1];
  const int64_t inner = g.between(1, 8);
  std::string s = g.draw().one_in(2) ? g.node("GlobalAveragePool", {x->name})
                                     : reduced(g, "ReduceMean", x->name, {2, 3}, true);
  s = g.node("Conv",
             {s, g.weight({inner, channels, 1, 1}, range_for(channels)), g.weight({inner}, 0.5)});
  s = g.node("Relu", {s});
  s = g.node("Conv", {s, g.weight({channels, inner, 1, 1}, range_for(inner))});
  s = g.node(g.draw().one_in(2) ? "Sigmoid" : "HardSigmoid", {s});
  g.hold(g.draw().one_in(2) ? g.node("Mul", {x->name, s}) : g.node("Mul", {s, x->name}), x->dims);
  return true;
}

// One number a channel, or one for all.
bool affine(GraphDraw& g) {
  constexpr const char* kTypes[] = {"Mul", "Add", "Sub", "Div"};
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const int64_t channels = x->dims[1];
  const std::string type = g.draw().of(kTypes);
  Dims64 dims{channels, 1, 1};
  if (g.draw().one_in(3)) dims = {1, channels, 1, 1};
  if (g.draw().one_in(3)) dims = {};
  std::vector<float> values(static_cast<size_t>(count_of(dims)));
  for (float& value : values) value = 0.5F + static_cast<float>(g.draw().below(100)) / 100;
  const std::string other = g.floats(dims, values);
  const bool is_first = g.draw().one_in(3) && type != "Div";
  g.hold(is_first ? g.node(type, {other, x->name}) : g.node(type, {x->name, other}), x->dims);
  return true;
}

bool resize(GraphDraw& g) {
  constexpr const char* kPlaces[] = {"asymmetric", "half_pixel", "align_corners",
                                     "pytorch_half_pixel"};
  const Held* x = g.pick_rank(4);
  if (!x || count_of(x->dims) > 8000) return false;
  const bool is_nearest = g.draw().one_in(2);
  const std::string place = is_nearest ? "asymmetric" : g.draw().of(kPlaces);
  const int64_t times = g.between(1, 2);
  Dims64 dims = x->dims;
  dims[2] *= 2;
  dims[3] *= times;
  Attributes attributes;
  attributes.push_back(AttributeWriter::of_string("mode", is_nearest ? "nearest" : "linear"));
  attributes.push_back(AttributeWriter::of_string("coordinate_transformation_mode", place));
  if (is_nearest) attributes.push_back(AttributeWriter::of_string("nearest_mode", "floor"));
  const std::string scales = g.full_floats({4}, {1, 1, 2, static_cast<float>(times)});
  std::vector<std::string> inputs{x->name, "", scales};
  if (g.draw().one_in(2)) inputs = {x->name, "", "", g.ints(dims)};
  const std::string y = g.node("Resize", inputs, std::move(attributes));
  hold_or_join(g, y, dims);
  return true;
}

bool shuffle(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) {
    return held.rank() == 4 && held.dims[1] % 2 == 0 && held.dims[1] > 2;
  });
  if (!x) return false;
  const Dims64& d = x->dims;
  std::string y = g.node("Reshape", {x->name, g.ints({d[0], 2, d[1] / 2, d[2], d[3]})});
  y = g.node("Transpose", {y}, {ints("perm", {0, 2, 1, 3, 4})});
  g.hold(g.node("Reshape", {y, g.ints({d[0], g.draw().one_in(2) ? -1 : d[1], d[2], d[3]})}), d);
  return true;
}

bool depth_to_space(GraphDraw& g) {
  const Held* x =
      g.pick([](const Held& held) { return held.rank() == 4 && held.dims[1] % 4 == 0; });
  if (!x) return false;
  const Dims64& d = x->dims;
  g.hold(g.node("DepthToSpace", {x->name},
                {integer("blocksize", 2),
                 AttributeWriter::of_string("mode", g.draw().one_in(2) ? "CRD" : "DCR")}),
         {d[0], d[1] / 4, d[2] * 2, d[3] * 2});
  return true;
}

// All four phases of an image, as YOLO's "Focus" takes them.
bool focus(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) {
    return held.rank() == 4 && held.dims[2] % 2 == 0 && held.dims[3] % 2 == 0;
  });
  if (!x) return false;
  const Dims64& d = x->dims;
  const Dims64 dims{d[0], d[1] * 4, d[2] / 2, d[3] / 2};
  const int64_t filters = g.between(12, 24);
  if (filters * dims[2] * dims[3] * d[0] > kMostElements || dims[1] > 64) return false;
  std::vector<std::string> phases;
  for (const auto& [row, column] : {std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}}) {
    std::string part = x->name;
    for (const auto& [axis, start] : {std::pair(2, row), {3, column}}) {
      part = g.node("Slice", {part, g.ints({start}), g.ints({d[static_cast<size_t>(axis)]}),
                              g.ints({axis}), g.ints({2})});
    }
    phases.push_back(part);
  }
  const std::string joined = g.node("Concat", phases, {integer("axis", 1)});
  const std::string y =
      g.node("Conv", {joined, g.weight({filters, dims[1], 3, 3}, range_for(dims[1] * 9))},
             {ints("pads", {1, 1, 1, 1})});
  g.hold(draw_function(g, y, filters), {d[0], filters, dims[2], dims[3]});
  return true;
}

// As PyTorch's exporter writes group normalization.
void normalize_groups(GraphDraw& g, const std::string& x, const Dims64& dims) {
  const int64_t channels = dims[1];
  const int64_t groups = channels % 2 == 0 && g.draw().one_in(2) ? 2 : 1;
  const std::string flat = g.node("Reshape", {x, g.ints({0, groups, -1})});
  const std::string normal =
      g.node("InstanceNormalization",
             {flat, g.floats({groups}, std::vector<float>(static_cast<size_t>(groups), 1)),
              g.floats({groups}, std::vector<float>(static_cast<size_t>(groups), 0))},
             {AttributeWriter::of_float("epsilon", 0.1F)});
  std::string y = g.node("Reshape", {normal, g.ints({0, channels, dims[2], dims[3]})});
  y = g.node("Mul", {y, g.weight({channels, 1, 1}, 1)});
  g.hold(g.node("Add", {y, g.weight({channels, 1, 1}, 0.3)}), dims);
}

bool normalize(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const int64_t channels = x->dims[1];
  if (g.draw().one_in(3)) {
    normalize_groups(g, x->name, x->dims);
    return true;
  }
  if (g.draw().one_in(2)) {
    g.hold(g.node("BatchNormalization",
                  {x->name, g.weight({channels}, 1), g.weight({channels}, 0.3),
                   g.weight({channels}, 0.3),
                   g.floats({channels}, std::vector<float>(static_cast<size_t>(channels), 0.7F))}),
           x->dims);
    return true;
  }
  g.hold(
      g.node("InstanceNormalization", {x->name, g.weight({channels}, 1), g.weight({channels}, 0.3)},
             {AttributeWriter::of_float("epsilon", 0.1F)}),
      x->dims);
  return true;
}

bool functions(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  g.hold(draw_function(g, x->name, x->dims[1]), x->dims);
  return true;
}

// Turned to channels last, where something is added, and back.
bool turned(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const Dims64& d = x->dims;
  std::string y = g.node("Transpose", {x->name}, {ints("perm", {0, 2, 3, 1})});
  if (g.draw().one_in(2)) y = g.node("Add", {y, g.weight({d[1]}, 0.5)});
  if (g.draw().one_in(2)) y = draw_function(g, y, 0);
  if (g.draw().one_in(3)) y = g.node("Softmax", {y}, {integer("axis", g.between(-1, 3))});
  if (g.draw().one_in(3)) {
    g.hold(y, {d[0], d[2], d[3], d[1]});
    return true;
  }
  g.hold(g.node("Transpose", {y}, {ints("perm", {0, 3, 1, 2})}), d);
  return true;
}

// Convolutions, a pool or the image itself beside each other, joined along the channels; what one
// of them makes may be read elsewhere.
bool branches(GraphDraw& g) {
  constexpr int64_t kFilters[] = {5, 16, 16, 17, 24, 32};
  const Held* held = g.pick_rank(4);
  if (!held) return false;
  const Held x = *held;
  const int64_t count = g.between(2, 4);
  std::vector<std::string> parts;
  Dims64 dims = x.dims;
  dims[1] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t kind = g.draw().below(8);
    if (kind == 0) {
      parts.push_back(x.name);
      dims[1] += x.dims[1];
      continue;
    }
    if (kind == 1) {
      parts.push_back(
          g.node("MaxPool", {x.name}, {ints("kernel_shape", {3, 3}), ints("pads", {1, 1, 1, 1})}));
      dims[1] += x.dims[1];
      continue;
    }
    const int64_t filters = g.draw().of(kFilters);
    const int64_t size = g.draw().one_in(3) ? 3 : 1;
    const int64_t pad = size / 2;
    const std::string y = g.node(
        "Conv", {x.name, g.weight({filters, x.dims[1], size, size}, range_for(x.dims[1] * size))},
        {ints("pads", {pad, pad, pad, pad})});
    parts.push_back(g.draw().one_in(4) ? y : draw_function(g, y, filters));
    dims[1] += filters;
    if (g.draw().one_in(6)) g.hold(parts.back(), {dims[0], filters, dims[2], dims[3]});
  }
  if (count_of(dims) > kMostElements) return true;  // what is held stays
  g.hold(g.node("Concat", parts, {integer("axis", 1)}), dims);
  return true;
}

// What a layer of a block makes of `from`: products, filters over one channel each, or two of them,
// and perhaps what it was added to.
Held layer_of_block(GraphDraw& g, const Held& from) {
  constexpr int64_t kFilters[] = {16, 16, 20, 24, 32};
  const auto conv = [&](const Held& x, int64_t filters, int64_t size, int64_t group) {
    const int64_t channels = x.dims[1] / group;
    const std::string w = g.weight({filters, channels, size, size}, range_for(channels * size));
    const std::string y =
        g.node("Conv", {x.name, w},
               {ints("pads", {size / 2, size / 2, size / 2, size / 2}), integer("group", group)});
    return Held{g.draw().one_in(4) ? y : draw_function(g, y, filters),
                {x.dims[0], filters, x.dims[2], x.dims[3]}};
  };
  const int64_t size = g.draw().one_in(2) ? 3 : 1;
  const int64_t channels = from.dims[1];
  if (g.draw().one_in(4)) return conv(from, channels, 3, channels);
  Held y = conv(from, g.draw().one_in(2) ? channels : g.draw().of(kFilters), size, 1);
  if (g.draw().one_in(3)) y = conv(y, y.dims[1], 3, y.dims[1]);
  if (y.dims[1] == channels && g.draw().one_in(2)) {
    y.name = g.draw().one_in(2) ? g.node("Add", {y.name, from.name})
                                : g.node("Add", {from.name, y.name});
  }
  return y;
}

Held joined_channels(GraphDraw& g, const std::vector<Held>& parts) {
  std::vector<std::string> names;
  Dims64 dims = parts[0].dims;
  dims[1] = 0;
  for (const Held& part : parts) {
    names.push_back(part.name);
    dims[1] += part.dims[1];
  }
  return {g.node("Concat", names, {integer("axis", 1)}), dims};
}

// Blocks as YOLO, ELAN, DenseNet and GhostNet have them: layers that read channels of an image, or
// of all that was made before, which is joined.
bool block(GraphDraw& g) {
  const Held* held = g.pick_rank(4);
  if (!held || 8 * count_of(held->dims) > kMostElements || held->dims[1] < 2) return false;
  const Held x = *held;
  const int64_t all = x.dims[1];
  std::vector<Held> parts{x};
  if (g.draw().one_in(2)) {
    const int64_t first = g.between(1, all - 1);
    const auto names =
        g.nodes("Split", {x.name, g.ints({first, all - first})}, 2, {integer("axis", 1)});
    parts = {{names[0], {x.dims[0], first, x.dims[2], x.dims[3]}},
             {names[1], {x.dims[0], all - first, x.dims[2], x.dims[3]}}};
  }
  for (int64_t layers = g.between(1, 3); layers > 0; --layers) {
    const bool reads_all = parts.size() > 1 && g.draw().one_in(3);
    const Held from = reads_all ? joined_channels(g, parts) : parts.back();
    parts.push_back(layer_of_block(g, from));
  }
  if (g.draw().one_in(4)) std::swap(parts.front(), parts.back());
  if (g.draw().one_in(8)) parts.push_back(parts[0]);
  if (g.draw().one_in(6)) g.hold(parts[1].name, parts[1].dims);
  const Held y = joined_channels(g, parts);
  if (count_of(y.dims) <= kMostElements) g.hold(y.name, y.dims);
  return true;
}

// Something around an image that a pool is to see.
bool padded_pool(GraphDraw& g) {
  constexpr float kValues[] = {0, 0, -1, 0.5F, -std::numeric_limits<float>::infinity()};
  const Held* x = g.pick_rank(4);
  if (!x || x->dims[2] < 2 || x->dims[3] < 2) return false;
  const Dims64 pads{0, 0, g.draw().below(2), g.draw().below(2),
                    0, 0, g.draw().below(3), g.draw().below(2)};
  const bool is_max = !g.draw().one_in(3);
  const float value = is_max ? g.draw().of(kValues) : 0;
  const std::string from = g.draw().one_in(2) ? x->name : g.node("Relu", {x->name});
  const std::string padded = g.node("Pad", {from, g.ints(pads), g.floats({}, {value})});
  const int64_t size = g.between(2, 3);
  Dims64 dims = x->dims;
  for (const size_t axis : {2, 3}) dims[axis] += pads[axis] + pads[axis + 4] - size + 1;
  if (dims[2] <= 0 || dims[3] <= 0) return false;
  Attributes attributes{ints("kernel_shape", {size, size})};
  if (!is_max) attributes.push_back(integer("count_include_pad", g.draw().below(2)));
  const std::string y = g.node(is_max ? "MaxPool" : "AveragePool", {padded}, std::move(attributes));
  g.hold(g.node("Clip", {y, g.floats({}, {-50})}), dims);  // what is all border is no infinity
  return true;
}

// Channels of a constant, or a number for each place.
bool beside_constant(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const Dims64& d = x->dims;
  if (g.draw().one_in(2)) {
    const int64_t channels = g.between(1, 5);
    const std::string constant = g.weight({d[0], channels, d[2], d[3]}, 0.5);
    const bool is_first = g.draw().one_in(2);
    const std::vector<std::string> parts = {is_first ? constant : x->name,
                                            is_first ? x->name : constant};
    g.hold(g.node("Concat", parts, {integer("axis", 1)}), {d[0], d[1] + channels, d[2], d[3]});
    return true;
  }
  Dims64 dims{g.draw().one_in(2) ? d[1] : 1, d[2], d[3]};
  if (g.draw().one_in(2)) dims.insert(dims.begin(), 1);
  g.hold(g.node(g.draw().one_in(2) ? "Add" : "Mul", {x->name, g.weight(dims, 0.7)}), d);
  return true;
}

// Pixels as the tokens of a transformer, or of a detector's head, and perhaps back.
bool tokens(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  const Dims64 d = x->dims;
  const int64_t batch = g.draw().one_in(2) ? 0 : d[0];
  std::string y = g.node("Reshape", {x->name, g.ints({batch, d[1], -1})});
  if (g.draw().one_in(4)) {
    g.hold(y, {d[0], d[1], d[2] * d[3]});
    return true;
  }
  y = g.node("Transpose", {y}, {ints("perm", {0, 2, 1})});
  if (g.draw().one_in(2)) y = g.node("MatMul", {y, g.weight({d[1], d[1]}, range_for(d[1]))});
  if (g.draw().one_in(3)) {
    g.hold(y, {d[0], d[2] * d[3], d[1]});
    return true;
  }
  y = g.node("Transpose", {y}, {ints("perm", {0, 2, 1})});
  g.hold(g.node("Reshape", {y, g.ints({batch, d[1], d[2], d[3]})}), d);
  return true;
}

bool across_channels(GraphDraw& g) {
  const Held* x = g.pick_rank(4);
  if (!x) return false;
  g.hold(g.node("LRN", {x->name},
                {integer("size", 2 * g.between(0, 2) + 1), real("alpha", 0.3), real("bias", 1.5),
                 real("beta", g.draw().one_in(3) ? 0.5 : 0.75)}),
         x->dims);
  return true;
}

constexpr Step kSteps[] = {conv,
                           conv,
                           conv,
                           conv,
                           conv,
                           conv,
                           pool,
                           gate,
                           affine,
                           resize,
                           shuffle,
                           depth_to_space,
                           focus,
                           turned,
                           conv_transpose,
                           normalize,
                           functions,
                           branches,
                           branches,
                           padded_pool,
                           beside_constant,
                           tokens,
                           across_channels,
                           block,
                           block};

}  // namespace

Span<const Step> image_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
