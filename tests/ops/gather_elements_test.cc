#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kNine = {1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(GatherElements, TakesOneIndexForEachElement) {
  OpTester rows("GatherElements", 13);
  rows.attr("axis", 1).input<float>({2, 2}, {1, 2, 3, 4}).input<int64_t>({2, 2}, {0, 0, 1, -2});
  rows.expect<float>(0, {2, 2}, {1, 1, 4, 3}).run();
  OpTester columns("GatherElements", 11);
  columns.input<float>({3, 3}, kNine).input<int32_t>({2, 3}, {1, 2, 0, 2, 0, 0});
  columns.expect<float>(0, {2, 3}, {4, 8, 3, 7, 2, 3}).run();
}

TEST(GatherElements, TakesFewerIndicesThanTheDataHas) {
  OpTester t("GatherElements", 13);
  t.attr("axis", 1).input<std::string>({2, 2, 2}, {"a", "b", "c", "d", "e", "f", "g", "h"});
  t.input<int64_t>({2, 1, 1}, {1, 0}).expect<std::string>(0, {2, 1, 1}, {"c", "e"}).run();
  OpTester none("GatherElements", 13);
  none.input<float>({2}, {1, 2}).input<int64_t>({0}, {}).expect<float>(0, {0}, {}).run();
}

TEST(GatherElements, RefusesWhatDoesNotFit) {
  OpTester index("GatherElements", 13);
  index.input<float>({2}, {1, 2}).input<int64_t>({1}, {2}).outputs(1).fails("index 2 is outside");
  OpTester rank("GatherElements", 13);
  rank.input<float>({2}, {1, 2}).input<int64_t>({1, 1}, {0}).outputs(1).fails("does not fit");
  OpTester wide("GatherElements", 13);
  wide.input<float>({1, 1}, {1}).input<int64_t>({1, 2}, {0, 0}).outputs(1).fails("does not fit");
  OpTester scalar("GatherElements", 13);
  scalar.input<float>({}, {1}).input<int64_t>({}, {0}).outputs(1).fails("axis 0 is outside");
}

// Indices that are outside whatever their low halves are.
template <typename I>
std::vector<I> indices_outside(int64_t dim) {
  std::vector<I> all = {static_cast<I>(dim), static_cast<I>(-dim - 1),
                        std::numeric_limits<I>::max(), std::numeric_limits<I>::min()};
  if constexpr (sizeof(I) == 8) {
    for (const I high : {I{1}, I{-2}, I{INT32_MAX}, I{INT32_MIN}}) {
      all.push_back(high * (I{1} << 32));
      all.push_back(high * (I{1} << 32) + 2);
    }
    all.push_back(I{UINT32_MAX});  // -1 of 32 bits
  }
  return all;
}

template <typename I>
void expect_every_index_seen() {
  constexpr int64_t kDim = 5;
  for (const int64_t n : {1, 4, 7, 16, 37}) {
    std::vector<float> x;
    for (int64_t i = 0; i < kDim * n; ++i) x.push_back(static_cast<float>(i));
    std::vector<I> indices;
    std::vector<float> want;
    for (int64_t i = 0; i < n; ++i) {
      indices.push_back(static_cast<I>(i * 7 % (2 * kDim) - kDim));
      want.push_back(static_cast<float>((indices.back() + kDim) % kDim * n + i));
    }
    OpTester t("GatherElements", 13);
    t.input<float>({kDim, n}, x)
        .template input<I>({1, n}, indices)
        .template expect<float>(0, {1, n}, want)
        .run();
    for (const I bad : indices_outside<I>(kDim)) {
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        std::vector<I> outside = indices;
        outside[static_cast<size_t>(at)] = bad;
        OpTester wrong("GatherElements", 13);
        wrong.input<float>({kDim, n}, x).template input<I>({1, n}, outside).outputs(1);
        wrong.fails("index " + std::to_string(bad) + " is outside an axis of 5");
      }
    }
  }
}

TEST(GatherElements, LooksAtEveryIndex) {
  expect_every_index_seen<int32_t>();
  expect_every_index_seen<int64_t>();
}

// Rows of any length, longer than what is looked up at a time, along each axis.
template <typename I>
void expect_gathered(int64_t axis, int64_t n) {
  const Shape data{3, 4, n + 2};
  const Shape shape{2, 4, n};
  const int64_t dim = data[static_cast<int>(axis)];
  std::vector<float> x, want;
  std::vector<I> indices;
  for (int64_t i = 0; i < data.count(); ++i) x.push_back(static_cast<float>(i));
  for (int64_t i = 0; i < shape.count(); ++i) {
    indices.push_back(static_cast<I>(i * 31 % (2 * dim) - dim));
    int64_t at[3] = {i / n / 4, i / n % 4, i % n};
    at[axis] = (indices.back() + dim) % dim;
    want.push_back(x[static_cast<size_t>((at[0] * 4 + at[1]) * (n + 2) + at[2])]);
  }
  OpTester t("GatherElements", 13);
  t.attr("axis", axis).input<float>(data, x).template input<I>(shape, indices);
  t.expect<float>(0, shape, want).run();
}

TEST(GatherElements, TakesRowsOfAnyLengthAlongAnyAxis) {
  for (const int64_t n : {1, 3, 4, 9, 127, 128, 129, 300}) {
    for (const int64_t axis : {0, 1, 2}) {
      expect_gathered<int32_t>(axis, n);
      expect_gathered<int64_t>(axis, n);
    }
  }
}

TEST(ScatterElements, WritesOneElementForEachIndex) {
  OpTester t("ScatterElements", 11);
  t.input<float>({3, 3}, std::vector<float>(9, 0)).input<int64_t>({2, 3}, {1, 0, 2, 0, 2, 1});
  t.input<float>({2, 3}, {1, 1.1F, 1.2F, 2, 2.1F, 2.2F});
  t.expect<float>(0, {3, 3}, {2, 1.1F, 0, 1, 0, 2.2F, 0, 2.1F, 1.2F}).run();
  OpTester old("Scatter", 9);
  old.attr("axis", 1).input<float>({1, 5}, {1, 2, 3, 4, 5}).input<int64_t>({1, 2}, {1, 3});
  old.input<float>({1, 2}, {1.1F, 2.1F}).expect<float>(0, {1, 5}, {1, 1.1F, 3, 2.1F, 5}).run();
}

TEST(ScatterElements, CombinesWhatMeetsTwice) {
  const std::vector<std::pair<const char*, std::vector<int8_t>>> cases = {{"none", {1, 3, 3}},
                                                                          {"add", {1, 7, 3}},
                                                                          {"mul", {1, 12, 3}},
                                                                          {"max", {1, 3, 3}},
                                                                          {"min", {1, 2, 3}}};
  for (const auto& entry : cases) {
    OpTester t("ScatterElements", 18);
    t.attr("reduction", entry.first).input<int8_t>({3}, {1, 2, 3}).input<int64_t>({2}, {1, -2});
    t.input<int8_t>({2}, {2, 3}).expect<int8_t>(0, {3}, entry.second).run();
  }
}

// Long rows of one index or several, by each type that has code of its own.
TEST(ScatterElements, AgreesWithALoopInEveryOrder) {
  for (const bool is_run : {true, false}) {
    for (const int64_t axis : {0, 1}) {
      constexpr int64_t kRows = 40;
      constexpr int64_t kColumns = 300;
      std::vector<float> y(50 * 300, 0.5F);
      std::vector<float> updates;
      std::vector<int64_t> indices;
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        const int64_t row = i / kColumns;
        const int64_t column = i % kColumns;
        const int64_t at = (is_run ? row * 7 : row * 7 + column * column) % 50 - (row % 2) * 50;
        indices.push_back(at);
        updates.push_back(static_cast<float>(i % 97));
        const int64_t place = at < 0 ? at + (axis == 0 ? 50 : 300) : at;
        y[static_cast<size_t>(axis == 0 ? place * 300 + column : row * 300 + place)] +=
            updates.back();
      }
      OpTester t("ScatterElements", 18);
      t.attr("axis", axis).attr("reduction", "add");
      t.input<float>({50, 300}, std::vector<float>(50 * 300, 0.5F));
      t.input<int64_t>({kRows, kColumns}, indices).input<float>({kRows, kColumns}, updates);
      t.expect<float>(0, {50, 300}, y).run();
    }
  }
}

TEST(ScatterElements, OfFolioBroadcastsItsIndices) {
  OpTester t("ScatterElements", 18, "folio");
  t.attr("reduction", "add").input<float>({3, 2}, {0, 1, 2, 3, 4, 5});
  t.input<int32_t>({4, 1}, {2, 0, -1, 0}).input<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.expect<float>(0, {3, 2}, {10, 13, 2, 3, 10, 13}).run();
  OpTester last("ScatterElements", 18, "folio");
  last.attr("axis", 1).attr("reduction", "add").input<float>({2, 2}, {0, 0, 0, 0});
  last.input<int64_t>({2, 1}, {1, 0}).input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  last.expect<float>(0, {2, 2}, {0, 6, 15, 0}).run();
  OpTester wrong("ScatterElements", 18, "folio");
  wrong.input<float>({3, 2}, std::vector<float>(6)).input<int64_t>({2, 1}, {0, 1});
  wrong.input<float>({4, 2}, std::vector<float>(8)).outputs(1).fails("which does not fit");
}

TEST(ScatterElements, WithoutIndicesGivesItsInput) {
  for (const Shape& none : {Shape{0, 2}, Shape{2, 0}}) {
    OpTester t("ScatterElements", 18);
    t.attr("axis", 1).input<float>({2, 2}, {1, 2, 3, 4});
    t.input<int64_t>(none, {}).input<float>(none, {});
    t.expect<float>(0, {2, 2}, {1, 2, 3, 4}).run();
  }
}

TEST(ScatterElements, RefusesWhatDoesNotFit) {
  OpTester updates("ScatterElements", 18);
  updates.input<float>({2}, {1, 2}).input<int64_t>({1}, {0}).input<float>({2}, {1, 2}).outputs(1);
  updates.fails("updates are [2]");
  OpTester type("ScatterElements", 18);
  type.input<float>({2}, {1, 2}).input<int64_t>({1}, {0}).input<int32_t>({1}, {1}).outputs(1);
  type.fails("expected float");
  OpTester index("ScatterElements", 18);
  index.input<float>({2}, {1, 2}).input<int64_t>({1}, {-3}).input<float>({1}, {1}).outputs(1);
  index.fails("index -3");
  OpTester reduction("ScatterElements", 16);
  reduction.attr("reduction", "max").input<float>({1}, {1}).input<int64_t>({1}, {0});
  reduction.input<float>({1}, {1}).outputs(1).fails("reduction is 'max'");
  OpTester strings("ScatterElements", 18);
  strings.attr("reduction", "add").input<std::string>({1}, {"a"}).input<int64_t>({1}, {0});
  strings.input<std::string>({1}, {"b"}).outputs(1).fails("string");
}

}  // namespace
}  // namespace folio
