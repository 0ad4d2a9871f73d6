#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Col2Im, SumsOverlappingBlocks) {
  OpTester t("Col2Im", 18);
  t.input<float>({1, 2, 2}, {1, 2, 3, 4}).constant<int64_t>({1}, {3}).input<int64_t>({1}, {2});
  t.expect<float>(0, {1, 1, 3}, {1, 5, 4}).run();
  OpTester padded("Col2Im", 18);
  padded.attr_ints("pads", {1, 0}).attr_ints("strides", {2}).input<float>({1, 2, 2}, {1, 2, 3, 4});
  padded.input<int64_t>({1}, {3}).input<int64_t>({1}, {2}).expect<float>(0, {1, 1, 3}, {3, 2, 4});
  padded.run();
}

TEST(Col2Im, RefusesWhatDoesNotFit) {
  OpTester columns("Col2Im", 18);
  columns.input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({1}, {3});
  columns.input<int64_t>({1}, {2}).outputs(1).fails("expected [n, c * 2, 2]");
  for (const int64_t block : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    OpTester t("Col2Im", 18);
    t.input<float>({1, 2, 2}, {1, 2, 3, 4}).input<int64_t>({1}, {3}).input<int64_t>({1}, {block});
    t.outputs(1).fails("block");
  }
}

}  // namespace
}  // namespace folio
