#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(AffineGrid, GivesThePlacesOfTheIdentity) {
  OpTester t("AffineGrid", 20);
  t.input<float>({1, 2, 3}, {1, 0, 0, 0, 1, 0}).constant<int64_t>({4}, {1, 3, 1, 2});
  t.expect<float>(0, {1, 1, 2, 2}, {-0.5F, 0, 0.5F, 0})
      .expect_inferred(0, "tensor(float)[1,1,2,2]");
  t.run();
  OpTester align("AffineGrid", 20);
  align.attr("align_corners", 1).input<float>({1, 2, 3}, {2, 0, 1, 0, 1, 0});
  align.input<int64_t>({4}, {1, 3, 1, 2}).expect<float>(0, {1, 1, 2, 2}, {-1, 0, 3, 0}).run();
  OpTester rank("AffineGrid", 20);
  rank.input<float>({1, 2, 3}, {1, 0, 0, 0, 1, 0}).input<int64_t>({3}, {1, 1, 1}).outputs(1);
  rank.fails("size has 3 entries");
}

}  // namespace
}  // namespace folio
