// DimTable: what it simplifies means the same as what it would have evaluated.
#include "core/model/dim_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "core/base/checked_math.h"

namespace folio {
namespace {

using Number = int64_t;  // overflow counts as not known

// An expression with its exact value beside it.
struct Known {
  Dim dim;
  std::optional<Number> value;
};

std::optional<Number> apply(int op, std::optional<Number> a, std::optional<Number> b) {
  if (!a || !b) return std::nullopt;
  const Number x = *a;
  const Number y = *b;
  Number out = 0;
  switch (op) {
    case 0:
      return checked_add(x, y, &out) ? std::optional(out) : std::nullopt;
    case 1:
      return checked_sub(x, y, &out) ? std::optional(out) : std::nullopt;
    case 2:
      return checked_mul(x, y, &out) ? std::optional(out) : std::nullopt;
    case 3:
    case 4: {
      if (y <= 0) return std::nullopt;
      const Number q = x / y;
      const Number r = x % y;
      if (op == 3) return r < 0 ? q - 1 : q;
      return r > 0 ? q + 1 : q;
    }
    case 5:
      return std::min(x, y);
    default:
      return std::max(x, y);
  }
}

Dim combine(DimTable* table, int op, Dim a, Dim b) {
  switch (op) {
    case 0:
      return table->add(a, b);
    case 1:
      return table->sub(a, b);
    case 2:
      return table->mul(a, b);
    case 3:
      return table->floor_div(a, b);
    case 4:
      return table->ceil_div(a, b);
    case 5:
      return table->min(a, b);
    default:
      return table->max(a, b);
  }
}

TEST(DimTable, SimplificationEqualsEvaluation) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    DimTable table;
    std::vector<int64_t> symbols;
    std::vector<Known> known;
    for (int i = 0; i < 3; ++i) {
      const auto value = static_cast<int64_t>(random() % 6);
      known.push_back({table.named("s" + std::to_string(i)), value});
      symbols.push_back(value);
      known.push_back({Dim::of(value), value});
    }
    for (int i = 0; i < 12; ++i) {
      const int op = static_cast<int>(random() % 7);
      const Known a = known[random() % known.size()];
      const Known b = known[random() % known.size()];
      known.push_back({combine(&table, op, a.dim, b.dim), apply(op, a.value, b.value)});
    }
    std::vector<int64_t> values(table.size(), -1);
    for (size_t i = 0; i < symbols.size(); ++i) {
      values[static_cast<size_t>(known[2 * i].dim.symbol)] = symbols[i];
    }
    table.evaluate(&values);
    for (const Known& each : known) {
      const Dim dim = each.dim;
      if (dim.is_unknown()) continue;
      const int64_t got = dim.is_value() ? dim.value : values[static_cast<size_t>(dim.symbol)];
      // Less may be known (a negative or overflowing step), never something else.
      if (got < 0) continue;
      if (each.value) {
        EXPECT_EQ(*each.value, got) << "round " << round;
      }
    }
  }
}

TEST(DimTable, KnownIdiomsAreSimplified) {
  DimTable table;
  const Dim n = table.named("n");
  const Dim four = Dim::of(4);
  EXPECT_EQ(table.floor_div(table.mul(n, four), four), n);
  EXPECT_EQ(table.ceil_div(table.mul(four, n), four), n);
  const Dim five = Dim::of(5);
  EXPECT_EQ(table.mul(table.mul(n, four), five), table.mul(n, Dim::of(20)));
  EXPECT_EQ(table.floor_div(table.product({n, four, five}), table.product({five, four})), n);
  EXPECT_EQ(table.sub(table.add(n, four), four), n);
  EXPECT_EQ(table.add(table.sub(n, four), four), n);
  EXPECT_EQ(table.sub(n, n), Dim::of(0));
  EXPECT_EQ(table.mul(n, four), table.mul(four, n));
  EXPECT_EQ(table.add(n, Dim::of(0)), n);
}

// A run may give two dims of one name different sizes.
TEST(DimTable, DimsOfOneNameAreApart) {
  DimTable table;
  const Dim n = table.named("n");
  const Dim other = table.named("n");
  EXPECT_FALSE(n == other);
  EXPECT_EQ(table.name(n.symbol), "n");
  EXPECT_EQ(table.name(other.symbol), "n");
}

TEST(DimTable, OverflowIsUnknown) {
  DimTable table;
  const Dim huge = Dim::of(INT64_MAX);
  EXPECT_TRUE(table.add(huge, Dim::of(1)).is_unknown());
  EXPECT_TRUE(table.mul(huge, Dim::of(2)).is_unknown());
  const Dim n = table.named("n");
  const Dim twice = table.mul(n, Dim::of(2));
  const Dim plus = table.add(twice, Dim::of(1));
  std::vector<int64_t> values(table.size(), -1);
  values[static_cast<size_t>(n.symbol)] = INT64_MAX;
  table.evaluate(&values);
  EXPECT_EQ(values[static_cast<size_t>(twice.symbol)], -1);
  EXPECT_EQ(values[static_cast<size_t>(plus.symbol)], -1);
}

TEST(DimTable, DivisionByZeroIsUnknown) {
  DimTable table;
  const Dim n = table.named("n");
  const Dim d = table.named("d");
  EXPECT_TRUE(table.floor_div(Dim::of(4), Dim::of(0)).is_unknown());
  const Dim q = table.floor_div(n, d);
  std::vector<int64_t> values(table.size(), -1);
  values[static_cast<size_t>(n.symbol)] = 4;
  values[static_cast<size_t>(d.symbol)] = 0;
  table.evaluate(&values);
  EXPECT_EQ(values[static_cast<size_t>(q.symbol)], -1);
}

TEST(DimTable, NegativeStepsInsideAnExpressionAreExact) {
  DimTable table;
  const Dim n = table.named("n");
  const Dim less = table.sub(n, Dim::of(5));
  const Dim clamped = table.max(less, Dim::of(0));
  EXPECT_FALSE(table.never_negative(less));
  EXPECT_TRUE(table.never_negative(n));
  std::vector<int64_t> values(table.size(), -1);
  values[static_cast<size_t>(n.symbol)] = 2;
  table.evaluate(&values);
  EXPECT_EQ(values[static_cast<size_t>(less.symbol)], -1);
  EXPECT_EQ(values[static_cast<size_t>(clamped.symbol)], 0);
}

TEST(DimTable, BroadcastNeverGuesses) {
  DimTable table;
  const Dim n = table.named("n");
  EXPECT_EQ(table.broadcast(n, n), n);
  EXPECT_EQ(table.broadcast(n, Dim::of(1)), n);
  EXPECT_EQ(table.broadcast(Dim::of(1), n), n);
  EXPECT_EQ(table.broadcast(n, Dim::of(3)), Dim::of(3));
  EXPECT_EQ(table.broadcast(n, table.min(n, Dim::of(512))), n);
  EXPECT_EQ(table.broadcast(table.min(Dim::of(1), n), n), n);
  EXPECT_TRUE(table.broadcast(Dim::unknown(), Dim::of(1)).is_unknown());
  EXPECT_TRUE(table.broadcast(Dim::of(3), Dim::of(4)).is_unknown()) << "the run refuses them";
  EXPECT_TRUE(table.broadcast(Dim::of(0), Dim::of(2)).is_unknown());
  EXPECT_EQ(table.broadcast(Dim::of(3), Dim::of(3)), Dim::of(3));
  // Two unknown dims are not the same dim, but whatever they are nothing is known of the result.
  EXPECT_TRUE(table.broadcast(Dim::unknown(), Dim::unknown()).is_unknown());
}

// A run has the dims of both, as of a feature map and one twice the half of it.
TEST(DimTable, BroadcastIsDecidedByTheRun) {
  DimTable table;
  const Dim n = table.named("n");
  const Dim m = table.named("m");
  const Dim joined = table.broadcast(n, m);
  ASSERT_TRUE(joined.is_symbol());
  EXPECT_EQ(table.broadcast(m, n), joined);
  // A sum of n, m and n again has no other dim than that of n and m.
  EXPECT_EQ(table.broadcast(joined, n), joined);
  EXPECT_EQ(table.broadcast(m, joined), joined);
  const Dim more = table.add(joined, Dim::of(1));
  const struct {
    int64_t n, m, joined;
  } cases[] = {{5, 5, 5}, {1, 5, 5}, {5, 1, 5}, {0, 1, 0}, {1, 0, 0}, {4, 5, -1}, {-1, 5, -1}};
  for (const auto& each : cases) {
    std::vector<int64_t> values(table.size(), -1);
    values[static_cast<size_t>(n.symbol)] = each.n;
    values[static_cast<size_t>(m.symbol)] = each.m;
    table.evaluate(&values);
    EXPECT_EQ(values[static_cast<size_t>(joined.symbol)], each.joined) << each.n << ", " << each.m;
    EXPECT_EQ(values[static_cast<size_t>(more.symbol)], each.joined < 0 ? -1 : each.joined + 1);
  }
}

TEST(DimTable, FixedDimsAreNumbers) {
  DimTable table;
  table.fix("n", 9);
  EXPECT_EQ(table.named("n"), Dim::of(9));
  table.fix("", 3);  // no name: of no dim
  EXPECT_TRUE(table.anonymous().is_symbol());
  EXPECT_TRUE(table.named("").is_symbol());
}

}  // namespace
}  // namespace folio
