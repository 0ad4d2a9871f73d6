#include "core/base/utf8.h"

#include <gtest/gtest.h>

namespace folio {
namespace {

const std::string kReplaced = "\xEF\xBF\xBD";

TEST(Utf8, AcceptsTheFirstAndLastCharacterOfEachLength) {
  for (const std::string text :
       {"", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(utf8_valid(text));
    EXPECT_EQ(utf8_repaired(text), text);
  }
  EXPECT_TRUE(utf8_valid(std::string_view("\0", 1)));
}

TEST(Utf8, RefusesIllFormedText) {
  for (const std::string text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2z", "\xE0\x9F\xBF", "\xE2\x82",
        "\xE2\x82z", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF0\x90\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF"}) {
    EXPECT_FALSE(utf8_valid(text));
    EXPECT_FALSE(utf8_valid("ok" + text));
    EXPECT_TRUE(utf8_valid(utf8_repaired(text + "ok")));
  }
}

TEST(Utf8, RepairKeepsWhatIsWellFormed) {
  EXPECT_EQ(utf8_repaired("a\xFFz"), "a" + kReplaced + "z");
  EXPECT_EQ(utf8_repaired("\xE2\x82"), kReplaced + kReplaced);
}

TEST(Utf8, ShorteningCutsBetweenCharacters) {
  const std::string euros = "\xE2\x82\xAC\xE2\x82\xAC";
  EXPECT_EQ(utf8_shortened(euros, 6), euros);
  EXPECT_EQ(utf8_shortened(euros, 5), "\xE2\x82\xAC...");
  EXPECT_EQ(utf8_shortened(euros, 3), "\xE2\x82\xAC...");
  EXPECT_EQ(utf8_shortened(euros, 2), "...");
}

}  // namespace
}  // namespace folio
