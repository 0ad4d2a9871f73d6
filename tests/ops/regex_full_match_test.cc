#include <gtest/gtest.h>

#include "core/ops/op_regex.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.is_ok()) << regex.status().message();
  return regex.is_ok() && regex.value().full_match(text);
}

TEST(RegexFullMatch, TellsWhetherTheWholeTextMatches) {
  OpTester t("RegexFullMatch", 20);
  t.attr("pattern", "www\\.[\\w.-]+\\.com").input<std::string>({2, 1}, {"www.a-b.com", "www.a.co"});
  t.expect<bool>(0, {2, 1}, {true, false}).run();
  OpTester bad("RegexFullMatch", 20);
  bad.attr("pattern", "(").input<std::string>({1}, {""}).outputs(1).fails("( without a )");
}

TEST(Regex, RepeatsAndAlternates) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_FALSE(matches("a|ab", "abc"));
  EXPECT_TRUE(matches("a|ab|", ""));
  EXPECT_TRUE(matches("(a|b)*c", "abbac"));
  EXPECT_FALSE(matches("(a|b)+c", "c"));
  EXPECT_TRUE(matches("(?:ab){2,3}?", "ababab"));
  EXPECT_FALSE(matches("(ab){2,3}", "ab"));
  EXPECT_FALSE(matches("(?P<name>a{2})", "aaa"));
  EXPECT_TRUE(matches("a{2,}b?", "aaaaa"));
  EXPECT_TRUE(matches("a{0}", ""));
  EXPECT_TRUE(matches("a{,2}", "a{,2}"));
  EXPECT_TRUE(matches("()*", ""));
  EXPECT_TRUE(matches("(a*)*", "aaa"));
}

TEST(Regex, KnowsSetsAndEscapes) {
  EXPECT_TRUE(matches("[a-c\\d_-]+", "b7_-"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[]a]+", "]a"));
  EXPECT_TRUE(matches("[[:alpha:][:^space:]]", "1"));
  EXPECT_TRUE(matches("\\x41\\x{e9}\\Q.*\\E", "A\xc3\xa9.*"));
  EXPECT_TRUE(matches("\\D\\W\\S", "a-b"));
  EXPECT_FALSE(matches(".", "\n"));
  EXPECT_TRUE(matches("^\\A.$\\z", "\xe2\x82\xac"));
  EXPECT_FALSE(matches("a^b", "ab"));
  EXPECT_TRUE(matches("[\xc3\xa0-\xc3\xbf]", "\xc3\xa9"));
}

TEST(Regex, IsFastWhereBacktrackingIsNot) {
  EXPECT_FALSE(matches("(a*)*(a|aa)+b", std::string(2000, 'a')));
}

TEST(Regex, RefusesMalformedPatterns) {
  for (const char* pattern : {"(", ")", "[", "[a", "*", "a**", "a{3,2}", "a{1001}", "\\", "[b-a]",
                              "\\x4", "(?P<a", "[[:no:]]", "((a{1000}){1000}){1000}"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.is_ok()) << pattern;
    EXPECT_EQ(regex.status().code(), Code::kInvalidGraph) << pattern;
  }
  for (const char* pattern : {"(?i)a", "\\bword", "\\pL", "(?=a)"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.is_ok()) << pattern;
    EXPECT_EQ(regex.status().code(), Code::kNotImplemented) << pattern;
  }
  EXPECT_FALSE(Regex::compile(std::string(100000, '(')).is_ok());
}

}  // namespace
}  // namespace folio
