// Steps over tokens one after the other: Loop and Scan with state, weights in bodies and outside,
// bodies in bodies.
#include <algorithm>

#include "tests/properties/graph_steps.h"

namespace folio::properties {
namespace {

using model_writer::AttributeWriter;
using model_writer::ElementType;
using model_writer::Type;
using Names = GraphDraw::Names;

const Held* pick_tokens(GraphDraw& g) {
  return g.pick([](const Held& held) {
    return held.rank() == 3 && held.dims[1] <= 24 && held.dims[2] <= 48;
  });
}

Type whole_type() { return Type::tensor(ElementType::kInt64, {}); }
Type flag_type() { return Type::tensor(ElementType::kBool, {}); }

std::string flag(GraphDraw& g, int64_t value) {
  return cast(g, g.whole(value), ElementType::kBool);
}

// One of two bodies by a number of the loop or of the input, inside of any other body.
std::string if_of(GraphDraw& g, const std::string& condition, const std::string& x, size_t rank) {
  return g.branches(condition, Dims64(rank, kUnknown), [&] { return draw_function(g, x, 0); });
}

// The next state [B, H] of a cell over its state and a token [B, E]; weights are those given (the
// same of each call, from outside) or the body's own.
struct Cell {
  int64_t from = 0;
  int64_t to = 0;
  std::string w, u;  // "": the body's own
};

Cell cell_of(GraphDraw& g, int64_t from, int64_t to) {
  Cell out;
  out.from = from;
  out.to = to;
  if (g.draw().one_in(2)) out.w = g.weight({from, to}, range_for(from) / 2);
  if (g.draw().one_in(2)) out.u = g.weight({to, to}, range_for(to) / 2);
  return out;
}

std::string next_state(GraphDraw& g, const Cell& cell, const std::string& state,
                       const std::string& token) {
  const std::string w =
      cell.w.empty() ? g.weight({cell.from, cell.to}, range_for(cell.from) / 2) : cell.w;
  const std::string u =
      cell.u.empty() ? g.weight({cell.to, cell.to}, range_for(cell.to) / 2) : cell.u;
  std::string sum = g.node("Add", {g.node("MatMul", {token, w}), g.node("MatMul", {state, u})});
  if (g.draw().one_in(2)) sum = g.node("Add", {sum, g.weight({cell.to}, 0.3)});
  if (g.draw().one_in(3)) {  // a gate
    const std::string gate = g.node("Sigmoid", {sum});
    return g.node("Add",
                  {g.node("Mul", {gate, state}),
                   g.node("Mul", {g.node("Sub", {g.number(1), gate}), g.node("Tanh", {sum})})});
  }
  return g.node("Tanh", {sum});
}

// Zeros, or a constant row for each sequence: [B, width].
std::string first_state(GraphDraw& g, const Held& x, int64_t width) {
  const std::string dims = dims_of(g, {x.name, 3}, {0, -width});
  if (g.draw().one_in(2)) return g.node("Expand", {g.weight({1, width}, 0.5), dims});
  return cast(g, g.node("ConstantOfShape", {dims}), g.element());
}

// [B, E] of x [B, S, E], at a scalar place.
std::string token_at(GraphDraw& g, const Held& x, const std::string& at) {
  if (g.draw().one_in(2)) return g.node("Gather", {x.name, at}, {integer("axis", 1)});
  const std::string begin = g.node("Unsqueeze", {at, g.ints({0})});
  const std::string end = g.node("Add", {begin, g.ints({1})});
  const std::string one = g.node("Slice", {x.name, begin, end, g.ints({1})});
  if (g.draw().one_in(2)) return g.node("Squeeze", {one, g.ints({1})});
  return g.node("Reshape", {one, dims_of(g, {x.name, 3}, {0, 2})});
}

// A Loop over the tokens of x [B, S, E], which it gathers from outside.
bool loop(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const int64_t width = g.between(1, 4) * 8;
  const Cell cell = cell_of(g, x->dims[2], width);
  const std::string count = scalar_of(g, {x->name, 3}, 1);
  const bool chooses = g.draw().one_in(3);
  const bool ends_itself = g.draw().one_in(2);
  const auto draw_body = [&](const Names& in) -> Names {
    const std::string token = token_at(g, *x, in[0]);
    std::string state = next_state(g, cell, in[2], token);
    if (chooses) {
      const std::string parity = g.node("Mod", {in[0], g.whole(2)});
      state = g.node("Tanh", {if_of(g, cast(g, parity, ElementType::kBool), state, 2)});
    }
    const std::string next = g.node("Add", {in[0], g.whole(1)});
    return {ends_itself ? g.node("Less", {next, count}) : in[1], state, state};
  };
  const std::string start = first_state(g, *x, width);
  const Type type = g.type_of_rank(2);
  Attributes attributes;
  attributes.push_back(
      g.body({whole_type(), flag_type(), type}, {flag_type(), type, type}, draw_body));
  const std::string most = ends_itself && g.draw().one_in(2) ? "" : count;
  const bool has_condition = most.empty() || g.draw().one_in(2);
  const auto y =
      g.nodes("Loop", {most, has_condition ? flag(g, 1) : "", start}, 2, std::move(attributes));
  if (g.draw().one_in(2)) g.hold(y[0], {x->dims[0], width});
  g.hold(g.node("Transpose", {y[1]}, {ints("perm", {1, 0, 2})}), {x->dims[0], x->dims[1], width});
  return true;
}

// A Loop whose state grows by a row in each round, as caches do.
bool growing_loop(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const int64_t width = x->dims[2];
  const int64_t rounds = g.between(1, 4);
  const std::string w = g.draw().one_in(2) ? g.weight({width, width}, range_for(width) / 2) : "";
  const auto draw_body = [&](const Names& in) -> Names {
    const std::string all = in[2];
    const std::string mean = reduced(g, "ReduceMean", all, {1}, true);
    const std::string by = w.empty() ? g.weight({width, width}, range_for(width) / 2) : w;
    const std::string row = g.node("Tanh", {g.node("MatMul", {mean, by})});
    return {in[1], g.node("Concat", {all, row}, {integer("axis", 1)})};
  };
  const Type type = g.type_of_rank(3);
  Attributes attributes;
  attributes.push_back(g.body({whole_type(), flag_type(), type}, {flag_type(), type}, draw_body));
  const std::string start = g.draw().one_in(2)
                                ? x->name
                                : g.node("Slice", {x->name, g.ints({0}), g.ints({1}), g.ints({1})});
  const int64_t before = start == x->name ? x->dims[1] : 1;
  g.hold(g.node("Loop", {g.whole(rounds), flag(g, 1), start}, std::move(attributes)),
         {x->dims[0], before + rounds, width});
  return true;
}

// A layer a few times over, with a shorter loop in it here and there.
bool repeated_layer(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const int64_t width = x->dims[2];
  const Type type = g.type_of_rank(3);
  const std::string shared = g.weight({width, width}, range_for(width) / 2);
  const bool is_deep = g.draw().one_in(2);
  const auto layer = [&](const std::string& in) {
    const std::string w =
        g.draw().one_in(2) ? shared : g.weight({width, width}, range_for(width) / 2);
    const std::string y = draw_function(g, g.node("MatMul", {in, w}), 0);
    return g.node("Tanh", {g.draw().one_in(2) ? g.node("Add", {in, y}) : y});
  };
  const auto inner_body = [&](const Names& in) -> Names { return {in[1], layer(in[2])}; };
  const auto outer_body = [&](const Names& in) -> Names {
    std::string y = layer(in[2]);
    if (is_deep) {
      Attributes attributes;
      attributes.push_back(
          g.body({whole_type(), flag_type(), type}, {flag_type(), type}, inner_body));
      // As many rounds as the outer loop has had.
      y = g.node("Loop", {in[0], "", y}, std::move(attributes));
    }
    if (g.draw().one_in(3)) y = g.node("Add", {y, x->name});
    return {in[1], g.node("Clip", {y, g.number(-2), g.number(2)})};
  };
  Attributes attributes;
  attributes.push_back(g.body({whole_type(), flag_type(), type}, {flag_type(), type}, outer_body));
  g.hold(g.node("Loop", {g.whole(g.between(0, 3)), "", x->name}, std::move(attributes)), x->dims);
  return true;
}

// A Loop that carries whole numbers: where it reads, and the dims of what it makes.
bool counting_loop(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const int64_t width = x->dims[2];
  const auto draw_body = [&](const Names& in) -> Names {
    const std::string next = g.node("Add", {in[2], g.ints({1})});
    const std::string token = g.node("Slice", {x->name, in[2], next, g.ints({1})});
    const std::string row = g.node("Add", {g.node("Tanh", {token}), in[4]});
    const std::string grown = g.node("Add", {in[3], g.ints({0, 1, 0})});
    const std::string wide = g.node("Expand", {g.weight({1, 1, width}, 0.1), in[3]});
    return {in[1], next, grown, g.node("Tanh", {row}), reduced(g, "ReduceMax", wide, {1}, false)};
  };
  const Type numbers = Type::tensor(ElementType::kInt64, {model_writer::Dim()});
  const Type state = g.type_of_rank(3);
  Attributes attributes;
  attributes.push_back(g.body({whole_type(), flag_type(), numbers, numbers, state},
                              {flag_type(), numbers, numbers, state, g.type_of_rank(2)},
                              draw_body));
  const std::string start = dims_of(g, {x->name, 3}, {0, -1, 2});
  const std::string zeros = cast(g, g.node("ConstantOfShape", {start}), g.element());
  const auto y = g.nodes("Loop", {scalar_of(g, {x->name, 3}, 1), "", g.ints({0}), start, zeros}, 4,
                         std::move(attributes));
  // The dims that it ends with: [B, S + 1, E].
  const std::string row = g.weight({1, 1, width}, 0.5);
  g.hold(g.node("Expand", {row, y[1]}), {x->dims[0], x->dims[1] + 1, width});
  g.hold(g.node("Add", {y[2], g.node("Transpose", {y[3]}, {ints("perm", {1, 0, 2})})}), x->dims);
  return true;
}

// An If that gives whole numbers: which token follows.
bool chosen_token(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const std::string condition =
      g.node("Less", {scalar_of(g, {x->name, 3}, 1), g.whole(g.between(1, 16))});
  int64_t place = 0;
  const auto draw_branch = [&] { return g.ints({place--}); };
  const std::string at =
      cast(g, g.branches(condition, {1}, draw_branch, ElementType::kInt64), ElementType::kInt32);
  const std::string token = g.node("Gather", {x->name, at}, {integer("axis", 1)});
  g.hold(token, {x->dims[0], 1, x->dims[2]});
  return true;
}

// A Scan over tokens, either way, which gives a row for each.
bool scan(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const Held* other = g.pick([&](const Held& held) {
    return held.rank() == 3 && held.dims[1] == x->dims[1] && held.dims[0] == x->dims[0];
  });
  const int64_t width = g.between(1, 4) * 8;
  const Cell cell = cell_of(g, x->dims[2], width);
  const std::string v = g.weight({other->dims[2], width}, range_for(other->dims[2]) / 2);
  const bool has_two = g.draw().one_in(2);
  const Type row = g.type_of_rank(2);
  std::vector<Type> inputs{row, row};
  if (has_two) inputs.push_back(row);
  const auto draw_body = [&](const Names& in) -> Names {
    std::string state = next_state(g, cell, in[0], in[1]);
    if (has_two) state = g.node("Tanh", {g.node("Add", {state, g.node("MatMul", {in[2], v})})});
    return {state, g.draw().one_in(2) ? state : draw_function(g, state, 0)};
  };
  Attributes attributes;
  attributes.push_back(g.body(inputs, {row, row}, draw_body));
  const size_t scanned = inputs.size() - 1;
  attributes.push_back(integer("num_scan_inputs", static_cast<int64_t>(scanned)));
  attributes.push_back(ints("scan_input_axes", Dims64(scanned, g.draw().one_in(2) ? 1 : -2)));
  attributes.push_back(ints("scan_output_axes", {1}));
  if (g.draw().one_in(3)) {
    attributes.push_back(ints("scan_input_directions", Dims64(scanned, 1)));
    attributes.push_back(ints("scan_output_directions", {g.draw().below(2)}));
  }
  std::vector<std::string> given{first_state(g, *x, width), x->name};
  if (has_two) given.push_back(other->name);
  const auto y = g.nodes("Scan", given, 2, std::move(attributes));
  if (g.draw().one_in(2)) g.hold(y[0], {x->dims[0], width});
  g.hold(y[1], {x->dims[0], x->dims[1], width});
  return true;
}

// An If by dims, known when the model is loaded or not, of bodies that read others' values.
bool branch_by_dims(GraphDraw& g) {
  const Held* x = pick_tokens(g);
  if (!x) return false;
  const Held* other = g.pick([&](const Held& held) { return held.dims == x->dims; });
  const int64_t width = x->dims[2];
  const std::string condition =
      g.node("Greater",
             {scalar_of(g, {x->name, 3}, g.draw().one_in(3) ? 2 : 1), g.whole(g.between(1, 20))});
  const std::string shared = g.weight({width, width}, range_for(width));
  const std::string y = g.branches(condition, Dims64(3, kUnknown), [&] {
    const std::string w = g.draw().one_in(2) ? shared : g.weight({width, width}, range_for(width));
    const std::string z = g.node("MatMul", {g.draw().one_in(2) ? x->name : other->name, w});
    if (!g.draw().one_in(3)) return draw_function(g, z, 0);
    const std::string inner = g.node("Less", {scalar_of(g, {z, 3}, 0), g.whole(2)});
    return if_of(g, inner, z, 3);
  });
  g.hold(y, x->dims);
  return true;
}

constexpr Step kSteps[] = {counting_loop,  chosen_token, loop,          growing_loop,
                           repeated_layer, scan,         branch_by_dims};

}  // namespace

Span<const Step> body_steps() { return {kSteps, std::size(kSteps)}; }

}  // namespace folio::properties
