#include <gtest/gtest.h>

#include "core/ops/op_regex.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.is_ok()) << regex.status().message();
  return regex.is_ok() && RegexSearch(regex.value()).full_match(text);
}

// What is found from `from` on, between brackets in the text.
std::string found(std::string_view pattern, std::string_view text, size_t from = 0) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.is_ok()) << regex.status().message();
  if (!regex.is_ok()) return "?";
  const auto match = RegexSearch(regex.value()).find(text, from);
  if (!match) return "";
  std::string out(text);
  out.insert(match->end, "]");
  out.insert(match->begin, "[");
  return out;
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

TEST(Regex, FindsTheFirstAndOfThoseTheLongest) {
  EXPECT_EQ(found("a|ab", "xabx"), "x[ab]x");
  EXPECT_EQ(found("a+?", "baaa"), "b[aaa]");
  EXPECT_EQ(found("abcd|bc", "abcx"), "a[bc]x");
  EXPECT_EQ(found("abcd|bc", "xabcd"), "x[abcd]");
  EXPECT_EQ(found("x*", "axx"), "[]axx");
  EXPECT_EQ(found("x*", "axx", 1), "a[xx]");
  EXPECT_EQ(found("x*", "axx", 3), "axx[]");
  EXPECT_EQ(found("x", "yyy"), "");
  EXPECT_EQ(found("\xc3\xa9+", "caf\xc3\xa9\xc3\xa9!"), "caf[\xc3\xa9\xc3\xa9]!");
}

TEST(Regex, LooksAtWhatStandsBeforeTheSearch) {
  EXPECT_EQ(found("^a", "aaa", 1), "");
  EXPECT_EQ(found("(?m)^a", "a\na", 1), "a\n[a]");
  EXPECT_EQ(found("(?m)a$", "ba\na"), "b[a]\na");
  EXPECT_EQ(found("a$", "ba\na"), "ba\n[a]");
  EXPECT_EQ(found("\\bb+\\b", "bb abb b", 1), "bb abb [b]");
  EXPECT_EQ(found("\\Bb", "bb abb"), "b[b] abb");
  EXPECT_EQ(found("\\b", "\xc3\xa9t"), "\xc3\xa9[]t");  // a letter of ASCII alone
}

TEST(Regex, KnowsFlags) {
  EXPECT_TRUE(matches("(?i)straSSe", "STRASse"));
  EXPECT_TRUE(matches("(?i:a)b", "Ab"));
  EXPECT_FALSE(matches("(?i:a)b", "AB"));
  EXPECT_TRUE(matches("(?:(?i)a|b)c", "Bc"));
  EXPECT_FALSE(matches("(?i)a(?-i)b", "AB"));
  EXPECT_TRUE(matches("(?i)[^k]", "j"));
  EXPECT_FALSE(matches("(?i)[^k]", "\xe2\x84\xaa"));  // the sign of Kelvin
  EXPECT_FALSE(matches("(?i)\\W", "\xc5\xbf"));       // the long s
  EXPECT_TRUE(matches("(?i)\xe4\xb8\x80", "\xe4\xb8\x80"));
  EXPECT_TRUE(matches("(?s).", "\n"));
  EXPECT_TRUE(matches("(?s-s:.)|(?Us)..", "\n\n"));
  EXPECT_TRUE(matches("(?<first>a)(?P<second_2>b)", "ab"));
}

TEST(Regex, ReadsPatternsAsRE2) {
  EXPECT_TRUE(matches("\\Qab\\E+", "abb"));  // of the last character
  EXPECT_TRUE(matches("\\Q(a|\\E(b)\\Q)", "(a|b)"));
  EXPECT_TRUE(matches("a{01}", "a{01}"));
  EXPECT_TRUE(matches("\\101\\0\\x{0000041}", std::string_view("A\0A", 3)));
  EXPECT_TRUE(matches("[[:x]+", ":x["));
  EXPECT_TRUE(matches("[\\d-z]+", "1-z"));
  EXPECT_TRUE(matches("\\b*a", "a"));
  EXPECT_TRUE(matches("\\_a(?i)*(?m)+B", "_aab"));  // flags do not part an atom from its repetition
  EXPECT_TRUE(matches("(?P<n>a)(?P<n>b)", "ab"));
}

TEST(Regex, MatchesNothingWithABrokenByte) {
  EXPECT_FALSE(matches(".", "\xff"));
  EXPECT_FALSE(matches("[^a]", "\xc3"));
  EXPECT_FALSE(matches("(?s)..?.?", "\xe0\x80\x80"));
  EXPECT_EQ(found("a",
                  "\xff\xe2\x82"
                  "a"),
            "\xff\xe2\x82[a]");
}

TEST(Regex, IsFastWhereBacktrackingIsNot) {
  EXPECT_FALSE(matches("(a*)*(a|aa)+b", std::string(2000, 'a')));
}

TEST(Regex, TakesLongPatternsInTimeLinearInThem) {
  std::string empty_groups;
  for (int i = 0; i < 20000; ++i) empty_groups += "()";
  EXPECT_TRUE(matches(empty_groups, ""));
  std::string letters(20000, 'a');
  letters.push_back('b');
  EXPECT_EQ(found(letters, std::string(200, 'a')), "");
  EXPECT_TRUE(matches("(?:x?){1000}", std::string(1000, 'x')));
}

TEST(Regex, RefusesMalformedPatterns) {
  for (const char* pattern : {"(",
                              ")",
                              "[",
                              "[a",
                              "*",
                              "a**",
                              "a{3,2}",
                              "a{1001}",
                              "\\",
                              "[b-a]",
                              "\\x4",
                              "\\x{110000}",
                              "(?P<a",
                              "(?P<>a)",

                              "[[:no:]]",
                              "[a",
                              "[a-\\d]",
                              "{2}",
                              "a|*",
                              "a{2}{3}",
                              "a*{2}",
                              "\\1",
                              "\\8",

                              "\\Z",
                              "(?u)a",
                              "(?i-)a",
                              "(?=a)",
                              "(?<=a)",
                              "\xff",
                              "((a{1000}){1000}){1000}"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.is_ok()) << pattern;
    EXPECT_EQ(regex.status().code(), Code::kInvalidGraph) << pattern;
  }
  for (const char* pattern :
       {"\\pL", "[\\p{Greek}]", "\\C", "(?i)\xc3\xa9", "(?i)[\xc3\xa0-\xc3\xbf]"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.is_ok()) << pattern;
    EXPECT_EQ(regex.status().code(), Code::kNotImplemented) << pattern;
  }
  EXPECT_FALSE(Regex::compile(std::string(100000, '(')).is_ok());
  EXPECT_FALSE(Regex::compile(std::string(200000, '[')).is_ok());
  std::string large = "(?:";
  large.append(40000, 'a').append("){1000}");
  EXPECT_FALSE(Regex::compile(large).is_ok());
}

}  // namespace
}  // namespace folio
