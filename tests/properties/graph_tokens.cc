// Steps over rows: products, norms and attention.
#include <cmath>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;

const Held* pick_rows(GraphDraw& g) {
  return g.pick([](const Held& held) {
    return held.rank() >= 2 && held.rank() <= 3 && held.dims.back() > 1;
  });
}

bool dense(GraphDraw& g) {
  constexpr int64_t kWidths[] = {1, 7, 16, 16, 24, 32, 32, 48};
  const Held* x = pick_rows(g);
  if (!x) return false;
  Dims64 dims = x->dims;
  dims.back() = g.draw().of(kWidths);
  std::string y = draw_product(g, x->name, x->dims.back(), dims.back(), !g.draw().one_in(3));
  if (g.draw().one_in(2)) y = draw_function(g, y, 0);
  if (dims == x->dims && g.draw().one_in(2)) y = g.node("Add", {x->name, y});
  g.hold(y, dims);
  return true;
}

bool gemm(GraphDraw& g) {
  const Held* x = g.pick_rank(2);
  if (!x) return false;
  const bool turns_a = g.draw().one_in(4);
  const bool turns_b = g.draw().one_in(2);
  const int64_t rows = x->dims[turns_a ? 1 : 0];
  const int64_t depth = x->dims[turns_a ? 0 : 1];
  const int64_t width = g.between(1, 40);
  std::vector<std::string> inputs{
      x->name, g.weight(turns_b ? Dims64{width, depth} : Dims64{depth, width}, range_for(depth))};
  if (g.draw().one_in(2)) inputs.push_back(g.weight({width}, 0.5));
  Attributes attributes;
  attributes.push_back(integer("transA", turns_a));
  attributes.push_back(integer("transB", turns_b));
  if (g.draw().one_in(3)) attributes.push_back(AttributeWriter::of_float("alpha", 0.5F));
  if (g.draw().one_in(3)) attributes.push_back(AttributeWriter::of_float("beta", 2));
  const std::string y = g.node("Gemm", inputs, std::move(attributes));
  g.hold(g.draw().one_in(2) ? y : draw_function(g, y, 0), {rows, width});
  return true;
}

bool scores(GraphDraw& g) {
  const Scores s = draw_scores(g);
  if (s.name.empty()) return false;
  std::string y = g.node("Mul", {s.name, g.term(1 / std::sqrt(static_cast<double>(s.width)))});
  if (g.draw().one_in(2)) y = g.node("Softmax", {y}, {integer("axis", -1)});
  g.hold(y, s.dims);
  return true;
}

std::string mean_of(GraphDraw& g, const std::string& x) {
  return reduced(g, "ReduceMean", x, {-1}, true);
}

// (x - mean) / sqrt(variance + epsilon) by parts; without mean where `centers` is not set.
std::string norm_by_parts(GraphDraw& g, const std::string& x, bool centers) {
  std::string d = x;
  if (centers) d = g.node("Sub", {x, mean_of(g, x)});
  const std::string square =
      g.draw().one_in(2) ? g.node("Pow", {d, g.term(2)}) : g.node("Mul", {d, d});
  const std::string variance = mean_of(g, square);
  const std::string root = g.node("Sqrt", {g.node("Add", {variance, g.term(0.1)})});
  if (g.draw().one_in(2)) return g.node("Div", {d, root});
  return g.node("Mul", {d, g.node("Reciprocal", {root})});
}

bool norm(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  const int64_t width = x->dims.back();
  std::string in = x->name;
  const Held* other =
      g.draw().one_in(2) ? g.pick([&](const Held& held) { return held.dims == x->dims; }) : nullptr;
  if (other && other != x) in = g.node("Add", {x->name, other->name});
  if (g.opset() >= 17 && g.draw().one_in(3)) {
    g.hold(g.node("LayerNormalization", {in, g.weight({width}, 1), g.weight({width}, 0.3)},
                  {AttributeWriter::of_float("epsilon", 0.1F), integer("axis", -1)}),
           x->dims);
    return true;
  }
  std::string y = norm_by_parts(g, in, g.draw().one_in(2));
  const std::string scale = g.weight({width}, 1);
  y = g.draw().one_in(2) ? g.node("Mul", {y, scale}) : g.node("Mul", {scale, y});
  if (g.draw().one_in(2)) y = g.node("Add", {y, g.weight({width}, 0.3)});
  g.hold(y, x->dims);
  return true;
}

// [B, S, heads * size] -> [B, heads, S, size].
std::string heads_of(GraphDraw& g, const std::string& x, const Dims64& d, int64_t heads) {
  const std::string y = g.node("Reshape", {x, g.ints({0, 0, heads, d[2] / heads})});
  return g.node("Transpose", {y}, {ints("perm", {0, 2, 1, 3})});
}

bool attention(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) {
    return held.rank() == 3 && held.dims[2] % 4 == 0 && held.dims[1] <= 64;
  });
  if (!x) return false;
  const Dims64& d = x->dims;
  const int64_t heads = d[2] % 8 == 0 ? g.between(1, 2) * 2 : 2;
  const double scale = 1 / std::sqrt(static_cast<double>(d[2] / heads));
  std::string q = heads_of(g, draw_product(g, x->name, d[2], d[2], true), d, heads);
  std::string k = heads_of(g, draw_product(g, x->name, d[2], d[2], true), d, heads);
  const std::string v = heads_of(g, draw_product(g, x->name, d[2], d[2], true), d, heads);
  k = g.node("Transpose", {k}, {ints("perm", {0, 1, 3, 2})});
  const int64_t place = g.draw().below(3);
  if (place == 0) q = g.node("Mul", {q, g.term(scale)});
  if (place == 1) {
    q = g.node("Mul", {q, g.term(std::sqrt(scale))});
    k = g.node("Mul", {k, g.term(std::sqrt(scale))});
  }
  std::string s = g.node("MatMul", {q, k});
  if (place == 2) s = g.node("Div", {s, g.term(1 / scale)});
  if (g.draw().one_in(2)) s = g.node("Add", {s, g.weight({1, 1, d[1], d[1]}, 2)});
  s = g.node("Softmax", {s}, {integer("axis", g.draw().one_in(2) ? -1 : 3)});
  std::string y = g.node("MatMul", {s, v});
  y = g.node("Transpose", {y}, {ints("perm", {0, 2, 1, 3})});
  y = g.node("Reshape", {y, g.ints({0, 0, d[2]})});
  y = draw_product(g, y, d[2], d[2], true);
  if (g.draw().one_in(2)) y = g.node("Add", {x->name, y});
  g.hold(y, d);
  return true;
}

// Weights of float16, of 64 KiB and more as floats, that a Cast widens; turned before or after it.
bool half_dense(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  const int64_t depth = x->dims.back();
  const int64_t width = 16400 / depth + g.between(1, 40);
  if (width > 1200) return false;
  Dims64 dims = x->dims;
  dims.back() = width;
  const AttributeWriter to_float = integer("to", static_cast<int64_t>(g.element()));
  std::string w;
  const int64_t form = g.draw().below(3);
  if (form == 0) {
    w = g.node("Cast", {g.half_weight({depth, width}, range_for(depth))}, {to_float});
  } else {
    w = g.half_weight({width, depth}, range_for(depth));
    if (form == 1) w = g.node("Transpose", {w}, {ints("perm", {1, 0})});
    w = g.node("Cast", {w}, {to_float});
    if (form == 2) w = g.node("Transpose", {w}, {ints("perm", {1, 0})});
  }
  std::string y = g.node("MatMul", {x->name, w});
  y = maybe_biased(g, y, width);
  if (g.draw().one_in(2)) y = draw_function(g, y, 0);
  g.hold(y, dims);
  return true;
}

// Weights of 4 or 8 bits in blocks.
bool block_dense(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  Dims64 dims = x->dims;
  dims.back() = g.between(1, 40);
  g.hold(block_product(g, x->name, x->dims.back(), dims.back()), dims);
  return true;
}

// Weights of 4 bits that DequantizeLinear widens, in blocks or not, turned or not.
bool narrow_dense(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x || g.opset() < 21) return false;
  const int64_t depth = x->dims.back();
  const int64_t width = g.between(1, 20) * 2;  // whole bytes
  const bool is_turned = g.draw().one_in(2);
  const bool is_signed = g.draw().one_in(2);
  const int64_t block = g.draw().one_in(2) && depth % 16 == 0 ? 16 : depth;
  const Dims64 dims = is_turned ? Dims64{width, depth} : Dims64{depth, width};
  if (count_of(dims) % 2 != 0) return false;
  const int64_t blocks = depth / block;
  const Dims64 scales = is_turned ? Dims64{width, blocks} : Dims64{blocks, width};
  const auto type =
      is_signed ? model_writer::ElementType::kInt4 : model_writer::ElementType::kUint4;
  std::vector<std::string> inputs{g.codes(dims, -128, 127, type)};
  Attributes attributes;
  if (block == depth) {
    inputs.push_back(g.weight({width}, range_for(depth) / 4));
    attributes.push_back(integer("axis", is_turned ? 0 : 1));
    if (g.draw().one_in(2)) inputs.push_back(g.codes({width}, -128, 127, type));
  } else {
    inputs.push_back(g.weight(scales, range_for(depth) / 4));
    attributes.push_back(integer("axis", is_turned ? 1 : 0));
    attributes.push_back(integer("block_size", block));
    if (g.draw().one_in(2)) inputs.push_back(g.codes(scales, -128, 127, type));
  }
  std::string w = g.node("DequantizeLinear", inputs, std::move(attributes));
  if (is_turned) w = g.node("Transpose", {w}, {ints("perm", {1, 0})});
  std::string y = g.node("MatMul", {x->name, w});
  y = maybe_biased(g, y, width);
  Dims64 out = x->dims;
  out.back() = width;
  g.hold(y, out);
  return true;
}

// [S, B, E] -> [S, B, H], both ways or one.
bool recurrent(GraphDraw& g) {
  const Held* x = g.pick([](const Held& held) { return held.rank() == 3 && held.dims[2] < 100; });
  if (!x) return false;
  const bool is_lstm = g.draw().one_in(2);
  const int64_t gates = is_lstm ? 4 : 3;
  const int64_t ways = g.between(1, 2);
  const int64_t hidden = g.between(1, 20);
  const int64_t depth = x->dims[2];
  std::vector<std::string> inputs{x->name,
                                  g.weight({ways, gates * hidden, depth}, range_for(depth)),
                                  g.weight({ways, gates * hidden, hidden}, range_for(hidden) / 2)};
  if (g.draw().one_in(2)) inputs.push_back(g.weight({ways, 2 * gates * hidden}, 0.3));
  Attributes attributes;
  attributes.push_back(integer("hidden_size", hidden));
  attributes.push_back(AttributeWriter::of_string("direction", ways == 2 ? "bidirectional"
                                                               : g.draw().one_in(2) ? "reverse"
                                                                                    : "forward"));
  if (!is_lstm) attributes.push_back(integer("linear_before_reset", g.draw().below(2)));
  std::string y = g.node(is_lstm ? "LSTM" : "GRU", inputs, std::move(attributes));
  y = g.node("Transpose", {y}, {ints("perm", {0, 2, 1, 3})});
  g.hold(g.node("Reshape", {y, g.ints({0, 0, -1})}), {x->dims[0], x->dims[1], ways * hidden});
  return true;
}

// [N, C, L], over L.
bool conv_of_rows(GraphDraw& g) {
  const Held* x = g.pick_rank(3);
  if (!x || x->dims[2] < 3) return false;
  const int64_t channels = x->dims[1];
  const int64_t groups = g.draw().one_in(3) ? channels : 1;
  const int64_t filters = groups == 1 ? g.between(1, 24) : groups;
  const int64_t size = g.draw().one_in(4) ? 1 : 3;
  const int64_t pad = g.draw().below(2);
  const Dims64 dims{x->dims[0], filters, x->dims[2] + 2 * pad - size + 1};
  const std::string y = g.node(
      "Conv",
      {x->name, g.weight({filters, channels / groups, size}, range_for(channels / groups * size))},
      {ints("pads", {pad, pad}), integer("group", groups)});
  g.hold(g.draw().one_in(2) ? y : draw_function(g, y, 0), dims);
  return true;
}

bool functions(GraphDraw& g) {
  const Held* x = pick_rows(g);
  if (!x) return false;
  g.hold(draw_function(g, x->name, 0), x->dims);
  return true;
}

constexpr Step kSteps[] = {narrow_dense, recurrent,   dense,        dense,     dense,
                           gemm,         gemm,        scores,       norm,      attention,
                           half_dense,   block_dense, conv_of_rows, functions, norm};

}  // namespace

Scores draw_scores(GraphDraw& g) {
  const Held* x = g.pick_rank(3);
  if (!x) return {};
  const Held* other = g.pick([&](const Held& held) {
    return held.rank() == 3 && held.dims[0] == x->dims[0] && held.dims[2] == x->dims[2];
  });
  const std::string turned = g.node("Transpose", {other->name}, {ints("perm", {0, 2, 1})});
  return {
      g.node("MatMul", {x->name, turned}), {x->dims[0], x->dims[1], other->dims[1]}, x->dims[2]};
}

std::string maybe_biased(GraphDraw& g, const std::string& x, int64_t width) {
  return g.draw().one_in(2) ? g.node("Add", {x, g.weight({width}, 0.5)}) : x;
}

std::string draw_product(GraphDraw& g, const std::string& x, int64_t from, int64_t to,
                         bool has_bias) {
  std::string y;
  if (g.draw().one_in(4)) {
    y = g.node("MatMul", {x, g.node("Transpose", {g.weight({to, from}, range_for(from))},
                                    {ints("perm", {1, 0})})});
  } else {
    y = g.node("MatMul", {x, g.weight({from, to}, range_for(from))});
  }
  if (!has_bias) return y;
  const std::string bias = g.weight({to}, 0.5);
  return g.draw().one_in(2) ? g.node("Add", {y, bias}) : g.node("Add", {bias, y});
}

std::string block_product(GraphDraw& g, const std::string& x, int64_t from, int64_t to) {
  const int64_t bits = g.draw().one_in(2) ? 4 : 8;
  const int64_t block = g.draw().one_in(2) ? 16 : 32;
  const int64_t blocks = (from + block - 1) / block;
  const auto type = model_writer::ElementType::kUint8;
  std::vector<std::string> inputs{x, g.codes({to, blocks, block * bits / 8}, -128, 127, type),
                                  g.weight({to * blocks}, 4 * range_for(from) / (1 << bits))};
  if (g.draw().one_in(2)) {
    inputs.push_back(g.codes({to * ((blocks * bits + 7) / 8)}, -128, 127, type));
  }
  if (g.draw().one_in(4)) {
    inputs.resize(5);
    inputs.push_back(g.weight({to}, 0.5));
  }
  const std::string y = g.node(
      "MatMulNBits", inputs,
      {integer("K", from), integer("N", to), integer("bits", bits), integer("block_size", block)},
      "com.microsoft");
  return maybe_biased(g, y, to);
}

Span<const Step> token_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
