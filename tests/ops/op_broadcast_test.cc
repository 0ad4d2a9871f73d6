// Plans of broadcasts: every element of the output meets the right ones of both inputs.
#include "core/ops/op_broadcast.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace folio
