#include "core/save/op_schemas.h"

#include <gtest/gtest.h>

namespace folio {
namespace {

using Names = std::vector<std::string_view>;

// What resolvers of .ort files say that ONNX Runtime 1.30 wrote.
struct Fact {
  const char* domain;
  const char* type;
  int version;  // asked for
  int since;
  Names inputs;
  Names outputs;
};

const Fact kFacts[] = {
    {"", "Mul", 17, 14, {"T", "T"}, {"T"}},
    {"", "Mul", 13, 13, {"T", "T"}, {"T"}},
    {"", "Clip", 18, 13, {"T", "T", "T"}, {"T"}},
    {"", "Clip", 10, 6, {"T"}, {"T"}},
    {"", "Reshape", 18, 14, {"T", "shape"}, {"T"}},
    {"", "Gather", 13, 13, {"T", "Tind"}, {"T"}},
    {"", "MaxPool", 12, 12, {"T"}, {"T", "I"}},
    {"", "QuantizeLinear", 13, 13, {"T1", "y_scale", "T2"}, {"T2"}},
    {"", "LayerNormalization", 13, 1, {"T", "V", "V"}, {"V", "U", "U"}},
    {"", "LayerNormalization", 18, 17, {"T", "T", "T"}, {"T", "U", "U"}},
    {"ai.onnx.ml", "ZipMap", 3, 1, {"X"}, {"T"}},
    {"com.microsoft", "FusedConv", 1, 1, {"T", "T", "T", "T"}, {"T"}},
    {"com.microsoft",
     "WhisperBeamSearch",
     1,
     1,
     {"F", "I", "I", "I", "I", "T", "T", "M", "M", "I", "I", "I", "I", "I", "T"},
     {"I", "T", "T", "V", "T"}},
    {"com.microsoft", "QGemm", 1, 1, {"TA", "T", "TA", "TB", "T", "TB", "TC", "T", "TYZ"}, {"TY"}},
};

TEST(OpSchemas, SayWhatOnnxRuntimeWrites) {
  for (const Fact& fact : kFacts) {
    SCOPED_TRACE(fact.type);
    OpSchema found;
    ASSERT_TRUE(find_op_schema(fact.domain, fact.type, fact.version, &found));
    EXPECT_EQ(found.since, fact.since);
    EXPECT_EQ(found.inputs, fact.inputs);
    EXPECT_EQ(found.outputs, fact.outputs);
  }
}

TEST(OpSchemas, KnowVariadicInputs) {
  OpSchema found;
  ASSERT_TRUE(find_op_schema("", "Concat", 17, &found));
  EXPECT_TRUE(found.variadic_input);
  EXPECT_FALSE(found.variadic_output);
  ASSERT_TRUE(find_op_schema("", "Loop", 17, &found));
  EXPECT_EQ(found.inputs.size(), 3u);
  EXPECT_TRUE(found.variadic_input);
  EXPECT_TRUE(found.variadic_output);
}

TEST(OpSchemas, DoNotKnowWhatThereIsNot) {
  OpSchema found;
  EXPECT_FALSE(find_op_schema("", "NoSuchOperator", 17, &found));
  EXPECT_FALSE(find_op_schema("", "Clip", 0, &found));
  EXPECT_FALSE(find_op_schema("com.example", "Clip", 17, &found));
}

}  // namespace
}  // namespace folio
