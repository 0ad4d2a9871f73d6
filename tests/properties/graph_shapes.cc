// Steps over dims that nodes compute, as PyTorch's exporter writes them, and what is chosen by
// masks and indices. Choices are made by the input alone, whose numbers no rounding changes, and
// thresholds stand between its thousandths: in float16 it may be rounded or not.
#include <algorithm>
#include <numeric>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;
using model_writer::ElementType;
using model_writer::TensorWriter;

const Held* pick_rank_3(GraphDraw& g) {
  return g.pick([](const Held& held) {
    return held.rank() == 3 && held.dims[1] <= 64 && held.dims[2] <= 64;
  });
}

Sized sized(const Held& x) { return {x.name, x.rank()}; }

std::string filled(GraphDraw& g, const std::string& dims, int64_t value) {
  return g.node("ConstantOfShape", {dims},
                {AttributeWriter::of_tensor(
                    "value", TensorWriter("", ElementType::kInt64, {1}).int64s({value}))});
}

// A number of x's own, changed and changed back.
std::string there_and_back(GraphDraw& g, const std::string& dim) {
  switch (g.draw().below(8)) {
    case 0:
      return g.node("Div", {g.node("Mul", {dim, g.ints({3})}), g.ints({3})});
    case 1:
      return g.node("Sub", {g.node("Add", {g.ints({2}), dim}), g.ints({2})});
    case 2:
      return cast(g, cast(g, dim, ElementType::kInt32), ElementType::kInt64);
    case 3:
      return cast(g, g.node("Floor", {cast(g, dim, ElementType::kFloat)}), ElementType::kInt64);
    default:
      return dim;
  }
}

// [B, S, E] -> [B, S, h, E / h] -> [B, h, S, E / h] here and there.
bool split_heads(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x || x->dims[2] % 4 != 0) return false;
  const int64_t heads = g.draw().one_in(2) ? 2 : 4;
  const int64_t size = x->dims[2] / heads;
  const std::string dims = dims_of(g, sized(*x), {0, 1, -heads, -size});
  const std::string y = g.node("Reshape", {x->name, dims});
  const Dims64 out{x->dims[0], x->dims[1], heads, size};
  if (g.draw().one_in(2)) {
    g.hold(y, out);
  } else {
    g.hold(g.node("Transpose", {y}, {ints("perm", {0, 2, 1, 3})}), {out[0], heads, out[1], size});
  }
  return true;
}

// [B, h, S, d] -> [B, S, h * d].
bool join_heads(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) {
    return held.rank() == 4 && held.dims[1] * held.dims[3] <= 64 && held.dims[2] <= 64;
  });
  if (!x) return false;
  const std::string turned = g.node("Transpose", {x->name}, {ints("perm", {0, 2, 1, 3})});
  const int64_t width = x->dims[1] * x->dims[3];
  const Sized from = g.draw().one_in(2) ? sized(*x) : Sized{turned, 4};
  const int64_t axis = from.name == turned ? 1 : 2;
  const std::string dims = dims_of(g, from, {0, axis, g.draw().one_in(2) ? -width : 64});
  g.hold(g.node("Reshape", {turned, dims}), {x->dims[0], x->dims[2], width});
  return true;
}

// [B, S, E] -> [B * S, E], a product and back.
bool flat_rows(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x) return false;
  const Dims64& d = x->dims;
  std::string rows;
  if (g.draw().one_in(2)) {
    rows = g.node("Mul", {dim_of(g, sized(*x), 0), dim_of(g, sized(*x), 1)});
  } else {
    rows = g.node("Div", {g.node("ReduceProd", {g.node("Shape", {x->name})}),
                          g.node("Gather", {g.node("Shape", {x->name}), g.ints({-1})})});
  }
  const std::string width = g.draw().one_in(2) ? g.ints({d[2]}) : dim_of(g, sized(*x), 2);
  const std::string flat =
      g.node("Reshape", {x->name, g.node("Concat", {rows, width}, {integer("axis", 0)})});
  const int64_t to = g.draw().one_in(2) ? d[2] : g.between(1, 33);
  const std::string y = draw_product(g, flat, d[2], to, true);
  const std::string back = dims_of(g, sized(*x), {0, 1, g.draw().one_in(2) ? -to : 64});
  g.hold(g.node("Reshape", {y, back}), {d[0], d[1], to});
  return true;
}

// A row for all positions; the target as PyTorch has it, where -1 is x's own dim.
bool expand_row(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x) return false;
  std::string dims = dims_of(g, sized(*x), {0, 1, 2});
  if (g.draw().one_in(2)) {
    const std::string ones = filled(g, g.node("Shape", {dims}), 1);
    const std::string minus = g.node("Mul", {ones, g.whole(-1)});
    dims = g.node("Where", {g.node("Equal", {dims, minus}), ones, dims});
  }
  const std::string row = g.weight({1, 1, x->dims[2]}, 0.5);
  const std::string wide = g.node("Expand", {row, dims});
  if (g.draw().one_in(2)) {
    g.hold(g.node("Add", {x->name, wide}), x->dims);
  } else {  // a token in front of all
    const std::string token = g.node("Expand", {row, dims_of(g, sized(*x), {0, -1, -1})});
    g.hold(g.node("Concat", {token, x->name}, {integer("axis", 1)}),
           {x->dims[0], x->dims[1] + 1, x->dims[2]});
  }
  return true;
}

// x + sin(position * frequency), or a table's row for each position.
bool positions(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x || x->dims[1] > 48) return false;
  const std::string at = range_to(g, scalar_of(g, sized(*x), 1));
  if (g.draw().one_in(2)) {
    const std::string row = g.node("Unsqueeze", {at, g.ints({0})});
    const std::string table = g.weight({64, x->dims[2]}, 0.7);
    g.hold(g.node("Add", {x->name, g.node("Gather", {table, row})}), x->dims);
    return true;
  }
  const std::string real_at = cast(g, at, g.element());
  const std::string frequencies = g.weight({x->dims[2]}, 0.3);
  std::string angles;
  if (g.draw().one_in(2)) {
    angles = g.node("Einsum", {real_at, frequencies},
                    {AttributeWriter::of_string("equation", "i,j->ij")});
  } else {
    angles = g.node("Mul", {g.node("Unsqueeze", {real_at, g.ints({1})}), frequencies});
  }
  g.hold(g.node("Add", {x->name, g.node(g.draw().one_in(2) ? "Sin" : "Cos", {angles})}), x->dims);
  return true;
}

// Means of what stands up to each position.
bool cumulative(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  // Before opset 14 there are no sums of float16.
  if (!x || (g.opset() < 14 && g.element() != ElementType::kFloat)) return false;
  const int64_t axis = g.draw().one_in(2) ? 1 : -2;
  Attributes attributes;
  if (g.draw().one_in(3)) attributes.push_back(integer("exclusive", 1));
  if (g.draw().one_in(3)) attributes.push_back(integer("reverse", 1));
  const std::string sums = g.node("CumSum", {x->name, g.whole(axis)}, std::move(attributes));
  const std::string count = cast(g, dim_of(g, sized(*x), 1), g.element());
  g.hold(g.node("Div", {sums, count}), x->dims);
  return true;
}

// The largest along an axis, as they are or as a choice from others.
bool top(GraphDraw& g) {
  const Held& x = g.exact();
  const bool of_tokens = g.draw().one_in(2);
  const size_t axis = of_tokens ? 1 : 2;
  const int64_t most = g.between(1, 4);
  Dims64 dims = x.dims;
  dims[axis] = std::min(most, dims[axis]);
  const std::string count =
      g.node("Min", {dim_of(g, sized(x), static_cast<int64_t>(axis)), g.ints({most})});
  Attributes attributes;
  attributes.push_back(integer("axis", of_tokens ? 1 : -1));
  attributes.push_back(integer("largest", g.draw().below(2)));
  const auto found = g.nodes("TopK", {x.name, count}, 2, std::move(attributes));
  if (g.draw().one_in(2)) {
    g.hold(found[0], dims);
    return true;
  }
  const Held* other = g.pick([&](const Held& held) { return held.dims == x.dims; });
  g.hold(g.node("GatherElements", {other->name, found[1]},
                {integer("axis", static_cast<int64_t>(axis))}),
         dims);
  return true;
}

// The largest element's place chooses a row of a table, by its index or by a row of 0 and 1.
bool embedding_of_largest(GraphDraw& g) {
  const Held& x = g.exact();
  const int64_t width = g.between(1, 4) * 8;
  const std::string table = g.weight({x.dims[2], width}, 1);
  const bool is_least = g.draw().one_in(3);
  const std::string at = g.node(is_least ? "ArgMin" : "ArgMax", {x.name},
                                {integer("axis", -1), integer("keepdims", 0),
                                 integer("select_last_index", g.draw().below(2))});
  const Dims64 dims{x.dims[0], x.dims[1], width};
  if (g.draw().one_in(2)) {
    g.hold(g.node("Gather", {table, at}), dims);
    return true;
  }
  const std::string one = g.node("OneHot", {at, g.ints({x.dims[2]}), g.floats({2}, {0, 1})});
  g.hold(g.node("MatMul", {one, table}), dims);
  return true;
}

// The first entry or two of x's batch change.
bool scatter(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x) return false;
  const std::string first = g.node("Slice", {x->name, g.ints({0}), g.ints({1}), g.ints({0})});
  const std::string changed = draw_function(g, first, 0);
  if (g.draw().one_in(2)) {
    const std::string at = g.node("Reshape", {g.whole(0), g.ints({1, 1})});
    g.hold(g.node("ScatterND", {x->name, at, changed}), x->dims);
    return true;
  }
  const std::string at = filled(g, dims_of(g, sized(*x), {-1, 1, 2}), 0);
  Attributes attributes;
  attributes.push_back(integer("axis", 0));
  // ONNX Runtime does not add float16.
  const bool may_add = g.opset() >= 16 && g.element() == ElementType::kFloat;
  if (may_add && g.draw().one_in(2)) {
    attributes.push_back(AttributeWriter::of_string("reduction", "add"));
  }
  g.hold(g.node("ScatterElements", {x->name, at, changed}, std::move(attributes)), x->dims);
  return true;
}

// A position of each sequence for each of its tokens, where the token's largest element is.
bool gather_positions(GraphDraw& g) {
  const Held& x = g.exact();
  const Held* other = g.pick([&](const Held& held) {
    return held.rank() == 3 && held.dims[0] == x.dims[0] && held.dims[1] == x.dims[1];
  });
  const std::string largest =
      g.node("ArgMax", {x.name}, {integer("axis", 2), integer("keepdims", 1)});
  const std::string at = g.node("Mod", {largest, dim_of(g, sized(*other), 1)});
  const Dims64& d = other->dims;
  if (g.draw().one_in(2)) {
    g.hold(g.node("GatherND", {other->name, at}, {integer("batch_dims", 1)}), d);
    return true;
  }
  const std::string wide = g.node("Expand", {at, dims_of(g, sized(*other), {-1, -1, 2})});
  g.hold(g.node("GatherElements", {other->name, wide}, {integer("axis", 1)}), d);
  return true;
}

// What a mask picks out changes and goes back (`x[mask] = f(x[mask])`), or is added up.
bool masked_places(GraphDraw& g) {
  const Held& x = g.exact();
  const Held* other = g.pick([&](const Held& held) { return held.dims == x.dims; });
  const std::string mask = g.node("Greater", {x.name, g.number(0.1005)});
  const std::string places =
      g.node("Transpose", {g.node("NonZero", {mask})}, {ints("perm", {1, 0})});
  const std::string picked = g.node("GatherND", {other->name, places});
  if (g.draw().one_in(2)) {
    const std::string changed = draw_function(g, picked, 0);
    g.hold(g.node("ScatterND", {other->name, places, changed}), x.dims);
    return true;
  }
  const std::string sum =
      g.node("ReduceSum", {picked, g.ints({0})}, {integer("keepdims", g.draw().below(2))});
  const std::string count = cast(g, g.node("Size", {x.name}), g.element());
  g.hold(g.node("Add", {other->name, g.node("Div", {sum, count})}), x.dims);
  return true;
}

// One of two by what the input is.
bool masked(GraphDraw& g) {
  const Held& x = g.exact();
  const Held* other = g.pick([&](const Held& held) { return held.dims == x.dims; });
  std::string mask = g.node(g.draw().one_in(2) ? "Less" : "Greater", {x.name, g.number(0.2005)});
  if (g.draw().one_in(2)) mask = g.node("Not", {mask});
  if (g.draw().one_in(3)) {
    const std::string all = g.node("Equal", {x.name, x.name});
    mask = g.node(g.draw().one_in(2) ? "And" : "Xor", {mask, all});
  }
  switch (g.draw().below(3)) {
    case 0:
      g.hold(g.node("Where", {mask, other->name, g.number(0.3)}), x.dims);
      break;
    case 1:
      g.hold(g.node("Mul", {other->name, cast(g, mask, g.element())}), x.dims);
      break;
    default:
      g.hold(g.node("Where", {mask, draw_function(g, other->name, 0), other->name}), x.dims);
  }
  return true;
}

bool tile(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x || count_of(x->dims) > 4000) return false;
  const int64_t times = g.between(1, 3);
  if (g.draw().one_in(2)) {
    g.hold(g.node("Tile", {x->name, g.ints({1, times, 1})}),
           {x->dims[0], x->dims[1] * times, x->dims[2]});
    return true;
  }
  // One row as often as there are positions.
  const std::string row = g.node("Slice", {x->name, g.ints({0}), g.ints({1}), g.ints({1})});
  const std::string repeats =
      g.node("Concat", {g.ints({1}), dim_of(g, sized(*x), 1), g.ints({1})}, {integer("axis", 0)});
  g.hold(g.node("Tile", {row, repeats}), x->dims);
  return true;
}

bool einsum(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x) return false;
  const Dims64& d = x->dims;
  const auto sum = [&](std::string_view equation, const std::string& other) {
    return g.node("Einsum", {x->name, other}, {AttributeWriter::of_string("equation", equation)});
  };
  const int64_t to = g.between(1, 24);
  switch (g.draw().below(4)) {
    case 0:
      g.hold(sum("bsd,de->bse", g.weight({d[2], to}, range_for(d[2]))), {d[0], d[1], to});
      break;
    case 1:
      g.hold(sum("bsd,ed->bes", g.weight({to, d[2]}, range_for(d[2]))), {d[0], to, d[1]});
      break;
    case 2:
      g.hold(sum("...d,dhe->...he", g.weight({d[2], 2, to}, range_for(d[2]))), {d[0], d[1], 2, to});
      break;
    default: {
      const std::string s = sum("bid,bjd->bij", x->name);
      g.hold(g.node("Softmax", {s}), {d[0], d[1], d[1]});
    }
  }
  return true;
}

// All but the last position behind a row of zeros, or the last position alone.
bool shift(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x) return false;
  const std::string count = dim_of(g, sized(*x), 1);
  if (g.draw().one_in(2)) {
    const std::string last = g.node("Sub", {count, g.ints({1})});
    g.hold(g.node("Slice", {x->name, last, count, g.ints({1})}), {x->dims[0], 1, x->dims[2]});
    return true;
  }
  const std::string zero = g.node("Sub", {count, count});
  const std::string one = g.node("Div", {count, count});
  const std::string none = g.ints({0});
  const std::string pads =
      g.node("Concat", {none, one, none, none, g.node("Neg", {one}), zero}, {integer("axis", 0)});
  g.hold(g.node("Pad", {x->name, pads}), x->dims);
  return true;
}

// Two halves by a size that is computed, in the other order.
bool halves(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x || x->dims[2] % 2 != 0) return false;
  const std::string half = g.node("Div", {dim_of(g, sized(*x), 2), g.ints({2})});
  const std::string last = g.ints({-1});
  const std::string low = g.node("Slice", {x->name, g.ints({0}), half, last});
  const std::string high = g.node("Slice", {x->name, half, g.ints({int64_t{1} << 62}), last});
  if (g.draw().one_in(2)) {
    g.hold(g.node("Concat", {g.node("Neg", {high}), low}, {integer("axis", -1)}), x->dims);
  } else {
    g.hold(g.node("Mul", {g.node("Sigmoid", {low}), high}),
           {x->dims[0], x->dims[1], x->dims[2] / 2});
  }
  return true;
}

// The mean of the rows that a mask leaves: [B, E].
bool masked_mean(GraphDraw& g) {
  const Held& x = g.exact();
  const Held* other = g.pick([&](const Held& held) {
    return held.rank() == 3 && held.dims[0] == x.dims[0] && held.dims[1] == x.dims[1];
  });
  const std::string first = g.node("Slice", {x.name, g.ints({0}), g.ints({1}), g.ints({2})});
  const std::string mask = cast(g, g.node("Less", {first, g.number(0.6005)}), g.element());
  const std::string axis = g.ints({1});
  const std::string sum =
      g.node("ReduceSum", {g.node("Mul", {other->name, mask}), axis}, {integer("keepdims", 0)});
  const std::string count = g.node("ReduceSum", {mask, axis}, {integer("keepdims", 0)});
  g.hold(g.node("Div", {sum, g.node("Clip", {count, g.number(0.5)})}),
         {other->dims[0], other->dims[2]});
  return true;
}

// Products of one row, on either side.
bool vectors(GraphDraw& g) {
  const Held* x = pick_rank_3(g);
  if (!x) return false;
  const Dims64& d = x->dims;
  std::string row = g.weight({d[2]}, range_for(d[2]));
  if (g.draw().one_in(2)) {
    row = g.node("Gather", {x->name, g.whole(0)}, {integer("axis", 0)});
    row = g.node("Gather", {row, g.whole(-1)}, {integer("axis", 0)});
    row = g.node("Mul", {row, g.number(0.2)});
  }
  std::string y;
  Dims64 dims{d[0], d[1]};
  switch (g.draw().below(3)) {
    case 0:
      dims = {g.between(1, 40)};
      y = draw_product(g, row, d[2], dims[0], g.draw().one_in(2));
      break;
    case 1:
      y = g.node("MatMul", {x->name, row});
      break;
    default:
      y = g.node("MatMul", {row, g.node("Transpose", {x->name}, {ints("perm", {0, 2, 1})})});
  }
  if (g.draw().one_in(2)) y = g.node("Mul", {y, g.number(0.7)});
  g.hold(g.draw().one_in(2) ? draw_function(g, y, 0) : y, dims);
  return true;
}

constexpr Step kSteps[] = {vectors,
                           split_heads,
                           join_heads,
                           flat_rows,
                           expand_row,
                           positions,
                           cumulative,
                           top,
                           embedding_of_largest,
                           scatter,
                           masked,
                           masked_places,
                           gather_positions,
                           tile,
                           einsum,
                           shift,
                           halves,
                           masked_mean,
                           split_heads,
                           join_heads};

}  // namespace

std::string cast(GraphDraw& g, const std::string& x, ElementType type) {
  return g.node("Cast", {x}, {integer("to", static_cast<int64_t>(type))});
}

std::string scalar_of(GraphDraw& g, const Sized& x, int64_t axis) {
  const std::string shape = g.node("Shape", {x.name});
  if (g.draw().one_in(2)) return g.node("Gather", {shape, g.whole(axis)}, {integer("axis", 0)});
  return g.node("Squeeze", {dim_of(g, x, axis)});
}

std::string dim_of(GraphDraw& g, const Sized& x, int64_t axis) {
  const int64_t form = g.draw().below(6);
  if (form == 0 && g.opset() >= 15) {
    Attributes attributes;
    attributes.push_back(integer("start", axis));
    attributes.push_back(integer("end", axis + 1));
    return there_and_back(g, g.node("Shape", {x.name}, std::move(attributes)));
  }
  const std::string shape = g.node("Shape", {x.name});
  if (form == 1) {
    return there_and_back(
        g, g.node("Slice", {shape, g.ints({axis}), g.ints({axis + 1}), g.ints({0})}));
  }
  if (form == 2) return g.node("Gather", {shape, g.ints({axis})});
  if (form == 3) {
    const std::string sizes = g.ints(Dims64(x.rank, 1));
    return g.nodes("Split", {shape, sizes}, x.rank)[static_cast<size_t>(axis)];
  }
  const std::string dim = g.node("Gather", {shape, g.whole(axis)});
  if (form == 4) return g.node("Reshape", {dim, g.ints({-1})});
  return there_and_back(g, g.node("Unsqueeze", {dim, g.ints({0})}));
}

std::string dims_of(GraphDraw& g, const Sized& x, const Dims64& axes) {
  std::vector<std::string> parts;
  for (const int64_t axis : axes) {
    if (axis >= static_cast<int64_t>(x.rank)) {
      parts.push_back(g.ints({-1}));
    } else {
      parts.push_back(axis < 0 ? g.ints({-axis}) : dim_of(g, x, axis));
    }
  }
  return g.node("Concat", parts, {integer("axis", 0)});
}

std::string range_to(GraphDraw& g, const std::string& count) {
  const int64_t form = g.draw().below(4);
  if (form > 1) return g.node("Range", {g.whole(0), count, g.whole(1)});
  const std::string ones = filled(g, g.node("Reshape", {count, g.ints({-1})}), 1);
  if (form == 0) return g.node("Sub", {g.node("CumSum", {ones, g.whole(0)}), g.whole(1)});
  return g.node("Squeeze", {g.node("NonZero", {ones}), g.ints({0})});
}

Span<const Step> shape_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
