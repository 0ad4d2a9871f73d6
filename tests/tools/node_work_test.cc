// What a profile takes for a node's work: counted by hand.
#include "tools/folio/node_work.h"

#include <gtest/gtest.h>

namespace folio_cli {
namespace {

SeenShape f32(std::vector<int64_t> dims) { return {FOLIO_FLOAT, std::move(dims)}; }
SeenShape u8(std::vector<int64_t> dims) { return {FOLIO_UINT8, std::move(dims)}; }

Work work(const char* op_type, std::vector<SeenShape> inputs, std::vector<SeenShape> outputs,
          const char* attributes = "{}") {
  return work_of(
      {op_type, std::move(inputs), std::move(outputs), nlohmann::json::parse(attributes)});
}

TEST(NodeWork, OfAConvolutionIsAFilterAnOutput) {
  const SeenShape w = f32({8, 4, 3, 3});
  // 2 x 8 x 5 x 5 outputs of 4 x 3 x 3 products each, channels first or last.
  EXPECT_EQ(work("Conv", {f32({2, 4, 5, 5}), w}, {f32({2, 8, 5, 5})}).operations, 2 * 400 * 36);
  EXPECT_EQ(work("Conv", {f32({2, 5, 5, 4}), w}, {f32({2, 5, 5, 8})}).operations, 2 * 400 * 36);
  EXPECT_EQ(work("Conv", {f32({1, 8, 5, 5}), f32({8, 1, 3, 3})}, {f32({1, 8, 5, 5})}).operations,
            2 * 200 * 9)
      << "a group for each channel";
  EXPECT_EQ(work("ConvTranspose", {f32({1, 4, 5, 5}), w}, {f32({1, 4, 7, 7})}).operations,
            2 * 100 * 36)
      << "each input is multiplied";
}

TEST(NodeWork, OfWinogradsConvolutionIsThatOfTheDirectOne) {
  const auto direct = work("Conv", {f32({1, 8, 8, 16}), f32({16, 16, 3, 3})}, {f32({1, 8, 8, 16})});
  const auto winograd = work("Conv", {f32({1, 8, 8, 16}), f32({16, 16, 3, 3})},
                             {f32({1, 8, 8, 16})}, R"({"winograd": 1})");
  EXPECT_EQ(direct.operations, winograd.operations);
  EXPECT_FALSE(direct.is_winograd);
  EXPECT_TRUE(winograd.is_winograd);
}

TEST(NodeWork, OfAChainCountsAllSteps) {
  // 1x1 from 4 to 6 channels over 10 x 10, then a filter of 3x3 with stride 2.
  const std::vector<SeenShape> inputs = {
      f32({1, 10, 10, 4}), f32({6, 4, 1, 1}), f32({6}), {}, f32({6, 1, 3, 3})};
  EXPECT_EQ(work("ConvChain", inputs, {f32({1, 5, 5, 6})},
                 R"({"filter.strides": [2, 2], "filter.pads": [0, 0, 1, 1]})")
                .operations,
            2 * (600 * 4 + 150 * 9));
  // 3x3 with stride 2 and a border of 1, from 20 x 20 to 10 x 10.
  const std::vector<SeenShape> strided = {
      f32({1, 20, 20, 3}), f32({6, 3, 3, 3}), f32({6}), {}, f32({6, 1, 3, 3})};
  const double want = 2 * (600 * 27 + 600 * 9);
  EXPECT_EQ(
      work("ConvChain", strided, {f32({1, 10, 10, 6})},
           R"({"first.strides": [2, 2], "first.pads": [1, 1, 1, 1], "filter.pads": [1, 1, 1, 1]})")
          .operations,
      want);
  EXPECT_EQ(
      work(
          "ConvChain", strided, {f32({1, 10, 10, 6})},
          R"({"first.strides": [2, 2], "first.auto_pad": "SAME_UPPER", "filter.pads": [1, 1, 1, 1]})")
          .operations,
      want);
  // The filter of 3x3 with stride 2, then 1x1 from 6 to 8 channels; no first.
  const std::vector<SeenShape> last = {f32({1, 12, 12, 6}), {}, {}, {},
                                       f32({6, 1, 3, 3}),   {}, {}, f32({8, 6, 1, 1})};
  EXPECT_EQ(
      work("ConvChain", last, {f32({1, 5, 5, 8})}, R"({"filter.strides": [2, 2]})").operations,
      2 * (150 * 9 + 200 * 6));
  // MaxPool of 3x3 with stride 2 in place of the filter, then 1x1 from 6 to 8 channels.
  const std::vector<SeenShape> pool = {
      f32({1, 12, 12, 4}), f32({6, 4, 1, 1}), f32({6}), {}, {}, {}, {}, f32({8, 6, 1, 1})};
  EXPECT_EQ(work("ConvChain", pool, {f32({1, 5, 5, 8})},
                 R"({"filter.kernel_shape": [3, 3], "filter.strides": [2, 2]})")
                .operations,
            2 * (864 * 4 + 200 * 6));
  std::vector<SeenShape> planes = strided;
  planes[0] = f32({1, 3, 20, 20});
  EXPECT_EQ(
      work(
          "ConvChain", planes, {f32({1, 10, 10, 6})},
          R"({"first.strides": [2, 2], "first.pads": [1, 1, 1, 1], "first.planes": 1, "filter.pads": [1, 1, 1, 1]})")
          .operations,
      want);
}

TEST(NodeWork, OfAJoinedImageIsWhatANodeWritesOfIt) {
  const auto inputs = [](bool is_first) {
    std::vector<SeenShape> all = {f32({1, 5, 5, 4}), f32({8, 4, 1, 1})};
    if (!is_first) all.insert(all.end(), {{}, {}, {}, f32({1, 5, 5, 20})});
    return all;
  };
  for (const bool is_first : {true, false}) {
    const Work joined = work("Conv", inputs(is_first), {f32({1, 5, 5, 20})},
                             R"({"join_at": 12, "joined_channels": 20})");
    const Work apart = work("Conv", inputs(true), {f32({1, 5, 5, 8})});
    EXPECT_EQ(joined.operations, apart.operations);
    EXPECT_EQ(joined.bytes, apart.bytes);
  }
  const std::vector<SeenShape> chain = {f32({1, 5, 5, 6}), {}, {}, {},
                                        f32({6, 1, 1, 1}), {}, {}, f32({8, 6, 1, 1})};
  EXPECT_EQ(work("ConvChain", chain, {f32({1, 5, 5, 20})}, R"({"joined_channels": 20})").bytes,
            work("ConvChain", chain, {f32({1, 5, 5, 8})}).bytes);
  const std::vector<SeenShape> to_filter = {
      f32({1, 5, 5, 6}), f32({8, 6, 1, 1}), {}, {}, f32({8, 1, 1, 1})};
  EXPECT_EQ(work("ConvChain", to_filter, {f32({1, 5, 5, 20})}, R"({"joined_channels": 20})").bytes,
            work("ConvChain", to_filter, {f32({1, 5, 5, 8})}).bytes);
  EXPECT_EQ(work("Join", {f32({1, 5, 5, 20}), f32({1, 5, 5, 6})}, {f32({1, 5, 5, 20})},
                 R"({"at": [3], "from": [1], "channels": [2]})")
                .bytes,
            2 * 4 * 50);
  const std::vector<SeenShape> resized = {f32({1, 5, 5, 6}), {}, f32({4})};
  std::vector<SeenShape> resized_into = resized;
  resized_into.insert(resized_into.end(), {{}, f32({1, 9, 9, 20})});
  for (const auto& given : {resized, resized_into}) {
    EXPECT_EQ(work("Resize", given, {f32({1, 9, 9, 20})}, R"({"joined_channels": 20})").bytes,
              work("Resize", resized, {f32({1, 9, 9, 6})}).bytes);
  }
}

TEST(NodeWork, OfAJoinedImageIsWhatAConvTransposeWritesOfIt) {
  const std::vector<SeenShape> first = {f32({1, 5, 5, 6}), f32({6, 4, 2, 2}), f32({4})};
  std::vector<SeenShape> later = first;
  later.push_back(f32({1, 10, 10, 20}));
  for (const auto& inputs : {first, later}) {
    EXPECT_EQ(
        work("ConvTranspose", inputs, {f32({1, 10, 10, 20})}, R"({"joined_channels": 20})").bytes,
        work("ConvTranspose", first, {f32({1, 10, 10, 4})}).bytes);
  }
}

TEST(NodeWork, OfSomeChannelsIsWhatANodeReadsOfAnImage) {
  const Work apart = work("Conv", {f32({1, 5, 5, 4}), f32({8, 2, 1, 1}), {}, f32({1, 5, 5, 8})},
                          {f32({1, 5, 5, 8})}, R"({"group": 2})");
  const Work some = work("Conv", {f32({1, 5, 5, 24}), f32({8, 2, 1, 1}), {}, f32({1, 5, 5, 24})},
                         {f32({1, 5, 5, 8})}, R"({"group": 2, "x_at": 3, "z_at": 0})");
  EXPECT_EQ(some.operations, apart.operations);
  EXPECT_DOUBLE_EQ(some.bytes, apart.bytes);
  std::vector<SeenShape> chain = {f32({1, 5, 5, 6}), {}, {}, {},
                                  f32({6, 1, 1, 1}), {}, {}, f32({8, 6, 1, 1})};
  const Work whole = work("ConvChain", chain, {f32({1, 5, 5, 8})}, R"({"filter.group": 6})");
  chain[0] = f32({1, 5, 5, 30});
  EXPECT_DOUBLE_EQ(
      work("ConvChain", chain, {f32({1, 5, 5, 8})}, R"({"filter.group": 6, "filter.x_at": 24})")
          .bytes,
      whole.bytes);
}

TEST(NodeWork, OfAProductIsADepthAnOutput) {
  EXPECT_EQ(work("MatMul", {f32({3, 5, 7}), f32({7, 2})}, {f32({3, 5, 2})}).operations, 2 * 30 * 7);
  EXPECT_EQ(work("MatMul", {f32({7}), f32({7, 2})}, {f32({2})}).operations, 2 * 2 * 7);
  EXPECT_EQ(work("Gemm", {f32({7, 5}), f32({7, 2})}, {f32({5, 2})}, R"({"transA": 1})").operations,
            2 * 10 * 7);
  const Work blocks =
      work("MatMulNBits", {f32({1, 1, 64}), u8({32, 2, 16})}, {f32({1, 1, 32})}, "{}");
  EXPECT_EQ(blocks.operations, 2 * 32 * 64);
  EXPECT_FALSE(blocks.of_bytes) << "rows stay floats";
  EXPECT_TRUE(work("MatMulNBits", {f32({1, 1, 64}), u8({32, 2, 16})}, {f32({1, 1, 32})},
                   R"({"accuracy_level": 4})")
                  .of_bytes);
}

TEST(NodeWork, OfBytesIsToldByTheWeights) {
  const SeenShape scale = f32({});
  const SeenShape zero = u8({});
  const Work conv =
      work("QLinearConv", {u8({1, 4, 5, 5}), scale, zero, u8({8, 4, 3, 3})}, {u8({1, 8, 5, 5})});
  EXPECT_EQ(conv.operations, 2 * 200 * 36);
  EXPECT_TRUE(conv.of_bytes);
  const Work product = work("QLinearMatMul", {u8({5, 7}), scale, zero, u8({7, 2})}, {u8({5, 2})});
  EXPECT_EQ(product.operations, 2 * 10 * 7);
  EXPECT_TRUE(product.of_bytes);
  EXPECT_FALSE(work("MatMul", {f32({1, 1}), f32({1, 1})}, {f32({1, 1})}).of_bytes);
}

TEST(NodeWork, OfAttentionIsBothProductsOfAllPairs) {
  // 2 heads of 4, 3 queries, 5 keys: 2 * 3 * 5 dot products of 4, twice.
  constexpr double kWant = 2.0 * 2 * (2 * 3 * 5 * 4);
  EXPECT_EQ(
      work("MultiHeadAttention", {f32({1, 3, 8}), f32({1, 5, 8}), f32({1, 5, 8})}, {f32({1, 3, 8})})
          .operations,
      kWant);
  EXPECT_EQ(work("GroupQueryAttention", {f32({1, 3, 8}), f32({1, 3, 4}), f32({1, 3, 4})},
                 {f32({1, 3, 8}), f32({1, 1, 5, 4}), f32({1, 1, 5, 4})})
                .operations,
            kWant)
      << "keys of the past count";
  EXPECT_EQ(work("Attention", {f32({1, 2, 3, 4}), f32({1, 2, 5, 4}), f32({1, 2, 5, 4})},
                 {f32({1, 2, 3, 4})})
                .operations,
            kWant);
  EXPECT_EQ(work("StridedAttention", {f32({1, 3, 2, 4}), f32({1, 5, 2, 4}), f32({1, 5, 2, 4})},
                 {f32({1, 3, 2, 4})}, R"({"perm_k": [0, 2, 1, 3]})")
                .operations,
            kWant);
  // com.microsoft's: 3 rows of 8 times [8, 24] first, then 3 queries and 3 keys of 2 heads of 4.
  EXPECT_EQ(
      work("Attention", {f32({1, 3, 8}), f32({8, 24}), f32({24})}, {f32({1, 3, 8})}).operations,
      2.0 * 3 * 8 * 24 + 2.0 * 2 * (2 * 3 * 3 * 4));
}

TEST(NodeWork, OfALayerThatRecursIsARowAStep) {
  EXPECT_EQ(
      work("LSTM", {f32({50, 1, 10}), f32({1, 64, 10}), f32({1, 64, 16})}, {f32({50, 1, 1, 16})})
          .operations,
      2.0 * 50 * 64 * 26);
}

TEST(NodeWork, BytesAreThoseReadAndWritten) {
  EXPECT_EQ(work("Add", {f32({2, 3}), f32({3})}, {f32({2, 3})}).bytes, 4 * (6 + 3 + 6));
  EXPECT_EQ(work("Reshape", {f32({2, 3}), {FOLIO_INT64, {1}}}, {f32({6})}).bytes, 0);
  EXPECT_EQ(work("Gather", {f32({1000, 8}), {FOLIO_INT64, {2}}}, {f32({2, 8})}).bytes,
            4 * 32 + 2 * 8)
      << "the rest of the table is not read";
  EXPECT_EQ(work("MatMulNBits", {{}, {FOLIO_UINT4, {3}}}, {}).bytes, 1.5);
}

TEST(NodeWork, OfWhatIsNotKnownIsNothing) {
  EXPECT_EQ(work("Unheard", {}, {}).operations, 0);
  for (const char* op : {"Conv", "ConvChain", "MatMul", "Attention", "LSTM", "StridedAttention",
                         "MultiHeadAttention", "QLinearConv", "ConvTranspose"}) {
    EXPECT_EQ(work(op, {}, {}).operations, 0) << op;
    EXPECT_EQ(work(op, {{}, {}}, {{}}, "[]").operations, 0) << op;
  }
}

}  // namespace
}  // namespace folio_cli
