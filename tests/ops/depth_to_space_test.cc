#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kPixels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

TEST(DepthToSpace, PutsBlocksOfChannelsNextToEachOther) {
  OpTester dcr("DepthToSpace", 13);
  dcr.attr("blocksize", 2).input<float>({1, 8, 1, 2}, kPixels);
  dcr.expect<float>(0, {1, 2, 2, 4}, {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15}).run();
  OpTester crd("DepthToSpace", 11);
  crd.attr("blocksize", 2).attr("mode", "CRD").input<float>({1, 8, 1, 2}, kPixels);
  crd.expect<float>(0, {1, 2, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}).run();
}

TEST(SpaceToDepth, UndoesDepthToSpace) {
  OpTester t("SpaceToDepth", 13);
  t.attr("blocksize", 2);
  t.input<float>({1, 2, 2, 4}, {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15});
  t.expect<float>(0, {1, 8, 1, 2}, kPixels).run();
}

TEST(DepthToSpace, TakesNothing) {
  OpTester t("DepthToSpace", 1);
  t.attr("blocksize", 2).input<float>({0, 4, 1, 1}, {}).expect<float>(0, {0, 1, 2, 2}, {}).run();
}

TEST(DepthToSpace, RefusesDimsThatDoNotDivide) {
  OpTester channels("DepthToSpace", 13);
  channels.attr("blocksize", 2).input<float>({1, 3, 1, 1}, {1, 2, 3}).fails("multiple of 4");
  OpTester height("SpaceToDepth", 13);
  height.attr("blocksize", 2).input<float>({1, 1, 3, 1}, {1, 2, 3}).fails("multiples of 2");
  OpTester block("DepthToSpace", 13);
  block.attr("blocksize", 0).input<float>({1, 1, 1, 1}, {1}).fails("blocksize is 0");
  OpTester mode("DepthToSpace", 13);
  mode.attr("blocksize", 1).attr("mode", "X").input<float>({1, 1, 1, 1}, {1}).fails("mode is 'X'");
  OpTester huge("DepthToSpace", 13);
  huge.attr("blocksize", 1 << 30).input<float>({0, 0, INT64_MAX, 1}, {}).fails("too large");
}

}  // namespace
}  // namespace folio
