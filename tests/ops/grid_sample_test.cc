#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester sample(const char* mode, const char* padding, int align, const std::vector<float>& grid) {
  OpTester t("GridSample", 20);
  t.attr("mode", mode).attr("padding_mode", padding).attr("align_corners", align);
  t.input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  t.input<float>({1, 1, static_cast<int64_t>(grid.size()) / 2, 2}, grid);
  return t;
}

TEST(GridSample, InterpolatesBetweenElements) {
  OpTester corners = sample("linear", "zeros", 1, {-1, -1, 0, 0, 1, -1, 0, 1});
  corners.expect<float>(0, {1, 1, 1, 4}, {1, 2.5F, 2, 3.5F}, 1e-6).run();
  OpTester centres = sample("linear", "zeros", 0, {-0.5F, -0.5F, -1, -1});
  centres.expect<float>(0, {1, 1, 1, 2}, {1, 0.25F}, 1e-6).run();
}

TEST(GridSample, PadsWhatIsOutside) {
  const std::vector<float> far = {-5, -0.5F, NAN, 0, INFINITY, 0.5F};
  OpTester zeros = sample("nearest", "zeros", 0, far);
  zeros.expect<float>(0, {1, 1, 1, 3}, {0, 0, 0}).run();
  OpTester border = sample("nearest", "border", 0, {-5, -0.5F, 1e30F, 0.5F});
  border.expect<float>(0, {1, 1, 1, 2}, {1, 4}).run();
  OpTester mirrored = sample("nearest", "reflection", 0, {-1.5F, -0.5F, 1.6F, 0.5F, -2.6F, -0.5F});
  mirrored.expect<float>(0, {1, 1, 1, 3}, {1, 4, 2}).run();
  OpTester any = sample("cubic", "reflection", 1, {NAN, -INFINITY, 1e30F, -1e30F});
  any.outputs(1).run();
}

TEST(GridSample, SamplesVolumesOfIntegers) {
  OpTester t("GridSample", 22);
  t.attr("mode", "nearest").input<int32_t>({1, 2, 1, 1, 2}, {1, 2, 3, 4});
  t.input<double>({1, 1, 1, 1, 3}, {0.5, 0, 0}).expect<int32_t>(0, {1, 2, 1, 1, 1}, {2, 4}).run();
}

TEST(GridSample, RefusesGridsThatDoNotFit) {
  OpTester t("GridSample", 16);
  t.input<float>({1, 1, 1, 1}, {1}).input<float>({1, 1, 1, 3}, {0, 0, 0}).outputs(1);
  t.fails("expected [n,c,in..]");
  OpTester mode("GridSample", 16);
  mode.attr("mode", "linear").input<float>({1, 1, 1, 1}, {1}).input<float>({1, 1, 1, 2}, {0, 0});
  mode.outputs(1).fails("mode is 'linear'");
  OpTester empty("GridSample", 16);
  empty.input<float>({1, 1, 0, 1}, {}).input<float>({1, 1, 1, 2}, {0, 0}).outputs(1);
  empty.fails("nothing to sample");
}

TEST(GridSample, MovesElementsThatAreNoNumbers) {
  OpTester t("GridSample", 20);
  t.attr("mode", "nearest").input<std::string>({1, 2, 1, 2}, {"a", "b", "c", "d"});
  t.input<float>({1, 1, 3, 2}, {0.5F, 0, -0.5F, 0, 5, 5});
  t.expect<std::string>(0, {1, 2, 1, 3}, {"b", "a", "", "d", "c", ""}).run();
  OpTester flags("GridSample", 20);
  flags.attr("mode", "nearest").attr("padding_mode", "border");
  flags.input<bool>({1, 1, 1, 2}, {false, true}).input<float>({1, 1, 2, 2}, {9, 9, -9, 0});
  flags.expect<bool>(0, {1, 1, 1, 2}, {true, false}).run();
  OpTester linear("GridSample", 20);
  linear.input<bool>({1, 1, 1, 2}, {false, true}).input<float>({1, 1, 1, 2}, {0, 0}).outputs(1);
  linear.fails("by mode 'nearest' alone");
}

}  // namespace
}  // namespace folio
