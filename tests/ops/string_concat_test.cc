#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(StringConcat, Broadcasts) {
  OpTester t("StringConcat", 20);
  t.input<std::string>({2, 1}, {"a", "b"}).input<std::string>({2}, {"1", ""});
  t.expect<std::string>(0, {2, 2}, {"a1", "a", "b1", "b"}).run();
  OpTester fit("StringConcat", 20);
  fit.input<std::string>({2}, {"a", "b"})
      .input<std::string>({3}, {"", "", ""})
      .outputs(1)
      .fails("broadcast");
  OpTester type("StringConcat", 20);
  type.input<float>({1}, {1}).input<std::string>({1}, {""}).outputs(1).fails("expected string");
}

TEST(StringSplit, CutsAtADelimiterOrWhiteSpace) {
  OpTester comma("StringSplit", 20);
  comma.attr("delimiter", ", ").input<std::string>({2}, {"a, b, ", "c"});
  comma.expect<std::string>(0, {2, 3}, {"a", "b", "", "c", "", ""});
  comma.expect<int64_t>(1, {2}, {3, 1}).run();
  OpTester space("StringSplit", 20);
  space.input<std::string>({2}, {"  a \t b ", " "})
      .expect<std::string>(0, {2, 2}, {"a", "b", "", ""});
  space.expect<int64_t>(1, {2}, {2, 0}).run();
}

TEST(StringSplit, LeavesTheRestAfterMaxsplitCuts) {
  OpTester t("StringSplit", 20);
  t.attr("delimiter", "-").attr("maxsplit", 1).input<std::string>({1}, {"a-b-c"});
  t.expect<std::string>(0, {1, 2}, {"a", "b-c"}).expect<int64_t>(1, {1}, {2}).run();
  OpTester space("StringSplit", 20);
  space.attr("maxsplit", 1).input<std::string>({1}, {" a  b c "});
  space.expect<std::string>(0, {1, 2}, {"a", "b c "}).expect<int64_t>(1, {1}, {2}).run();
}

}  // namespace
}  // namespace folio
