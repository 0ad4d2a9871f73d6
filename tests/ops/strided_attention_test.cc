// folio StridedAttention against sums in double: layouts, sizes, masks, broadcasts, bad inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

using Floats = std::vector<float>;
using Dims4 = std::vector<int64_t>;
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

Floats wave(int64_t count, float phase) {
  Floats out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(std::sin(phase + 0.37F * static_cast<float>(i)));
  }
  return out;
}

// Sizes, and the orders in which the operands lie.
struct Case {
  int64_t batch = 2, heads = 3, queries = 5, keys = 7, size = 4, v_size = 6;
  Dims4 q{0, 1, 2, 3}, k{0, 1, 2, 3}, v{0, 1, 2, 3}, y{0, 1, 2, 3};
  float scale = 0.7F;
  int64_t repeats = 1;          // of each head of K and V
  Floats mask;                  // [queries, keys] or empty
  std::vector<bool> condition;  // [queries, keys] or empty: filled with -inf where true
};

Shape placed(const Dims4& logical, const Dims4& perm) {
  std::vector<int64_t> dims(4);
  for (size_t i = 0; i < 4; ++i) dims[static_cast<size_t>(perm[i])] = logical[i];
  return Shape(dims);
}

// Element [b, h, i, j] of a tensor whose logical dim d is its dim perm[d].
size_t place_of(const Dims4& logical, const Dims4& perm, const Dims4& at) {
  Dims4 dims(4);
  Dims4 index(4);
  for (size_t i = 0; i < 4; ++i) {
    dims[static_cast<size_t>(perm[i])] = logical[i];
    index[static_cast<size_t>(perm[i])] = at[i];
  }
  int64_t out = 0;
  for (size_t i = 0; i < 4; ++i) out = out * dims[i] + index[i];
  return static_cast<size_t>(out);
}

struct Problem {
  const Case& c;
  Dims4 q_dims, k_dims, v_dims, y_dims;
  Floats q, k, v, y;

  explicit Problem(const Case& given) : c(given) {
    q_dims = {c.batch, c.heads, c.queries, c.size};
    k_dims = {c.batch, c.heads / c.repeats, c.keys, c.size};
    v_dims = {c.batch, c.heads / c.repeats, c.keys, c.v_size};
    y_dims = {c.batch, c.heads, c.queries, c.v_size};
    q = wave(c.batch * c.heads * c.queries * c.size, 1);
    k = wave(c.batch * c.heads / c.repeats * c.keys * c.size, 2);
    v = wave(c.batch * c.heads / c.repeats * c.keys * c.v_size, 3);
    y.resize(static_cast<size_t>(c.batch * c.heads * c.queries * c.v_size));
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t h = 0; h < c.heads; ++h) {
        for (int64_t i = 0; i < c.queries; ++i) compute_row(b, h, i);
      }
    }
  }

  void compute_row(int64_t b, int64_t h, int64_t i) {
    std::vector<double> row(static_cast<size_t>(c.keys));
    double max = kMinusInf;
    for (int64_t j = 0; j < c.keys; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < c.size; ++d) {
        sum += static_cast<double>(q[place_of(q_dims, c.q, {b, h, i, d})]) *
               static_cast<double>(k[place_of(k_dims, c.k, {b, h / c.repeats, j, d})]);
      }
      const auto at = static_cast<size_t>(i * c.keys + j);
      sum *= static_cast<double>(c.scale);
      if (!c.mask.empty()) sum += static_cast<double>(c.mask[at]);
      if (!c.condition.empty() && c.condition[at]) sum = kMinusInf;
      row[static_cast<size_t>(j)] = sum;
      max = std::max(max, sum);
    }
    double total = 0;
    for (double& x : row) total += x = std::exp(x - max);
    Dims4 inverse(4);
    for (size_t d = 0; d < 4; ++d) inverse[static_cast<size_t>(c.y[d])] = static_cast<int64_t>(d);
    for (int64_t d = 0; d < c.v_size; ++d) {
      double sum = 0;
      for (int64_t j = 0; j < c.keys; ++j) {
        sum += row[static_cast<size_t>(j)] / total *
               static_cast<double>(v[place_of(v_dims, c.v, {b, h / c.repeats, j, d})]);
      }
      y[place_of(y_dims, inverse, {b, h, i, d})] = static_cast<float>(sum);
    }
  }
};

void set_orders(OpTester& t, const Case& c) {
  t.attr_ints("perm_q", c.q).attr_ints("perm_k", c.k).attr_ints("perm_v", c.v);
  t.attr_ints("perm_y", c.y).attr("scale", c.scale);
  if (c.repeats > 1) t.attr("repeats", c.repeats);
}

void check(const Case& c) {
  const Problem p(c);
  OpTester t("StridedAttention", 1, "folio");
  set_orders(t, c);
  t.input<float>(placed(p.q_dims, c.q), p.q);
  t.input<float>(placed(p.k_dims, c.k), p.k);
  t.input<float>(placed(p.v_dims, c.v), p.v);
  if (!c.mask.empty()) {
    t.input<float>({c.queries, c.keys}, c.mask);
  } else if (!c.condition.empty()) {
    t.input_absent();
  }
  if (!c.condition.empty()) {
    t.attr("fill", kMinusInf);
    t.input<bool>({1, c.queries, c.keys}, c.condition);
  }
  std::vector<int64_t> dims;
  for (const int64_t from : c.y) dims.push_back(p.y_dims[static_cast<size_t>(from)]);
  t.expect<float>(0, Shape(dims), p.y, 2e-6);
  t.run();
}

TEST(StridedAttention, IsTheSeparateNodesAtOddSizes) {
  for (const int64_t queries : {1, 3, 5, 17, 65, 131}) {
    for (const int64_t keys : {1, 7, 16, 33, 200}) {
      SCOPED_TRACE(::testing::Message() << queries << " queries, " << keys << " keys");
      Case c;
      c.batch = 1;
      c.heads = 2;
      c.queries = queries;
      c.keys = keys;
      c.size = 5;
      c.v_size = 19;
      check(c);
    }
  }
}

TEST(StridedAttention, ReadsAndWritesWhereValuesLie) {
  for (const int64_t queries : {1, 6}) {
    // The last two hold the positions of a head side by side: [B, H, D, S] and [B, D, H, S].
    for (const Dims4& k : {Dims4{0, 2, 1, 3}, Dims4{0, 1, 3, 2}, Dims4{0, 2, 3, 1}}) {
      Case c;
      c.queries = queries;
      c.q = {0, 2, 1, 3};
      c.k = k;
      c.v = {1, 0, 2, 3};
      c.y = {0, 2, 1, 3};
      check(c);
    }
  }
}

// 1 to 4 queries read keys and values in sets of heads, more of them by packed panels.
TEST(StridedAttention, HeadsOfKeysStandForSome) {
  for (const int64_t queries : {1, 2, 4, 5}) {
    for (const int64_t repeats : {2, 5, 18}) {
      for (const Dims4& k : {Dims4{0, 1, 2, 3}, Dims4{0, 2, 1, 3}, Dims4{0, 1, 3, 2}}) {
        SCOPED_TRACE(::testing::Message() << queries << " queries, " << repeats << " repeats");
        Case c;
        c.heads = 2 * repeats;
        c.repeats = repeats;
        c.queries = queries;
        c.keys = 70;
        c.size = 19;
        c.k = k;
        c.y = {0, 2, 1, 3};
        c.mask = wave(queries * c.keys, 4);
        check(c);
      }
    }
  }
}

TEST(StridedAttention, MasksAreAddedAndConditionsFill) {
  for (const int64_t queries : {2, 9}) {
    Case c;
    c.queries = queries;
    c.mask = wave(queries * c.keys, 4);
    check(c);
    for (int64_t i = 0; i < queries * c.keys; ++i) c.condition.push_back(i % 5 == 2);
    check(c);
    c.mask.clear();
    check(c);
  }
}

TEST(StridedAttention, AQueryWithAllKeysAtMinusInfinityGivesNaN) {
  for (const int64_t queries : {2, 9}) {
    Case c;
    c.queries = queries;
    c.mask = Floats(static_cast<size_t>(queries * c.keys), 0.0F);
    for (int64_t j = 0; j < c.keys; ++j) c.mask[static_cast<size_t>(c.keys + j)] = kMinusInf;
    const Problem p(c);
    EXPECT_TRUE(std::isnan(p.y[static_cast<size_t>(c.v_size)]));
    check(c);
  }
}

TEST(StridedAttention, DimsOfOneBroadcast) {
  // One key head and one batch of V for all; the mask gives the queries.
  for (const int64_t queries : {3, 6}) {
    OpTester t("StridedAttention", 1, "folio");
    set_orders(t, Case{});
    t.input<float>({2, 3, 1, 1}, {1, 1, 1, 1, 1, 1});
    t.input<float>({2, 1, 2, 1}, {0, 0, 0, 0});
    t.input<float>({1, 1, 2, 1}, {1, 3});
    t.input<float>({queries, 1}, Floats(static_cast<size_t>(queries), 5));
    t.expect<float>(0, {2, 3, queries, 1}, Floats(static_cast<size_t>(6 * queries), 2), 1e-6);
    t.run();
  }
}

TEST(StridedAttention, ThreeDimsAreHeads) {
  OpTester t("StridedAttention", 1, "folio");
  t.attr_ints("perm_q", {0, 1, 2}).attr_ints("perm_k", {0, 1, 2}).attr_ints("perm_v", {0, 1, 2});
  t.attr_ints("perm_y", {1, 0, 2});
  t.input<float>({2, 1, 1}, {0, 0});
  t.input<float>({2, 2, 1}, {0, 0, 0, 0});
  t.input<float>({2, 2, 1}, {1, 3, 5, 9});
  t.expect<float>(0, {1, 2, 1}, {2, 7}, 1e-6);
  t.run();
}

TEST(StridedAttention, NoQueriesGiveNothingAndNoKeysZeros) {
  OpTester none("StridedAttention", 1, "folio");
  set_orders(none, Case{});
  none.input<float>({1, 1, 0, 2}, {}).input<float>({1, 1, 3, 2}, Floats(6, 1));
  none.input<float>({1, 1, 3, 2}, Floats(6, 1));
  none.expect<float>(0, {1, 1, 0, 2}, {});
  none.run();
  OpTester empty("StridedAttention", 1, "folio");
  set_orders(empty, Case{});
  empty.input<float>({1, 1, 1, 2}, {1, 1}).input<float>({1, 1, 0, 2}, {});
  empty.input<float>({1, 1, 0, 2}, {});
  empty.expect<float>(0, {1, 1, 1, 2}, {0, 0});
  empty.run();
}

OpTester with_shapes(const Shape& q, const Shape& k, const Shape& v) {
  OpTester t("StridedAttention", 1, "folio");
  set_orders(t, Case{});
  for (const Shape& shape : {q, k, v}) {
    t.input<float>(shape, Floats(static_cast<size_t>(shape.count())));
  }
  t.outputs(1);
  return t;
}

TEST(StridedAttention, RefusesWhatDoesNotAgree) {
  with_shapes({2, 1, 1, 4}, {3, 1, 2, 4}, {1, 1, 2, 4}).fails("K has size 3");
  with_shapes({1, 2, 1, 4}, {1, 3, 2, 4}, {1, 1, 2, 4}).fails("K has size 3");
  with_shapes({1, 1, 1, 4}, {1, 1, 2, 5}, {1, 1, 2, 4}).fails("K of 5 elements");
  with_shapes({1, 1, 1, 4}, {1, 1, 2, 4}, {1, 1, 3, 4}).fails("V has 3 positions for 2 keys");
  with_shapes({1, 1, 4}, {1, 1, 2, 4}, {1, 1, 2, 4}).fails("expected 4 dims");
}

TEST(StridedAttention, RefusesHeadsThatDoNotStandForAllOfQ) {
  const auto repeated = [](int64_t q, int64_t k, int64_t v) {
    OpTester t = with_shapes({1, q, 1, 4}, {1, k, 2, 4}, {1, v, 2, 4});
    t.attr("repeats", int64_t{2});
    return t;
  };
  repeated(5, 2, 2).fails("K has 2 heads and V 2, expected 5 / 2");
  repeated(4, 4, 4).fails("K has 4 heads and V 4, expected 4 / 2");
  repeated(4, 2, 1).fails("K has 2 heads and V 1, expected 4 / 2");
  OpTester none = with_shapes({1, 1, 1, 4}, {1, 1, 2, 4}, {1, 1, 2, 4});
  none.attr("repeats", int64_t{0}).fails("repeats");
}

TEST(StridedAttention, RefusesOrdersWithoutRows) {
  OpTester t = with_shapes({1, 1, 1, 4}, {1, 1, 2, 4}, {1, 1, 2, 4});
  t.attr_ints("perm_v", {0, 1, 3, 2});
  t.fails("perm_v");
  OpTester twice = with_shapes({1, 1, 1, 4}, {1, 1, 2, 4}, {1, 1, 2, 4});
  twice.attr_ints("perm_q", {0, 0, 2, 3});
  twice.fails("perm_q");
}

}  // namespace
}  // namespace folio
