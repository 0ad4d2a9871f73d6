#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kCorners = {0, 0,    1, 1,    0, 0.1F,  1, 1.1F,  0, -0.1F, 1, 0.9F,
                                     0, 10.F, 1, 11.F, 0, 10.1F, 1, 11.1F, 0, 100.F, 1, 101.F};
const std::vector<float> kScores = {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F};

OpTester boxes(int64_t count, float overlap, const std::vector<float>& scores) {
  OpTester t("NonMaxSuppression", 11);
  t.input<float>({1, 6, 4}, kCorners).input<float>({1, 1, 6}, scores);
  t.input<int64_t>({1}, {count}).input<float>({1}, {overlap});
  return t;
}

TEST(NonMaxSuppression, KeepsTheBestOfEachHeap) {
  OpTester t = boxes(3, 0.5F, kScores);
  t.input<float>({1}, {0.4F}).expect<int64_t>(0, {2, 3}, {0, 0, 3, 0, 0, 0}).run();
  OpTester limited = boxes(1, 0.5F, kScores);
  limited.expect<int64_t>(0, {1, 3}, {0, 0, 3}).expect_inferred(0, "tensor(int64)[?,3]").run();
}

TEST(NonMaxSuppression, IsEmptyByDefault) {
  OpTester t("NonMaxSuppression", 10);
  t.input<float>({1, 6, 4}, kCorners).input<float>({1, 1, 6}, kScores);
  t.expect<int64_t>(0, {0, 3}, {}).run();
}

TEST(NonMaxSuppression, TakesCornersInAnyOrderAndCenters) {
  OpTester flipped("NonMaxSuppression", 11);
  flipped.input<float>({1, 2, 4}, {1, 1, 0, 0, 0, 0.1F, 1, 1.1F}).input<float>({1, 1, 2}, {1, 2});
  flipped.input<int64_t>({}, {9}).input<float>({}, {0.5F}).expect<int64_t>(0, {1, 3}, {0, 0, 1});
  flipped.run();
  OpTester center("NonMaxSuppression", 11);
  center.attr("center_point_box", 1).input<float>({1, 2, 4}, {0.5F, 0.5F, 1, 1, 0.5F, 0.6F, 1, 1});
  center.input<float>({1, 1, 2}, {2, 2}).input<int64_t>({}, {9}).input<float>({}, {0.5F});
  center.expect<int64_t>(0, {1, 3}, {0, 0, 0}).run();
}

TEST(NonMaxSuppression, BoxesWithoutAnAreaOverlapNothing) {
  OpTester t("NonMaxSuppression", 11);
  t.input<float>({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1e-30F, 1e-30F}).input<float>({1, 1, 2}, {2, 1});
  t.input<int64_t>({}, {9}).input<float>({}, {-1});
  t.expect<int64_t>(0, {2, 3}, {0, 0, 0, 0, 0, 1}).run();
}

// Nothing is removed by its score without a threshold, and nothing passes one that is NaN. (ONNX
// Runtime keeps them as well, anywhere: its heap does not order what is not ordered.)
TEST(NonMaxSuppression, ScoresThatAreNanComeLastWithoutAThreshold) {
  const std::vector<float> scores = {1, NAN, -INFINITY, 2, NAN, 3};
  OpTester all = boxes(9, 1, scores);
  all.expect<int64_t>(0, {6, 3}, {0, 0, 5, 0, 0, 3, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 4}).run();
  OpTester hidden = boxes(9, 0.5F, {NAN, -INFINITY, NAN, NAN, NAN, 1});
  hidden.expect<int64_t>(0, {3, 3}, {0, 0, 5, 0, 0, 1, 0, 0, 3}).run();
  OpTester above = boxes(9, 1, scores);
  above.input<float>({1}, {-100}).expect<int64_t>(0, {3, 3}, {0, 0, 5, 0, 0, 3, 0, 0, 0}).run();
}

// Of 2 images; `order` gives the score of a class's i-th box.
struct Scene {
  Scene(int64_t boxes_each, int64_t classes_each, const std::function<float(int64_t)>& order)
      : n(boxes_each), classes(classes_each) {
    for (int64_t i = 0; i < 2 * n; ++i) {
      // Also empty ones, which are turned inside out or not, and sides that are not a fraction
      // of 2.
      const auto y = static_cast<float>(i * 7919 % 101) / 10;
      const auto x = static_cast<float>(i * 104729 % 97) / 10;
      const auto height = static_cast<float>(i % 5) / 3;
      boxes.insert(boxes.end(), {y, x + 1.3F, y + height, x});
    }
    for (int64_t i = 0; i < 2 * n * classes; ++i) scores.push_back(order(i % n));
  }

  // As the operator's description says.
  std::vector<int64_t> definition(int64_t most, float overlap, float least) const {
    std::vector<int64_t> all;
    for (int64_t row = 0; row < 2 * classes; ++row) {
      std::vector<int64_t> left;
      const float* score = scores.data() + row * n;
      for (int64_t i = 0; i < n; ++i) {
        if (score[i] > least) left.push_back(i);
      }
      std::stable_sort(left.begin(), left.end(),
                       [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      std::vector<int64_t> kept;
      for (const int64_t i : left) {
        if (static_cast<int64_t>(kept.size()) == most) break;
        const int64_t first = row / classes * n;
        const bool hidden = std::any_of(kept.begin(), kept.end(), [&](int64_t better) {
          return overlap_of(first + i, first + better) > overlap;
        });
        if (hidden) continue;
        kept.push_back(i);
        all.insert(all.end(), {row / classes, row % classes, i});
      }
    }
    return all;
  }

  void check(int64_t most, float overlap, float least) const {
    const std::vector<int64_t> expected = definition(most, overlap, least);
    OpTester t("NonMaxSuppression", 11);
    t.input<float>({2, n, 4}, boxes).input<float>({2, classes, n}, scores);
    t.input<int64_t>({1}, {most}).input<float>({1}, {overlap}).input<float>({1}, {least});
    t.expect<int64_t>(0, {static_cast<int64_t>(expected.size() / 3), 3}, expected).run();
  }

  float overlap_of(int64_t a, int64_t b) const {
    const float* p = boxes.data() + a * 4;
    const float* q = boxes.data() + b * 4;
    const float height = std::min(p[2], q[2]) - std::max(p[0], q[0]);
    const float width = std::min(p[1], q[1]) - std::max(p[3], q[3]);
    if (!(height > 0) || !(width > 0)) return 0;
    const float both = height * width;
    const float either = (p[2] - p[0]) * (p[1] - p[3]) + (q[2] - q[0]) * (q[1] - q[3]) - both;
    return both / either;
  }

  int64_t n;
  int64_t classes;
  std::vector<float> boxes;
  std::vector<float> scores;
};

TEST(NonMaxSuppression, AgreesWithTheDefinition) {
  for (const int64_t n : {1, 2, 3, 4, 5, 16, 17, 40, 700}) {
    const Scene scene(n, 3, [](int64_t i) { return static_cast<float>(i * 7907 % 1009) - 300; });
    for (const int64_t most : {1, 5, 100, 100000}) {
      for (const float overlap : {0.0F, 0.3F, 1.0F}) {
        scene.check(most, overlap, -250);
        scene.check(most, overlap, 100);
      }
    }
  }
}

// Scores are put in order a part at a time; these are orders, some of which such ways are slow for.
TEST(NonMaxSuppression, TakesScoresInAnyOrder) {
  constexpr int64_t kBoxes = 3000;
  const std::function<float(int64_t)> orders[] = {
      [](int64_t i) { return static_cast<float>(i); },
      [](int64_t i) { return static_cast<float>(-i); },
      [](int64_t i) { return static_cast<float>(std::min(i, kBoxes - i)); },
      [](int64_t i) { return static_cast<float>(std::max(i, kBoxes - i)); },
      [](int64_t i) { return static_cast<float>(i % 2 == 0 ? i : -i); },
      [](int64_t i) { return static_cast<float>(i % 7); }, [](int64_t) { return 1.0F; },
      // All signs, infinities, zeros of both signs, which are equal, and what is nearly one.
      [](int64_t i) {
        const float values[] = {0.0F, -0.0F, 1e-45F, -1e-45F, INFINITY, -1e30F, 3, -2, NAN};
        return values[i % 9];
      }};
  for (const auto& order : orders) {
    const Scene scene(kBoxes, 1, order);
    scene.check(kBoxes, 0.9F, -1e31F);
    scene.check(20, 0.5F, -1e31F);
  }
}

// More classes than run before somebody may cancel.
TEST(NonMaxSuppression, TakesManyBoxes) {
  const Scene scene(60000, 10, [](int64_t i) { return static_cast<float>(i * 7907 % 60013); });
  scene.check(3, 0.1F, 100);
}

TEST(NonMaxSuppression, RefusesShapesThatDoNotFit) {
  OpTester t("NonMaxSuppression", 11);
  t.input<float>({1, 1, 4}, {0, 0, 1, 1}).input<float>({1, 1, 2}, {1, 2}).outputs(1);
  t.fails("expected [b,n,4] and [b,c,n]");
  OpTester two = boxes(1, 0.5F, kScores);
  two.input<float>({2}, {0, 0}).outputs(1).fails("input 4 has 2 elements");
}

}  // namespace
}  // namespace folio
