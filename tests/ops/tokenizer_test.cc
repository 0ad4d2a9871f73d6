#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

// A Tokenizer without what says where tokens are.
OpTester tokenizer(int mark = 0, int mincharnum = 1, const char* pad = "#") {
  OpTester t("Tokenizer", 1, kMs);
  t.attr("mark", mark).attr("mincharnum", mincharnum).attr("pad_value", pad);
  return t;
}

// What skl2onnx writes for CountVectorizer and TfidfVectorizer.
TEST(Tokenizer, FindsTheWordsOfEveryText) {
  OpTester t = tokenizer();
  t.attr("tokenexp", "[a-zA-Z0-9_]+");
  t.input<std::string>({3}, {"this is, a test", "caf\xc3\xa9_1!", "..."});
  t.expect<std::string>(0, {3, 4},
                        {"this", "is", "a", "test", "caf", "_1", "#", "#", "#", "#", "#", "#"});
  t.expect_inferred(0, "tensor(string)[3,?]");
  t.run();
}

TEST(Tokenizer, MarksBeginAndEndBeforeThePadding) {
  OpTester t = tokenizer(1, 1, "pad");
  t.attr("tokenexp", "\\w+");
  t.input<std::string>({2, 1}, {"a bc", "d"});
  t.expect<std::string>(0, {2, 1, 4}, {"\x02", "a", "bc", "\x03", "\x02", "d", "\x03", "pad"});
  t.expect_inferred(0, "tensor(string)[2,1,?]");
  t.run();
}

TEST(Tokenizer, EveryCharacterIsATokenOfAnEmptySeparatorAndOfADot) {
  const std::vector<std::string> characters = {"\x02", "a",    "\xc3\xa9", "\xf0\x9f\x99\x82",
                                               "\n",   "\x03", "\x02",     "\x03",
                                               "#",    "#",    "#",        "#"};
  OpTester separator = tokenizer(1);
  separator.attr_strings("separators", {""});
  separator.input<std::string>({2}, {"a\xc3\xa9\xf0\x9f\x99\x82\n", ""});
  separator.expect<std::string>(0, {2, 6}, characters).run();
  OpTester dot = tokenizer(1);
  dot.attr("tokenexp", ".").input<std::string>({2}, {"a\xc3\xa9\xf0\x9f\x99\x82\n", ""});
  dot.expect<std::string>(0, {2, 6}, characters).run();
}

TEST(Tokenizer, SeparatorsCutThePiecesOfThoseBefore) {
  OpTester t = tokenizer();
  t.attr_strings("separators", {" ", "[.]", "\\?", ",+", "(?i)x"});
  t.input<std::string>({1, 2}, {"a b.c?,,dXe", "  .  "});
  t.expect<std::string>(0, {1, 2, 5}, {"a", "b", "c", "d", "e", "#", "#", "#", "#", "#"}).run();
}

TEST(Tokenizer, SeparatorsMatchTheLongest) {
  OpTester t = tokenizer();
  t.attr_strings("separators", {";|;;"});
  t.input<std::string>({1}, {"a;;b;c"});
  t.expect<std::string>(0, {1, 3}, {"a", "b", "c"}).run();
}

TEST(Tokenizer, LeavesOutWhatIsTooShort) {
  OpTester pieces = tokenizer(0, 2);
  pieces.attr_strings("separators", {" "}).input<std::string>({1}, {"\xc3\xa9 bb c ddd"});
  pieces.expect<std::string>(0, {1, 2}, {"bb", "ddd"}).run();
  // Behind the first character of a match that is too short the search goes on.
  OpTester matches = tokenizer(0, 3);
  matches.attr("tokenexp", "a.|b...").input<std::string>({2}, {"abcde", "ab"});
  matches.expect<std::string>(0, {2, 1}, {"bcde", "#"}).run();
}

TEST(Tokenizer, EmptyMatchesTakeACharacterOut) {
  OpTester separator = tokenizer();
  separator.attr_strings("separators", {"x*"}).input<std::string>({1}, {"axxbc"});
  separator.expect<std::string>(0, {1, 0}, {}).run();
  OpTester boundary = tokenizer();
  boundary.attr_strings("separators", {"\\b"}).input<std::string>({1}, {"abc de"});
  boundary.expect<std::string>(0, {1, 2}, {"bc", "e"}).run();
  OpTester expression = tokenizer();
  expression.attr("tokenexp", "x*").input<std::string>({1}, {"axxbx"});
  expression.expect<std::string>(0, {1, 2}, {"xx", "x"}).run();
}

TEST(Tokenizer, GivesNoTokensWithoutAText) {
  OpTester one = tokenizer(1);
  one.attr("tokenexp", "a").input<std::string>({0}, {});
  one.expect<std::string>(0, {0}, {}).run();
  OpTester two = tokenizer(1);
  two.attr("tokenexp", "a").input<std::string>({2, 0}, {});
  two.expect<std::string>(0, {2, 0}, {}).run();
  OpTester nothing = tokenizer(1);
  nothing.attr("tokenexp", "a").input<std::string>({2, 1}, {"b", ""});
  nothing.expect<std::string>(0, {2, 1, 0}, {}).run();
}

TEST(Tokenizer, RefusesTextsThatAreNotUtf8) {
  for (const char* text : {"\xff", "a\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    OpTester t = tokenizer();
    t.attr("tokenexp", "a").input<std::string>({2}, {"a", text});
    t.outputs(1).fails("text 1 of input 0 is not UTF-8");
  }
}

TEST(Tokenizer, RefusesOtherShapesAndAttributes) {
  OpTester scalar = tokenizer();
  scalar.attr("tokenexp", "a").input<std::string>({}, {"a"}).outputs(1).fails("input 0");
  OpTester cube = tokenizer();
  cube.attr("tokenexp", "a").input<std::string>({1, 1, 1}, {"a"}).outputs(1).fails("input 0");
  OpTester neither = tokenizer();
  neither.input<std::string>({1}, {"a"}).outputs(1).fails("neither separators nor tokenexp");
  OpTester none = tokenizer();
  none.attr_strings("separators", {}).input<std::string>({1}, {"a"}).outputs(1);
  none.fails("separators is empty");
  OpTester empty = tokenizer();
  empty.attr("tokenexp", "").input<std::string>({1}, {"a"}).outputs(1).fails("tokenexp is empty");
  OpTester least = tokenizer(0, 0);
  least.attr("tokenexp", "a").input<std::string>({1}, {"a"}).outputs(1).fails("mincharnum is 0");
  OpTester characters = tokenizer(0, 2);
  characters.attr("tokenexp", ".").input<std::string>({1}, {"a"}).outputs(1);
  characters.fails("every character is a token");
  OpTester python = tokenizer();
  python.attr("tokenexp", "(?u)\\b\\w\\w+\\b").input<std::string>({1}, {"a"}).outputs(1);
  python.fails("attribute 'tokenexp': pattern '(?u)\\b\\w\\w+\\b' has what RE2 does not know");
  OpTester unicode = tokenizer();
  unicode.attr_strings("separators", {" ", "\\p{L}"}).input<std::string>({1}, {"a"}).outputs(1);
  unicode.fails("a class of Unicode");
}

}  // namespace
}  // namespace folio
