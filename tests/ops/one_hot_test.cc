#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(OneHot, TurnsOneElementOfEachNewAxisOn) {
  OpTester t("OneHot", 11);
  t.input<int64_t>({3}, {0, -1, 5}).constant<int64_t>({}, {3}).input<float>({2}, {2, 5});
  t.expect<float>(0, {3, 3}, {5, 2, 2, 2, 2, 5, 2, 2, 2}).expect_inferred(0, "tensor(float)[3,3]");
  t.run();
}

TEST(OneHot, PutsTheAxisAnywhere) {
  OpTester t("OneHot", 9);
  t.attr("axis", 0).input<float>({1, 2}, {1.9F, -1}).input<float>({1}, {2});
  t.input<std::string>({2}, {"-", "x"});
  t.expect<std::string>(0, {2, 1, 2}, {"-", "-", "x", "-"}).run();
}

TEST(OneHot, RefusesDepthsThatAreNone) {
  OpTester negative("OneHot", 11);
  negative.input<int64_t>({1}, {0}).input<int64_t>({}, {-1}).input<float>({2}, {0, 1}).outputs(1);
  negative.fails("negative");
  OpTester values("OneHot", 11);
  values.input<int64_t>({1}, {0}).input<int64_t>({}, {1}).input<float>({3}, {0, 1, 2}).outputs(1);
  values.fails("values 3");
  OpTester strings("OneHot", 11);
  strings.input<std::string>({1}, {"0"}).input<int64_t>({}, {1}).input<float>({2}, {0, 1});
  strings.outputs(1).fails("string");
  OpTester huge("OneHot", 11);
  huge.input<int64_t>({4}, {0, 0, 0, 0}).input<int64_t>({}, {INT64_MAX}).input<float>({2}, {0, 1});
  huge.outputs(1).fails("overflow");
}

}  // namespace
}  // namespace folio
