// Steps that attend: by parts as exporters spell it, with rotary positions, causal masks, grouped
// heads and a past, and by the operators of com.microsoft and ai.onnx.
#include <cmath>
#include <limits>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;
using model_writer::ElementType;

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr int64_t kPositions = 96;  // rows of tables, more than any sequence has

// [B, S, E] of few positions and whole blocks of 16 columns.
const Held* pick_sequence(GraphDraw& g) {
  return g.pick([](const Held& held) {
    return held.rank() == 3 && held.dims[1] <= 40 && held.dims[2] % 16 == 0 && held.dims[2] <= 64;
  });
}

// Heads of a layer, and x [B, S, E] which it reads.
struct Layer {
  Held x;
  int64_t heads = 0;
  int64_t groups = 0;  // heads of keys and values
  int64_t size = 0;

  int64_t width() const { return heads * size; }
  Sized sized() const { return {x.name, 3}; }
};

Layer layer_of(GraphDraw& g, const Held& x) {
  Layer out{x};
  out.heads = g.draw().one_in(2) ? 2 : 4;
  out.groups = g.draw().one_in(2) ? out.heads : out.heads / 2;
  out.size = g.draw().one_in(2) ? 8 : 16;
  return out;
}

// Query, key and value, [B, S, heads * size] each.
struct Projected {
  std::string q, k, v;
};

Projected project(GraphDraw& g, const Layer& layer) {
  const std::string& x = layer.x.name;
  const int64_t from = layer.x.dims[2];
  const int64_t narrow = layer.groups * layer.size;
  const bool has_bias = g.draw().one_in(2);
  if (g.draw().one_in(2)) {
    return {draw_product(g, x, from, layer.width(), has_bias),
            draw_product(g, x, from, narrow, has_bias), draw_product(g, x, from, narrow, has_bias)};
  }
  const std::string all = draw_product(g, x, from, layer.width() + 2 * narrow, has_bias);
  const auto parts = g.nodes("Split", {all, g.ints({layer.width(), narrow, narrow})}, 3,
                             {integer("axis", g.draw().one_in(2) ? 2 : -1)});
  return {parts[0], parts[1], parts[2]};
}

// [B, S, heads * size] -> [B, heads, S, size].
std::string heads_of(GraphDraw& g, const Layer& layer, const std::string& x, int64_t heads) {
  const std::string dims = g.draw().one_in(2)
                               ? g.ints({0, 0, heads, layer.size})
                               : dims_of(g, layer.sized(), {0, 1, -heads, -layer.size});
  return g.node("Transpose", {g.node("Reshape", {x, dims})}, {ints("perm", {0, 2, 1, 3})});
}

std::string rows_of(GraphDraw& g, const Layer& layer, const std::string& y) {
  const std::string turned = g.node("Transpose", {y}, {ints("perm", {0, 2, 1, 3})});
  const std::string dims = g.draw().one_in(2) ? g.ints({0, 0, layer.width()})
                                              : dims_of(g, layer.sized(), {0, 1, -layer.width()});
  return g.node("Reshape", {turned, dims});
}

// The layer's result, behind its last product.
void finish(GraphDraw& g, const Layer& layer, const std::string& rows) {
  const std::string y = draw_product(g, rows, layer.width(), layer.x.dims[2], g.draw().one_in(2));
  g.hold(g.draw().one_in(2) ? g.node("Add", {layer.x.name, y}) : y, layer.x.dims);
}

// Of cosines or sines, [positions, size / 2], or twice that with the same in both halves.
std::vector<float> angles(double (*f)(double), int64_t size, int64_t halves) {
  std::vector<float> out;
  for (int64_t at = 0; at < kPositions; ++at) {
    for (int64_t i = 0; i < halves * size / 2; ++i) {
      const double turn = std::pow(0.5, static_cast<double>(i % (size / 2)));
      out.push_back(static_cast<float>(f(static_cast<double>(at) * turn)));
    }
  }
  return out;
}

struct Tables {
  std::string cos, sin;
};

Tables tables(GraphDraw& g, int64_t size, int64_t halves) {
  const Dims64 dims{kPositions, halves * size / 2};
  return {g.floats(dims, angles(std::cos, size, halves)),
          g.floats(dims, angles(std::sin, size, halves))};
}

// Position ids: [1, S], or [B, S].
std::string positions_of(GraphDraw& g, const Layer& layer, bool for_all) {
  std::string at = range_to(g, scalar_of(g, layer.sized(), 1));
  if (g.draw().one_in(3)) at = g.node("Add", {at, g.whole(g.between(1, 3))});
  const std::string row = g.node("Unsqueeze", {at, g.ints({0})});
  return for_all ? row : g.node("Expand", {row, dims_of(g, layer.sized(), {0, 1})});
}

// (-second half, first half) of the last dim.
std::string rotate_half(GraphDraw& g, const std::string& x, int64_t size) {
  const int64_t half = size / 2;
  std::string low;
  std::string high;
  if (g.draw().one_in(2)) {
    const auto parts = g.nodes("Split", {x, g.ints({half, half})}, 2, {integer("axis", -1)});
    low = parts[0];
    high = parts[1];
  } else {
    const int64_t axis = g.draw().one_in(2) ? 3 : -1;
    low = g.node("Slice", {x, g.ints({0}), g.ints({half}), g.ints({axis}), g.ints({1})});
    high = g.node("Slice", {x, g.ints({half}), g.ints({std::numeric_limits<int64_t>::max()}),
                            g.ints({axis}), g.ints({1})});
  }
  return g.node("Concat", {g.node("Neg", {high}), low}, {integer("axis", -1)});
}

// x cos + rotate_half(x) sin, of the first `turned` elements of each head.
std::string rotated_by_parts(GraphDraw& g, const Tables& of, const std::string& x,
                             const std::string& at, int64_t size, int64_t turned) {
  std::string part = x;
  std::string rest;
  if (turned < size) {
    const auto parts =
        g.nodes("Split", {x, g.ints({turned, size - turned})}, 2, {integer("axis", 3)});
    part = parts[0];
    rest = parts[1];
  }
  const std::string one = g.ints({1});
  const std::string cos = g.node("Unsqueeze", {g.node("Gather", {of.cos, at}), one});
  const std::string sin = g.node("Unsqueeze", {g.node("Gather", {of.sin, at}), one});
  const std::string y = g.node(
      "Add", {g.node("Mul", {part, cos}), g.node("Mul", {rotate_half(g, part, turned), sin})});
  return rest.empty() ? y : g.node("Concat", {y, rest}, {integer("axis", -1)});
}

// Query and key, [B, heads, S, size] both, at their positions.
void rotate(GraphDraw& g, const Layer& layer, std::string* q, std::string* k) {
  const int64_t turned = g.draw().one_in(3) ? layer.size / 2 : layer.size;
  const int64_t form = g.draw().below(4);
  if (form == 0) return;
  if (form == 1) {
    const Tables of = tables(g, turned, 2);
    const std::string at = positions_of(g, layer, g.draw().one_in(2));
    for (std::string* x : {q, k}) *x = rotated_by_parts(g, of, *x, at, layer.size, turned);
    return;
  }
  const bool is_onnx = form == 2 && g.opset() >= 23;
  const Tables of = tables(g, turned, 1);
  const std::string at = positions_of(g, layer, false);
  const int64_t interleaved = g.draw().below(2);
  for (std::string* x : {q, k}) {
    Attributes attributes;
    attributes.push_back(integer("interleaved", interleaved));
    if (turned < layer.size) {
      attributes.push_back(integer("rotary_embedding_dim", turned));
      if (!is_onnx) attributes.push_back(integer("num_heads", x == q ? layer.heads : layer.groups));
    }
    if (is_onnx) {
      *x = g.node("RotaryEmbedding", {*x, of.cos, of.sin, at}, std::move(attributes));
    } else {
      *x = g.node("RotaryEmbedding", {*x, at, of.cos, of.sin}, std::move(attributes), kMicrosoft);
    }
  }
}

// Keys or values of the positions before: [B, groups, P, size], the same of all sequences or of
// each its own rows; "": none. P is 3 or as many as x has.
std::string past_of(GraphDraw& g, const Layer& layer, bool has_own) {
  if (has_own) {
    const std::string y =
        draw_product(g, layer.x.name, layer.x.dims[2], layer.groups * layer.size, false);
    return heads_of(g, layer, y, layer.groups);
  }
  const std::string row = g.weight({1, layer.groups, 3, layer.size}, 1);
  return g.node("Expand", {row, dims_of(g, layer.sized(), {0, -1, -1, -1})});
}

// [B, groups, T, size] -> [B, heads, T, size], each head as often as others read it.
std::string repeated(GraphDraw& g, const Layer& layer, const std::string& x) {
  if (layer.groups == layer.heads) return x;
  const int64_t times = layer.heads / layer.groups;
  const std::string y = g.node("Unsqueeze", {x, g.ints({2})});
  const Sized at{x, 4};
  const std::string wide =
      g.node("Expand", {y, dims_of(g, at, {0, -layer.groups, -times, 2, -layer.size})});
  return g.node("Reshape", {wide, dims_of(g, at, {0, -layer.heads, 2, -layer.size})});
}

// True where query i of S, at position T - S + i, sees key j of T: [S, T].
std::string causal(GraphDraw& g, const std::string& count, const std::string& total) {
  const std::string before = g.node("Sub", {total, count});
  if (g.opset() >= 14 && g.draw().one_in(2)) {
    const std::string dims = g.node(
        "Concat",
        {g.node("Unsqueeze", {count, g.ints({0})}), g.node("Unsqueeze", {total, g.ints({0})})},
        {integer("axis", 0)});
    const std::string ones = g.node("Expand", {g.whole(1), dims});
    return cast(g, g.node("Trilu", {ones, before}, {integer("upper", 0)}), ElementType::kBool);
  }
  const std::string keys = g.node("Unsqueeze", {range_to(g, total), g.ints({0})});
  const std::string own = g.node("Add", {range_to(g, count), before});
  const std::string queries = g.node("Unsqueeze", {own, g.ints({1})});
  if (g.opset() >= 16 && g.draw().one_in(2)) return g.node("LessOrEqual", {keys, queries});
  return g.node("Not", {g.node("Greater", {keys, queries})});
}

// What hides a key, as a number.
double hidden(GraphDraw& g) {
  constexpr double kNumbers[] = {-1e4, -1e4, -3e38, -HUGE_VAL};
  return g.element() == ElementType::kFloat ? g.draw().of(kNumbers) : -1e4;
}

// 0 where a query sees a key, else a number far below: [S, T].
std::string added_mask(GraphDraw& g, const std::string& sees, double far) {
  if (!std::isinf(far) && g.draw().one_in(2)) {
    const std::string seen = cast(g, sees, g.element());
    return g.node("Mul", {g.node("Sub", {g.term(1), seen}), g.term(far)});
  }
  return g.node("Where", {sees, g.term(0), g.term(far)});
}

std::string masked(GraphDraw& g, const std::string& scores, const std::string& sees) {
  const double far = hidden(g);
  switch (g.draw().below(4)) {
    case 0:
      return g.node("Where", {sees, scores, g.term(far)});
    case 1:
      return g.node("Where", {g.node("Not", {sees}), g.term(far), scores});
    case 2: {
      const std::string mask = g.node("Unsqueeze", {added_mask(g, sees, far), g.ints({0, 1})});
      return g.node("Add", {scores, mask});
    }
    default:
      return g.node("Add", {added_mask(g, sees, far), scores});
  }
}

// softmax(scale q k^T [, masked]) v.
std::string attend(GraphDraw& g, const Layer& layer, const Projected& of, bool has_past) {
  const double scale = 1 / std::sqrt(static_cast<double>(layer.size));
  const std::string turned = g.node("Transpose", {of.k}, {ints("perm", {0, 1, 3, 2})});
  std::string s;
  if (g.draw().one_in(2)) {
    const std::string root = g.term(std::sqrt(scale));
    s = g.node("MatMul", {g.node("Mul", {of.q, root}), g.node("Mul", {turned, root})});
  } else {
    s = g.node("Mul", {g.node("MatMul", {of.q, turned}), g.term(scale)});
  }
  if (g.draw().one_in(5)) {  // soft cap
    const std::string cap = g.term(3);
    s = g.node("Mul", {g.node("Tanh", {g.node("Div", {s, cap})}), cap});
  }
  if (has_past || !g.draw().one_in(4)) {
    s = masked(g, s, causal(g, scalar_of(g, {of.q, 4}, 2), scalar_of(g, {of.k, 4}, 2)));
  }
  std::string weights = g.node("Softmax", {s}, {integer("axis", g.draw().one_in(2) ? -1 : 3)});
  if (g.element() == ElementType::kFloat && g.draw().one_in(5)) {
    weights = g.node("Where", {g.node("IsNaN", {weights}), g.term(0), weights});
  }
  return g.node("MatMul", {weights, of.v});
}

bool attention_by_parts(GraphDraw& g) {
  const Held* x = pick_sequence(g);
  if (!x) return false;
  const Layer layer = layer_of(g, *x);
  Projected of = project(g, layer);
  of.q = heads_of(g, layer, of.q, layer.heads);
  of.k = heads_of(g, layer, of.k, layer.groups);
  of.v = heads_of(g, layer, of.v, layer.groups);
  rotate(g, layer, &of.q, &of.k);
  const bool has_past = g.draw().one_in(2);
  if (has_past) {
    const bool has_own = g.draw().one_in(2);
    for (std::string* part : {&of.k, &of.v}) {
      *part = g.node("Concat", {past_of(g, layer, has_own), *part}, {integer("axis", 2)});
    }
  }
  of.k = repeated(g, layer, of.k);
  of.v = repeated(g, layer, of.v);
  finish(g, layer, rows_of(g, layer, attend(g, layer, of, has_past)));
  return true;
}

// The length of all and the same less one for each sequence, int32, for `past` rows before x's.
struct Lengths {
  std::string each, total;
};
Lengths lengths_of(GraphDraw& g, const Layer& layer, const std::string& past) {
  std::string total = scalar_of(g, layer.sized(), 1);
  if (!past.empty()) total = g.node("Add", {total, scalar_of(g, {past, 4}, 2)});
  const std::string each =
      g.node("Expand", {g.node("Sub", {total, g.whole(1)}), dim_of(g, layer.sized(), 0)});
  return {cast(g, each, ElementType::kInt32), cast(g, total, ElementType::kInt32)};
}

// The cache that an operator gives, [B, groups, T, size], goes on as an output here and there.
void hold_cache(GraphDraw& g, const Layer& layer, const std::string& cache, int64_t past) {
  if (!g.draw().one_in(3)) return;
  g.hold(cache, {layer.x.dims[0], layer.groups, layer.x.dims[1] + past, layer.size});
}

bool grouped_query_attention(GraphDraw& g) {
  const Held* x = pick_sequence(g);
  if (!x) return false;
  Layer layer = layer_of(g, *x);
  const bool rotates = g.draw().one_in(2);
  if (rotates) layer.size = 16;  // ONNX Runtime turns whole eights
  std::vector<std::string> inputs(7);
  if (g.draw().one_in(2)) {
    const Projected of = project(g, layer);
    inputs = {of.q, of.k, of.v, "", "", "", ""};
  } else {
    const int64_t all = layer.width() + 2 * layer.groups * layer.size;
    inputs[0] = draw_product(g, x->name, x->dims[2], all, g.draw().one_in(2));
  }
  // Several new positions behind a past are for a batch of one.
  const bool has_past = (x->dims[0] == 1 || x->dims[1] == 1) && !g.draw().one_in(3);
  const bool has_own = g.draw().one_in(2);
  if (has_past) {
    inputs[3] = past_of(g, layer, has_own);
    inputs[4] = past_of(g, layer, has_own);
  }
  const Lengths lengths = lengths_of(g, layer, inputs[3]);
  inputs[5] = lengths.each;
  inputs[6] = lengths.total;
  Attributes attributes;
  attributes.push_back(integer("num_heads", layer.heads));
  attributes.push_back(integer("kv_num_heads", layer.groups));
  if (rotates) {
    const Tables of = tables(g, layer.size, 1);
    inputs.insert(inputs.end(), {of.cos, of.sin});
    attributes.push_back(integer("do_rotary", 1));
    attributes.push_back(integer("rotary_interleaved", g.draw().below(2)));
  }
  if (g.draw().one_in(3)) attributes.push_back(integer("local_window_size", g.between(1, 6)));
  if (g.draw().one_in(3)) attributes.push_back(real("softcap", 3));
  if (g.draw().one_in(3)) attributes.push_back(real("scale", 0.2));
  if (g.draw().one_in(4)) attributes.push_back(integer("smooth_softmax", 1));
  const auto y = g.nodes("GroupQueryAttention", inputs, 3, std::move(attributes), kMicrosoft);
  const int64_t past = !has_past ? 0 : has_own ? x->dims[1] : 3;
  for (const size_t cache : {1, 2}) hold_cache(g, layer, y[cache], past);
  finish(g, layer, y[0]);
  return true;
}

// A causal mask [1, 1, S, T], to add.
std::string bias_of(GraphDraw& g, const Layer& layer, const std::string& total) {
  const std::string count = scalar_of(g, layer.sized(), 1);
  const std::string mask = added_mask(g, causal(g, count, total), -1e4);
  return g.node("Unsqueeze", {mask, g.ints({0, 1})});
}

bool multi_head_attention(GraphDraw& g) {
  const Held* x = pick_sequence(g);
  if (!x) return false;
  Layer layer = layer_of(g, *x);
  layer.groups = layer.heads;
  const Projected of = project(g, layer);
  std::vector<std::string> inputs{of.q, of.k, of.v, "", "", ""};
  if (g.draw().one_in(3)) inputs[3] = g.weight({3 * layer.width()}, 0.3);
  const bool has_past = g.draw().one_in(3);
  const bool has_own = g.draw().one_in(2);
  std::string total = scalar_of(g, layer.sized(), 1);
  if (has_past) {
    inputs.push_back(past_of(g, layer, has_own));
    inputs.push_back(past_of(g, layer, has_own));
    total = g.node("Add", {total, scalar_of(g, {inputs[6], 4}, 2)});
  }
  if (g.draw().one_in(3)) {  // the first keys of each sequence; int32
    inputs[4] = lengths_of(g, layer, has_past ? inputs[6] : "").each;
    inputs[4] = g.node("Max", {inputs[4], cast(g, g.ints({1}), ElementType::kInt32)});
  }
  if (g.draw().one_in(2)) inputs[5] = bias_of(g, layer, total);
  Attributes attributes;
  attributes.push_back(integer("num_heads", layer.heads));
  if (g.draw().one_in(3)) attributes.push_back(integer("unidirectional", 1));
  if (g.draw().one_in(3)) attributes.push_back(real("scale", 0.2));
  const auto y =
      g.nodes("MultiHeadAttention", inputs, has_past ? 3 : 1, std::move(attributes), kMicrosoft);
  const int64_t past = has_own ? x->dims[1] : 3;
  for (size_t cache = 1; cache < y.size(); ++cache) hold_cache(g, layer, y[cache], past);
  finish(g, layer, y[0]);
  return true;
}

// BERT's: one product of x gives all three.
bool packed_attention(GraphDraw& g) {
  const Held* x = pick_sequence(g);
  if (!x) return false;
  Layer layer = layer_of(g, *x);
  layer.groups = layer.heads;
  const int64_t from = x->dims[2];
  std::vector<std::string> inputs{x->name, g.weight({from, 3 * layer.width()}, range_for(from)),
                                  g.weight({3 * layer.width()}, 0.3)};
  if (g.draw().one_in(3)) {
    const std::string ones = g.node("Expand", {g.whole(1), dims_of(g, layer.sized(), {0, 1})});
    inputs.push_back(cast(g, ones, ElementType::kInt32));
  }
  Attributes attributes;
  attributes.push_back(integer("num_heads", layer.heads));
  if (g.draw().one_in(3)) attributes.push_back(integer("unidirectional", 1));
  finish(g, layer, g.node("Attention", inputs, std::move(attributes), kMicrosoft));
  return true;
}

// ai.onnx Attention, with heads in the last dim or a dim of their own.
bool onnx_attention(GraphDraw& g) {
  const Held* x = pick_sequence(g);
  if (!x || g.opset() < 23) return false;
  const Layer layer = layer_of(g, *x);
  Projected of = project(g, layer);
  const bool is_wide = g.draw().one_in(2);
  Attributes attributes;
  if (is_wide) {
    of.q = heads_of(g, layer, of.q, layer.heads);
    of.k = heads_of(g, layer, of.k, layer.groups);
    of.v = heads_of(g, layer, of.v, layer.groups);
    rotate(g, layer, &of.q, &of.k);
  } else {
    attributes.push_back(integer("q_num_heads", layer.heads));
    attributes.push_back(integer("kv_num_heads", layer.groups));
  }
  std::vector<std::string> inputs{of.q, of.k, of.v, "", "", ""};
  const bool has_past = g.draw().one_in(3);
  const bool has_own = g.draw().one_in(2);
  const std::string count = scalar_of(g, layer.sized(), 1);
  std::string total = count;
  if (has_past) {
    inputs[4] = past_of(g, layer, has_own);
    inputs[5] = past_of(g, layer, has_own);
    total = g.node("Add", {total, scalar_of(g, {inputs[4], 4}, 2)});
  } else if (g.opset() >= 24 && g.draw().one_in(3)) {
    inputs.push_back(g.node("Expand", {count, dim_of(g, layer.sized(), 0)}));
  }
  if (g.draw().one_in(2)) {
    const std::string sees = causal(g, count, total);
    inputs[3] = g.draw().one_in(2) ? sees : added_mask(g, sees, -1e4);
  }
  if (g.draw().one_in(2)) attributes.push_back(integer("is_causal", 1));
  if (g.draw().one_in(3)) attributes.push_back(real("softcap", 3));
  if (g.draw().one_in(3)) attributes.push_back(real("scale", 0.2));
  while (inputs.back().empty()) inputs.pop_back();
  const auto y = g.nodes("Attention", inputs, has_past ? 3 : 1, std::move(attributes));
  const int64_t past = has_own ? x->dims[1] : 3;
  for (size_t cache = 1; cache < y.size(); ++cache) hold_cache(g, layer, y[cache], past);
  finish(g, layer, is_wide ? rows_of(g, layer, y[0]) : y[0]);
  return true;
}

// Means along an axis: [B, h, S, 1] or [B, h, 1, d].
std::string mean_along(GraphDraw& g, const std::string& x, int64_t axis) {
  return reduced(g, "ReduceMean", x, {axis}, true);
}

// Queries of one batch entry or all, keys and values of one head or all, masks of any dims that
// broadcast, and rank 3 with heads and batch in one dim.
bool broadcast_attention(GraphDraw& g) {
  const Held* x = pick_sequence(g);
  if (!x) return false;
  const Held* other = g.pick([&](const Held& held) {
    return held.rank() == 3 && held.dims[0] == x->dims[0] && held.dims[2] == x->dims[2] &&
           held.dims[1] <= 40;
  });
  Layer layer = layer_of(g, *x);
  const bool is_flat = g.draw().one_in(3);
  layer.groups = is_flat || g.draw().one_in(2) ? layer.heads : 1;
  Layer keys = layer;
  keys.x = *other;
  Layer queries = layer;
  if (!is_flat && g.draw().one_in(3)) {
    queries.x.name = g.node("Slice", {x->name, g.ints({0}), g.ints({1}), g.ints({0})});
  }
  Projected of = project(g, keys);
  of.k = heads_of(g, keys, of.k, layer.groups);
  of.v = heads_of(g, keys, of.v, layer.groups);
  of.q = heads_of(g, queries, project(g, queries).q, layer.heads);
  if (is_flat) {
    for (std::string* part : {&of.q, &of.k, &of.v}) {
      const Sized at{*part, 4};
      const std::string first = g.node("Mul", {dim_of(g, at, 0), dim_of(g, at, 1)});
      const std::string rest = dims_of(g, at, {2, -layer.size});
      const std::string dims = g.node("Concat", {first, rest}, {integer("axis", 0)});
      *part = g.node("Reshape", {*part, dims});
    }
  }
  const Dims64 turn = is_flat ? Dims64{0, 2, 1} : Dims64{0, 1, 3, 2};
  const std::string turned = g.node("Transpose", {of.k}, {ints("perm", turn)});
  std::string s = g.node("MatMul", {of.q, turned});
  if (g.draw().one_in(2)) s = g.node("Div", {s, g.term(3)});
  const int64_t form = g.draw().below(4);
  if (form == 1) s = g.node("Add", {s, mean_along(g, turned, -2)});
  if (form == 2) s = g.node("Add", {mean_along(g, of.q, -1), s});
  std::string y = g.node("MatMul", {g.node("Softmax", {s}, {integer("axis", -1)}), of.v});
  if (is_flat) y = g.node("Reshape", {y, dims_of(g, layer.sized(), {0, -layer.heads, 1, 3})});
  finish(g, layer, rows_of(g, layer, y));
  return true;
}

constexpr Step kSteps[] = {broadcast_attention,  broadcast_attention,     attention_by_parts,
                           attention_by_parts,   attention_by_parts,      grouped_query_attention,
                           multi_head_attention, grouped_query_attention, onnx_attention,
                           onnx_attention,       packed_attention};

}  // namespace

Span<const Step> attention_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
