// Plans of broadcasts: every element of the output meets the right ones of both inputs.
#include "core/ops/op_broadcast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace folio {
namespace {

// All shapes of up to three dims of 0 to 3.
std::vector<Shape> small_shapes() {
  std::vector<Shape> shapes = {Shape()};
  for (size_t from = 0, rank = 1; rank <= 3; ++rank) {
    const size_t to = shapes.size();
    for (; from < to; ++from) {
      for (int64_t dim = 0; dim <= 3; ++dim) {
        Shape longer = shapes[from];
        longer.push_back(dim);
        shapes.push_back(longer);
      }
    }
  }
  return shapes;
}

// Where the element of `shape` stands that element `at` of the broadcast shape `out` meets.
int64_t place_of(const Shape& shape, const Shape& out, int64_t at) {
  int64_t place = 0;
  int64_t stride = 1;
  for (int i = 1; i <= shape.rank(); ++i) {
    const int64_t dim = shape[shape.rank() - i];
    const int64_t index = at % out[out.rank() - i];
    at /= out[out.rank() - i];
    if (dim > 1) place += index * stride;
    stride *= dim;
  }
  return place;
}

TEST(BroadcastPlan, MeetsTheRightElements) {
  InlineParallel parallel;
  for (const Shape& a : small_shapes()) {
    for (const Shape& b : small_shapes()) {
      const auto out = broadcast(a, b);
      const auto made = plan_broadcast(a, b);
      ASSERT_EQ(made.is_ok(), out.is_ok()) << a.to_string() << b.to_string();
      if (!made.is_ok()) continue;
      const BroadcastPlan& plan = made.value();
      ASSERT_EQ(plan.out, out.value()) << a.to_string() << b.to_string();
      int64_t seen = 0;
      const auto check = [&](int64_t a_at, int64_t b_at, int64_t y_at, int64_t count) {
        for (int64_t i = 0; i < count; ++i, ++seen) {
          ASSERT_EQ(a_at + i * plan.a_step, place_of(a, plan.out, y_at + i))
              << a.to_string() << b.to_string() << y_at + i;
          ASSERT_EQ(b_at + i * plan.b_step, place_of(b, plan.out, y_at + i))
              << a.to_string() << b.to_string() << y_at + i;
        }
      };
      for_broadcast_rows(parallel, plan, check);
      ASSERT_EQ(seen, plan.out.count()) << a.to_string() << b.to_string();
    }
  }
}

// Chunks of seven, whatever was wished for.
class Sevens final : public Parallel {
 public:
  int thread_count() const override { return 1; }
  void run(int64_t count, int64_t, Task task) override {
    for (int64_t begin = 0; begin < count; begin += 7) {
      task.run(task.state, begin, std::min(begin + 7, count));
    }
  }
};

template <typename T>
void expect_pieces(Parallel& parallel, const Shape& a, const Shape& b) {
  const auto made = plan_broadcast(a, b);
  if (!made.is_ok()) return;
  const BroadcastPlan& plan = made.value();
  // Elements that say where they stand; neighbours far and near differ.
  const auto numbers = [](const Shape& shape) {
    std::vector<T> out(static_cast<size_t>(shape.count()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(i * 7 + i / 251);
    return out;
  };
  const std::vector<T> of_a = numbers(a);
  const std::vector<T> of_b = numbers(b);
  const auto bytes = [](const std::vector<T>& of) {
    return reinterpret_cast<const uint8_t*>(of.data());
  };
  int64_t seen = 0;
  for_broadcast_pieces(
      parallel, plan, bytes(of_a), sizeof(T), bytes(of_b), sizeof(T),
      [&](const uint8_t* left, int64_t a_step, const uint8_t* right, int64_t b_step, int64_t at,
          int64_t count) {
        for (int64_t i = 0; i < count; ++i, ++seen) {
          const auto from_a = static_cast<size_t>(place_of(a, plan.out, at + i));
          const auto from_b = static_cast<size_t>(place_of(b, plan.out, at + i));
          ASSERT_EQ(reinterpret_cast<const T*>(left)[i * a_step], of_a[from_a]) << at + i;
          ASSERT_EQ(reinterpret_cast<const T*>(right)[i * b_step], of_b[from_b]) << at + i;
        }
      });
  EXPECT_EQ(seen, plan.out.count());
}

TEST(BroadcastPieces, HoldTheRightElements) {
  const std::pair<Shape, Shape> kLong[] = {{{300, 1, 1, 2}, {1, 7, 7, 2}}, {{5, 200, 3}, {200, 1}},
                                           {{5, 200, 3}, {5, 1, 3}},       {{1000, 4}, {4}},
                                           {{7, 1, 5}, {1, 400, 1}},       {{2000, 1}, {1, 15}},
                                           {{3, 1, 2, 1}, {1, 9, 1, 11}},  {{600, 16}, {600, 1}},
                                           {{2, 513, 1}, {1, 1, 9}},       {{3, 40, 100}, {100}},
                                           {{3, 40, 100}, {3, 1, 100}}};
  InlineParallel one;
  Sevens sevens;
  const auto check = [&](const Shape& a, const Shape& b) {
    SCOPED_TRACE(a.to_string() + b.to_string());
    for (Parallel* parallel : {static_cast<Parallel*>(&one), static_cast<Parallel*>(&sevens)}) {
      expect_pieces<uint8_t>(*parallel, a, b);
      expect_pieces<uint16_t>(*parallel, a, b);
      expect_pieces<uint32_t>(*parallel, a, b);
      expect_pieces<uint64_t>(*parallel, a, b);
    }
  };
  for (const auto& [a, b] : kLong) {
    check(a, b);
    check(b, a);
  }
  for (const Shape& a : small_shapes()) {
    for (const Shape& b : small_shapes()) check(a, b);
  }
}

}  // namespace
}  // namespace folio
