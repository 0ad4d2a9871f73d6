#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(StringNormalizer, ChangesCaseAndDropsStopWords) {
  OpTester upper("StringNormalizer", 10);
  upper.attr("case_change_action", "UPPER").attr_strings("stopwords", {"Monday"});
  upper.input<std::string>({1, 3}, {"monday",
                                    "stra\xc3\x9f"
                                    "e \xc3\xa9\xc3\xbf",
                                    "\xd0\xb6"});
  upper
      .expect<std::string>(0, {1, 2},
                           {"STRA\xc3\x9f"
                            "E \xc3\x89\xc5\xb8",
                            "\xd0\x96"})
      .run();
  OpTester lower("StringNormalizer", 10);
  lower.attr("case_change_action", "LOWER").attr("is_case_sensitive", 1);
  lower.attr_strings("stopwords", {"Monday"})
      .input<std::string>({2}, {"MONDAY \xce\xa9", "Monday"});
  lower.expect<std::string>(0, {1}, {"monday \xcf\x89"}).run();
  OpTester none("StringNormalizer", 10);
  none.attr_strings("stopwords", {"a"}).input<std::string>({1}, {"A"});
  none.expect<std::string>(0, {1}, {""}).run();
  OpTester rank("StringNormalizer", 10);
  rank.input<std::string>({2, 1}, {"a", "b"}).outputs(1).fails("expected [c] or [1,c]");
}

}  // namespace
}  // namespace folio
