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

// Every element, by the operators' definition, in rows of any length and elements of some sizes.
template <typename T>
void check_blocks(int64_t block, int64_t width, bool crd) {
  const int64_t batch = 2, channels = 3, height = 2, all = channels * block * block;
  std::vector<T> deep, wide(static_cast<size_t>(batch * all * height * width));
  for (size_t i = 0; i < wide.size(); ++i) deep.push_back(static_cast<T>(i % 251));
  for (size_t at = 0; at < deep.size(); ++at) {
    auto rest = static_cast<int64_t>(at);
    const int64_t w = rest % width;
    const int64_t h = (rest /= width) % height;
    const int64_t c = (rest /= height) % all;
    const int64_t image = rest / all;
    const int64_t place = crd ? c % (block * block) : c / channels;
    const int64_t channel = crd ? c / (block * block) : c % channels;
    const int64_t row = (image * channels + channel) * height * block + h * block + place / block;
    wide[static_cast<size_t>((row * width + w) * block + place % block)] = deep[at];
  }
  const Shape deep_shape{batch, all, height, width};
  const Shape wide_shape{batch, channels, height * block, width * block};
  OpTester t("DepthToSpace", 13);
  t.attr("blocksize", block).attr("mode", crd ? "CRD" : "DCR");
  t.input<T>(deep_shape, deep).template expect<T>(0, wide_shape, wide).run();
  if (crd) return;
  OpTester back("SpaceToDepth", 13);
  back.attr("blocksize", block).input<T>(wide_shape, wide);
  back.template expect<T>(0, deep_shape, deep).run();
}

TEST(DepthToSpace, MovesRowsOfAnyLength) {
  for (const int64_t width : {1, 3, 4, 5, 8, 11}) {
    for (const bool crd : {false, true}) {
      for (const int64_t block : {2, 3}) {
        check_blocks<float>(block, width, crd);
        check_blocks<uint8_t>(block, width, crd);
      }
    }
  }
}

}  // namespace
}  // namespace folio
