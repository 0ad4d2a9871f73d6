// Steps over values of any rank.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;

const Held* pick_any(GraphDraw& g) {
  return g.pick([](const Held& held) { return held.rank() > 1; });
}

size_t draw_axis(GraphDraw& g, const Held& x) {
  return static_cast<size_t>(g.draw().below(static_cast<int64_t>(x.rank())));
}
// An axis as nodes name it, from the end here and there.
int64_t named_axis(GraphDraw& g, size_t axis, size_t rank) {
  return static_cast<int64_t>(axis) - (g.draw().one_in(3) ? static_cast<int64_t>(rank) : 0);
}

bool transpose(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  Dims64 perm(x->rank());
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = perm.size() - 1; i > 0; --i) {
    std::swap(perm[i], perm[static_cast<size_t>(g.draw().below(static_cast<int64_t>(i) + 1))]);
  }
  Dims64 dims;
  for (const int64_t axis : perm) dims.push_back(x->dims[static_cast<size_t>(axis)]);
  g.hold(g.node("Transpose", {x->name}, {ints("perm", perm)}), dims);
  return true;
}

// Two neighbouring dims become one, or one two.
bool reshape(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  Dims64 dims = x->dims;
  const size_t axis = draw_axis(g, *x);
  if (x->rank() == 4 || (x->rank() == 3 && g.draw().one_in(3))) {
    if (axis + 1 == x->rank()) return false;
    dims[axis] *= dims[axis + 1];
    dims.erase(dims.begin() + static_cast<int64_t>(axis) + 1);
  } else {
    const int64_t factor = dims[axis] % 4 == 0 ? 4 : 2;
    if (dims[axis] % factor != 0) return false;
    dims[axis] /= factor;
    dims.insert(dims.begin() + static_cast<int64_t>(axis) + g.draw().below(2), factor);
  }
  Dims64 written = dims;
  if (g.draw().one_in(2)) written[static_cast<size_t>(g.draw().below(2))] = -1;
  g.hold(g.node("Reshape", {x->name, g.ints(written)}), dims);
  return true;
}

bool concat(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  const size_t axis = x->rank() == 4 && !g.draw().one_in(3) ? 1 : draw_axis(g, *x);
  Dims64 dims = x->dims;
  std::vector<std::string> names{x->name};
  for (int64_t more = g.between(1, 2); more > 0; --more) {
    const Held* other = g.pick([&](const Held& held) {
      if (held.rank() != x->rank()) return false;
      for (size_t i = 0; i < held.rank(); ++i) {
        if (i != axis && held.dims[i] != x->dims[i]) return false;
      }
      return true;
    });
    dims[axis] += other->dims[axis];  // x itself fits
    names.push_back(other->name);
  }
  if (count_of(dims) > 60000) return false;
  g.hold(g.node("Concat", names, {integer("axis", named_axis(g, axis, x->rank()))}), dims);
  return true;
}

bool split(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  const size_t axis = x->rank() == 4 && !g.draw().one_in(3) ? 1 : draw_axis(g, *x);
  if (x->dims[axis] < 2) return false;
  const int64_t first = g.between(1, x->dims[axis] - 1);
  const Dims64 sizes{first, x->dims[axis] - first};
  const auto names = g.nodes("Split", {x->name, g.ints(sizes)}, 2,
                             {integer("axis", named_axis(g, axis, x->rank()))});
  Dims64 dims = x->dims;
  for (size_t i = 0; i < 2; ++i) {
    dims[axis] = sizes[i];
    g.hold(names[i], dims);
  }
  return true;
}

bool slice(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  const size_t axis = draw_axis(g, *x);
  const int64_t size = x->dims[axis];
  if (size < 2) return false;
  const int64_t step = g.draw().one_in(3) ? 2 : 1;
  const int64_t start = g.draw().below(size - 1);
  const int64_t end = g.between(start + 1, size);
  Dims64 dims = x->dims;
  std::vector<std::string> inputs{x->name};
  if (g.draw().one_in(6)) {  // backwards, all of it
    inputs.insert(inputs.end(), {g.ints({-1}), g.ints({-size - 1})});
    inputs.push_back(g.ints({named_axis(g, axis, x->rank())}));
    inputs.push_back(g.ints({-1}));
  } else {
    dims[axis] = (end - start + step - 1) / step;
    inputs.insert(inputs.end(), {g.ints({start}), g.ints({end == size ? 1 << 30 : end})});
    inputs.push_back(g.ints({named_axis(g, axis, x->rank())}));
    if (step > 1) inputs.push_back(g.ints({step}));
  }
  g.hold(g.node("Slice", inputs), dims);
  return true;
}

bool pad(GraphDraw& g) {
  constexpr const char* kModes[] = {"constant", "constant", "edge", "reflect"};
  const Held* x = pick_any(g);
  if (!x) return false;
  const std::string mode = g.draw().of(kModes);
  const size_t rank = x->rank();
  Dims64 pads(2 * rank, 0);
  Dims64 dims = x->dims;
  for (size_t axis = rank > 2 ? rank - 2 : 1; axis < rank; ++axis) {
    for (const size_t side : {axis, axis + rank}) {
      pads[side] = std::min(g.draw().below(3), x->dims[axis] - 1);
      dims[axis] += pads[side];
    }
  }
  std::vector<std::string> inputs{x->name, g.ints(pads)};
  if (mode == "constant" && g.draw().one_in(2)) {
    inputs.push_back(g.number(g.draw().one_in(2) ? 0 : 0.5));
  }
  g.hold(g.node("Pad", inputs, {AttributeWriter::of_string("mode", mode)}), dims);
  return true;
}

bool reduce(GraphDraw& g) {
  constexpr const char* kTypes[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"};
  const Held* x = g.pick([](const Held& held) { return held.rank() > 2; });
  if (!x) return false;
  const bool keeps = g.draw().one_in(2);
  Dims64 axes;
  Dims64 dims;
  for (size_t axis = 0; axis < x->rank(); ++axis) {
    const bool goes = axis > 0 && g.draw().one_in(2) && (keeps || axes.size() + 2 < x->rank());
    if (goes) axes.push_back(named_axis(g, axis, x->rank()));
    if (!goes || keeps) dims.push_back(goes ? 1 : x->dims[axis]);
  }
  if (axes.empty()) return false;
  g.hold(reduced(g, g.draw().of(kTypes), x->name, axes, keeps), dims);
  return true;
}

bool softmax(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  const size_t axis = draw_axis(g, *x);
  g.hold(g.node("Softmax", {x->name}, {integer("axis", named_axis(g, axis, x->rank()))}), x->dims);
  return true;
}

// Two values, of the same dims or one broadcast.
bool binary(GraphDraw& g) {
  constexpr const char* kTypes[] = {"Add", "Add", "Sub", "Mul", "Max", "Min"};
  const Held* x = pick_any(g);
  if (!x) return false;
  const Held* other = g.pick([&](const Held& held) {
    if (held.rank() > x->rank()) return false;
    for (size_t i = 0; i < held.rank(); ++i) {
      const int64_t dim = held.dims[held.rank() - 1 - i];
      if (dim != 1 && dim != x->dims[x->rank() - 1 - i]) return false;
    }
    return true;
  });
  const std::string type = g.draw().of(kTypes);
  std::string y = g.draw().one_in(2) ? g.node(type, {x->name, other->name})
                                     : g.node(type, {other->name, x->name});
  if (type == "Mul") y = g.node("Clip", {y, g.number(-2), g.number(2)});
  g.hold(y, x->dims);
  return true;
}

bool unsqueeze_squeeze(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  Dims64 dims = x->dims;
  for (size_t i = 0; i < dims.size() && dims.size() > 2; ++i) {
    if (dims[i] != 1) continue;
    dims.erase(dims.begin() + static_cast<int64_t>(i));
    g.hold(g.node("Squeeze", {x->name, g.ints({static_cast<int64_t>(i)})}), dims);
    return true;
  }
  if (x->rank() > 3) return false;
  const int64_t axis = g.draw().below(static_cast<int64_t>(x->rank()) + 1);
  dims.insert(dims.begin() + axis, 1);
  g.hold(g.node("Unsqueeze", {x->name, g.ints({axis})}), dims);
  return true;
}

bool gather(GraphDraw& g) {
  const Held* x = pick_any(g);
  if (!x) return false;
  const size_t axis = draw_axis(g, *x);
  Dims64 dims = x->dims;
  Dims64 indices(static_cast<size_t>(g.between(1, 5)));
  for (int64_t& index : indices) index = g.between(-dims[axis], dims[axis] - 1);
  dims[axis] = static_cast<int64_t>(indices.size());
  g.hold(g.node("Gather", {x->name, g.ints(indices)},
                {integer("axis", named_axis(g, axis, x->rank()))}),
         dims);
  return true;
}

// One of two bodies, by a number that the run finds.
bool branch(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) { return held.rank() > 2 && held.dims[1] < 64; });
  if (!x) return false;
  const Held* other = g.pick([&](const Held& held) { return held.dims == x->dims; });
  const std::string all = g.node("ReduceMax", {x->name}, {integer("keepdims", 0)});
  const std::string condition = g.node("Greater", {all, g.number(g.draw().one_in(2) ? 0.1 : 1)});
  const std::string y = g.branches(condition, x->dims, [&] {
    std::string z = x->name;
    if (x->rank() == 4) {
      const int64_t channels = x->dims[1];
      z = g.node("Conv", {z, g.weight({channels, channels, 1, 1}, 1.5 / std::sqrt(channels))});
    } else {
      const int64_t width = x->dims.back();
      z = g.node("MatMul", {z, g.weight({width, width}, 1.5 / std::sqrt(width))});
    }
    if (g.draw().one_in(2)) z = g.node("Add", {z, other->name});
    return draw_function(g, z, 0);
  });
  g.hold(y, x->dims);
  return true;
}

constexpr Step kSteps[] = {
    branch, transpose, reshape,           concat, concat, split, slice, pad, reduce, softmax,
    binary, binary,    unsqueeze_squeeze, gather};

}  // namespace

std::string reduced(GraphDraw& g, std::string_view type, const std::string& x, const Dims64& axes,
                    bool keeps) {
  const AttributeWriter kept = integer("keepdims", keeps);
  if (g.opset() >= 18) return g.node(type, {x, g.ints(axes)}, {kept});
  return g.node(type, {x}, {ints("axes", axes), kept});
}

Span<const Step> move_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
