#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(ReverseSequence, ReversesTheStartOfEachItem) {
  OpTester time("ReverseSequence", 10);
  time.input<float>({3, 2}, {0, 3, 1, 4, 2, 5}).input<int64_t>({2}, {3, 2});
  time.expect<float>(0, {3, 2}, {2, 4, 1, 3, 0, 5}).run();
  OpTester batch("ReverseSequence", 10);
  batch.attr("batch_axis", 0).attr("time_axis", 1).input<float>({2, 3}, {0, 1, 2, 3, 4, 5});
  batch.input<int64_t>({2}, {0, 3}).expect<float>(0, {2, 3}, {0, 1, 2, 5, 4, 3}).run();
  OpTester length("ReverseSequence", 10);
  length.input<float>({1, 1}, {1}).input<int64_t>({1}, {2}).outputs(1).fails("length is 2");
  OpTester axes("ReverseSequence", 10);
  axes.attr("batch_axis", 0).input<float>({1, 1}, {1}).input<int64_t>({1}, {1}).outputs(1);
  axes.fails("time_axis 0");
}

}  // namespace
}  // namespace folio
