// Attributes: typed access, defaults, and what is said about wrong ones.
#include "core/model/attributes.h"

#include <gtest/gtest.h>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

using Type = AttributeDef::Type;

AttributeDef int_attribute(std::string name, std::vector<int64_t> ints) {
  AttributeDef attribute;
  attribute.name = std::move(name);
  attribute.type = Type::kInt;
  attribute.ints = std::move(ints);
  return attribute;
}

TEST(Attributes, AbsentOnesGiveTheDefault) {
  const Attributes attributes;
  EXPECT_EQ(attributes.get_int("axis", -1).value(), -1);
  EXPECT_EQ(attributes.get_float("alpha", 0.5F).value(), 0.5F);
  EXPECT_EQ(attributes.get_string("mode", "nearest").value(), "nearest");
  EXPECT_EQ(attributes.get_ints("pads", {1, 2}).value(), (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(attributes.has("axis"));
}

TEST(Attributes, RequiredOnesThatAreMissingAreNamed) {
  const Attributes attributes;
  EXPECT_TRUE(
      fails_with(attributes.get_int("axis").status(), Code::kInvalidGraph, {"'axis'", "missing"}));
  EXPECT_TRUE(fails_with(attributes.get_float("f").status(), Code::kInvalidGraph, {"'f'"}));
  EXPECT_TRUE(fails_with(attributes.get_string("s").status(), Code::kInvalidGraph, {"'s'"}));
  EXPECT_TRUE(fails_with(attributes.get_tensor("t").status(), Code::kInvalidGraph, {"'t'"}));
}

TEST(Attributes, AWrongTypeIsNamedWithTheExpectedOne) {
  const Attributes attributes({int_attribute("axis", {3})});
  EXPECT_TRUE(fails_with(attributes.get_float("axis", 1).status(), Code::kInvalidGraph,
                         {"'axis'", "int", "expected float"}));
  EXPECT_TRUE(
      fails_with(attributes.get_ints("axis").status(), Code::kInvalidGraph, {"expected ints"}));
  EXPECT_TRUE(
      fails_with(attributes.get_tensor("axis").status(), Code::kInvalidGraph, {"expected tensor"}));
}

TEST(Attributes, AnEmptySingleValueIsItsDefault) {
  const Attributes attributes({int_attribute("axis", {})});
  EXPECT_EQ(attributes.get_int("axis").value(), 0);
  EXPECT_EQ(attributes.get_int("axis", 5).value(), 0);
}

TEST(Attributes, AnEmptyTensorAttributeIsAnError) {
  AttributeDef attribute;
  attribute.name = "value";
  attribute.type = Type::kTensor;
  const Attributes attributes({attribute});
  EXPECT_TRUE(
      fails_with(attributes.get_tensor("value").status(), Code::kInvalidGraph, {"'value'"}));
}

TEST(Attributes, SetReplacesByName) {
  Attributes attributes({int_attribute("axis", {3})});
  attributes.set(int_attribute("axis", {4}));
  attributes.set(int_attribute("other", {5}));
  EXPECT_EQ(attributes.get_int("axis").value(), 4);
  EXPECT_EQ(attributes.all().size(), 2U);
}

}  // namespace
}  // namespace folio
