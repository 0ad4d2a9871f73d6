// Messages: texts and numbers of any type, one after the other, as std::to_string writes them.
#include "core/base/status.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace folio {
namespace {

TEST(Cat, WritesTextsOfAnyType) {
  const std::string owned = "owned";
  const char* const pointer = "pointer";
  const std::string_view part = std::string_view("a part of it").substr(2, 4);
  EXPECT_EQ(cat("literal ", owned, ' ', pointer, ' ', part), "literal owned pointer part");
  EXPECT_EQ(cat(), "");
  EXPECT_EQ(cat(std::string("with\0in", 7)).size(), 7U);
}

TEST(Cat, WritesNumbersOfAnyType) {
  EXPECT_EQ(cat(static_cast<int8_t>(-7), ' ', static_cast<uint8_t>(200)), "-7 200");
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(cat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(cat(0.5F, ' ', -1e3, ' ', true), "0.500000 -1000.000000 1");
}

TEST(Status, TellsItsCodeAndMessageAndWhereItHappened) {
  const Status status = invalid_graph("node ", 3, " has no input").with_context("model.onnx");
  EXPECT_EQ(status.code(), Code::kInvalidGraph);
  EXPECT_EQ(status.message(), "model.onnx: node 3 has no input");
  EXPECT_EQ(error(Code::kIo, "no ", 'x').message(), "no x");
  EXPECT_EQ(Status(status).with_context("model.onnx").message(), status.message())
      << "where it happened is said once";
  EXPECT_TRUE(Status::ok().is_ok());
}

TEST(Status, MessagesAreOneLineWhateverNamesHave) {
  const Status status = invalid_graph("node 'a\nb\r\x1b\t\u00e9'").with_context("m\n.onnx");
  EXPECT_EQ(status.message(), "m .onnx: node 'a b   \u00e9'");
}

}  // namespace
}  // namespace folio
