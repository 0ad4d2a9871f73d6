// take_nchwc: models in blocks of channels give what the same models on plain images give, with
// blocks of 8 and of 16, whether they are counted, recognized by weights or given by the key.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "core/base/log.h"
#include "core/passes/nchwc.h"
#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::NodeWriter;

constexpr int64_t kBatch = 2;
constexpr int64_t kHeight = 5;
constexpr int64_t kWidth = 6;

int64_t whole(int64_t channels, int64_t block) { return (channels + block - 1) / block * block; }

struct Filter {
  int64_t outputs = 0;
  int64_t inputs = 0;  // of one group
  int64_t size = 1;    // height and width
  std::vector<float> weights;

  int64_t count() const { return outputs * inputs * size * size; }
  float at(int64_t o, int64_t i, int64_t tap) const {
    return weights[static_cast<size_t>((o * inputs + i) * size * size + tap)];
  }
};

Filter filter(int64_t outputs, int64_t inputs, int64_t size, float phase = 0.2F) {
  Filter f{outputs, inputs, size, {}};
  f.weights = small_wave(f.count(), phase);
  return f;
}

// As ONNX Runtime writes it: outputs in blocks, and inputs too if there is a block of them.
model_writer::TensorWriter in_blocks(std::string_view name, const Filter& f, int64_t b) {
  const bool both = f.inputs >= b;
  const int64_t outputs = whole(f.outputs, b);
  const int64_t inputs = both ? whole(f.inputs, b) : f.inputs;
  const int64_t taps = f.size * f.size;
  std::vector<float> out;
  for (int64_t o = 0; o < outputs; o += b) {
    for (int64_t i = 0; i < inputs; i += both ? b : 1) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t bi = 0; bi < (both ? b : 1); ++bi) {
          for (int64_t bo = 0; bo < b; ++bo) {
            const bool is_there = o + bo < f.outputs && i + bi < f.inputs;
            out.push_back(is_there ? f.at(o + bo, i + bi, tap) : 0.0F);
          }
        }
      }
    }
  }
  return f32_tensor(name, {outputs, inputs, f.size, f.size}, out);
}

model_writer::TensorWriter plain(std::string_view name, const Filter& f) {
  return f32_tensor(name, {f.outputs, f.inputs, f.size, f.size}, f.weights);
}

ModelWriter new_model(int64_t channels, int64_t opset = 17) {
  ModelWriter writer = plain_model(8, opset);
  writer.opset("com.microsoft", 1).opset(kNchwcDomain, 1);
  writer.graph().input("x", f32_type({kBatch, channels, kHeight, kWidth}));
  return writer;
}

NodeWriter& nchwc(GraphWriter& graph, std::string_view type, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs) {
  return graph.node(type, inputs, outputs).in_domain(kNchwcDomain);
}

NamedValue image(int64_t channels) {
  return {"x", make_tensor<float>({kBatch, channels, kHeight, kWidth},
                                  wave(kBatch * channels * kHeight * kWidth))};
}

Result<std::vector<Value>> run_with(const ModelWriter& writer, const NamedValue& x,
                                    int64_t block = 0, Optimize optimize = Optimize::kAll) {
  ModelOptions options;
  options.nchwc_block_size = block;
  FOLIO_TRY(Ref<ModelFile> file, ModelFile::open(source_of(writer.serialize()), options));
  SessionOptions session;
  session.optimize = optimize;
  FOLIO_TRY(Ref<Session> opened, Session::create(std::move(file), session));
  return run_all(*opened, {x});
}

// All outputs of both are the same; with and without passes.
void expect_same(const ModelWriter& blocked, const ModelWriter& plain_one, int64_t channels,
                 int64_t block = 0) {
  for (const Optimize optimize : {Optimize::kOff, Optimize::kAll}) {
    const auto got = run_with(blocked, image(channels), block, optimize);
    const auto expected = run_with(plain_one, image(channels), 0, optimize);
    ASSERT_TRUE(got.is_ok()) << text_of(got.status());
    ASSERT_TRUE(expected.is_ok()) << text_of(expected.status());
    ASSERT_EQ(got.value().size(), expected.value().size());
    for (size_t i = 0; i < got.value().size(); ++i) {
      ASSERT_EQ(got.value()[i].tensor().shape(), expected.value()[i].tensor().shape());
      expect_near(floats_of(got.value()[i]), floats_of(expected.value()[i]));
    }
  }
}

class TakeNchwc : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t b() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Blocks, TakeNchwc, ::testing::Values(8, 16));

// 20 channels become 24 or 32; 40 become 40 or 48.
TEST_P(TakeNchwc, ConvolutionsAndPoolsOfAddedChannels) {
  const Filter first = filter(40, 20, 3);
  const Filter each = filter(40, 1, 3, 0.7F);
  const Filter last = filter(24, 40, 1, 0.4F);
  const std::vector<float> bias = small_wave(40, 2);
  std::vector<float> long_bias = bias;
  long_bias.resize(static_cast<size_t>(whole(40, b())));

  ModelWriter blocked = new_model(20);
  GraphWriter& g = blocked.graph();
  g.initializer(in_blocks("w1", first, b()));
  g.initializer(in_blocks("w2", each, b()));
  g.initializer(in_blocks("w3", last, b()));
  g.initializer(f32_tensor("bias", {whole(40, b())}, long_bias));
  nchwc(g, "ReorderInput", {"x"}, {"xb"});
  nchwc(g, "Conv", {"xb", "w1", "bias"}, {"a"})
      .attr_ints("pads", {1, 1, 1, 1})
      .attr_string("activation", "Relu");
  nchwc(g, "Conv", {"a", "w2"}, {"c"})
      .attr_ints("pads", {1, 1, 1, 1})
      .attr_int("group", whole(40, b()));
  nchwc(g, "MaxPool", {"c"}, {"m"}).attr_ints("kernel_shape", {2, 2});
  nchwc(g, "AveragePool", {"m"}, {"v"}).attr_ints("kernel_shape", {2, 1});
  g.node("Sigmoid", {"v"}, {"s"});
  g.node("Mul", {"s", "v"}, {"p"});
  nchwc(g, "Conv", {"p", "w3"}, {"q"});
  nchwc(g, "ReorderOutput", {"q"}, {"y"}).attr_int("channels", 24);
  nchwc(g, "GlobalAveragePool", {"q"}, {"ga"});
  nchwc(g, "GlobalMaxPool", {"q"}, {"gm"});
  g.node("Sum", {"ga", "gm"}, {"gs"});
  nchwc(g, "ReorderOutput", {"gs"}, {"z"}).attr_int("channels", 24);
  g.output("y", f32_type({})).output("z", f32_type({}));

  ModelWriter expected = new_model(20);
  GraphWriter& e = expected.graph();
  e.initializer(plain("w1", first)).initializer(plain("w2", each)).initializer(plain("w3", last));
  e.initializer(f32_tensor("bias", {40}, bias));
  e.node("Conv", {"x", "w1", "bias"}, {"a"}).attr_ints("pads", {1, 1, 1, 1});
  e.node("Relu", {"a"}, {"r"});
  e.node("Conv", {"r", "w2"}, {"c"}).attr_ints("pads", {1, 1, 1, 1}).attr_int("group", 40);
  e.node("MaxPool", {"c"}, {"m"}).attr_ints("kernel_shape", {2, 2});
  e.node("AveragePool", {"m"}, {"v"}).attr_ints("kernel_shape", {2, 1});
  e.node("Sigmoid", {"v"}, {"s"});
  e.node("Mul", {"s", "v"}, {"p"});
  e.node("Conv", {"p", "w3"}, {"y"});
  e.node("GlobalAveragePool", {"y"}, {"ga"});
  e.node("GlobalMaxPool", {"y"}, {"gm"});
  e.node("Sum", {"ga", "gm"}, {"z"});
  e.output("y", f32_type({})).output("z", f32_type({}));
  expect_same(blocked, expected, 20);
}

// A filter over few channels reads the image as it is; a convolution adds another's result.
TEST_P(TakeNchwc, FewChannelsAndASum) {
  const Filter first = filter(24, 3, 3);
  const Filter second = filter(24, 24, 1, 0.9F);
  ModelWriter blocked = new_model(3);
  GraphWriter& g = blocked.graph();
  g.initializer(in_blocks("w1", first, b())).initializer(in_blocks("w2", second, b()));
  nchwc(g, "Conv", {"x", "w1"}, {"a"});
  nchwc(g, "Conv", {"a", "w2", "", "a"}, {"c"})
      .attr_string("activation", "LeakyRelu")
      .attr_floats("activation_params", {0.25F});
  nchwc(g, "ReorderOutput", {"c"}, {"y"}).attr_int("channels", 24).attr_int("channels_last", 1);
  g.output("y", f32_type({}));

  ModelWriter expected = new_model(3);
  GraphWriter& e = expected.graph();
  e.initializer(plain("w1", first)).initializer(plain("w2", second));
  e.node("Conv", {"x", "w1"}, {"a"});
  e.node("Conv", {"a", "w2"}, {"c"});
  e.node("Add", {"c", "a"}, {"s"});
  e.node("LeakyRelu", {"s"}, {"l"}).attr_float("alpha", 0.25F);
  e.node("Transpose", {"l"}, {"y"}).attr_ints("perm", {0, 2, 3, 1});
  e.output("y", f32_type({}));
  expect_same(blocked, expected, 3);
}

TEST_P(TakeNchwc, GroupsOfWholeBlocks) {
  const Filter f = filter(2 * 3 * b(), b(), 2);
  const int64_t channels = 2 * b();
  ModelWriter blocked = new_model(channels);
  blocked.graph().initializer(in_blocks("w", f, b()));
  nchwc(blocked.graph(), "ReorderInput", {"x"}, {"xb"});
  nchwc(blocked.graph(), "Conv", {"xb", "w"}, {"c"}).attr_int("group", 2);
  nchwc(blocked.graph(), "ReorderOutput", {"c"}, {"y"}).attr_int("channels", f.outputs);
  blocked.graph().output("y", f32_type({}));
  ModelWriter expected = new_model(channels);
  expected.graph().initializer(plain("w", f));
  expected.graph().node("Conv", {"x", "w"}, {"y"}).attr_int("group", 2);
  expected.graph().output("y", f32_type({}));
  expect_same(blocked, expected, channels, b());
}

// The channels of what goes in are not known where it is made by another operator.
TEST_P(TakeNchwc, ImagesOfUnknownChannelsAreMadeWhole) {
  const Filter f = filter(24, 20, 1);
  for (const int64_t opset : {8, 10, 17}) {
    ModelWriter blocked = new_model(20, opset);
    GraphWriter& g = blocked.graph();
    g.initializer(in_blocks("w", f, b()));
    g.node("Transpose", {"x"}, {"t"}).attr_ints("perm", {0, 2, 3, 1});
    nchwc(g, "ReorderInput", {"t"}, {"xb"}).attr_int("channels_last", 1);
    nchwc(g, "Conv", {"xb", "w"}, {"c"});
    nchwc(g, "ReorderOutput", {"c"}, {"y"}).attr_int("channels", 24);
    g.output("y", f32_type({}));
    ModelWriter expected = new_model(20, opset);
    expected.graph().initializer(plain("w", f));
    expected.graph().node("Conv", {"x", "w"}, {"y"});
    expected.graph().output("y", f32_type({}));
    expect_same(blocked, expected, 20);
  }
}

// How sums are written whose dims ONNX Runtime does not know: one operand may have fewer pixels.
TEST_P(TakeNchwc, SumsByDimsThatSplitTheChannels) {
  const int64_t channels = 3 * b();
  ModelWriter blocked = new_model(channels);
  GraphWriter& g = blocked.graph();
  g.initializer(i64_tensor("split", {5}, {0, 3, 0, 0, b()}));
  g.initializer(i64_tensor("merge", {4}, {0, channels, 0, 0}));
  nchwc(g, "ReorderInput", {"x"}, {"xb"});
  nchwc(g, "GlobalMaxPool", {"xb"}, {"m"});
  g.node("Reshape", {"xb", "split"}, {"x5"});
  g.node("Reshape", {"m", "split"}, {"m5"});
  g.node("Add", {"x5", "m5"}, {"s5"});
  g.node("Reshape", {"s5", "merge"}, {"s"});
  nchwc(g, "ReorderOutput", {"s"}, {"y"}).attr_int("channels", channels);
  g.output("y", f32_type({}));
  ModelWriter expected = new_model(channels);
  expected.graph().node("GlobalMaxPool", {"x"}, {"m"});
  expected.graph().node("Add", {"x", "m"}, {"y"});
  expected.graph().output("y", f32_type({}));
  expect_same(blocked, expected, channels, b());
}

TEST_P(TakeNchwc, ConcatOfChannelsFollows) {
  ModelWriter blocked = new_model(2 * b());
  GraphWriter& g = blocked.graph();
  nchwc(g, "ReorderInput", {"x"}, {"xb"});
  g.node("Neg", {"xb"}, {"n"});
  g.node("Concat", {"xb", "n"}, {"k"}).attr_int("axis", 1);
  nchwc(g, "ReorderOutput", {"k"}, {"y"}).attr_int("channels", 4 * b());
  g.output("y", f32_type({}));
  ModelWriter expected = new_model(2 * b());
  expected.graph().node("Neg", {"x"}, {"n"});
  expected.graph().node("Concat", {"x", "n"}, {"y"}).attr_int("axis", 1);
  expected.graph().output("y", f32_type({}));
  expect_same(blocked, expected, 2 * b(), b());
}

TEST_P(TakeNchwc, Upsample) {
  struct Case {
    int64_t opset;
    const char* mode;
    const char* coordinates;
  };
  for (const Case& c : {Case{9, "nearest", "asymmetric"}, Case{10, "linear", "asymmetric"},
                        Case{17, "nearest", "asymmetric"}, Case{17, "linear", "align_corners"},
                        Case{17, "linear", "half_pixel"}}) {
    ModelWriter blocked = new_model(b(), c.opset);
    GraphWriter& g = blocked.graph();
    nchwc(g, "ReorderInput", {"x"}, {"xb"});
    NodeWriter& node = nchwc(g, "Upsample", {"xb"}, {"u"});
    node.attr_ints("scales", {1, 1, 3, 2}).attr_string("mode", c.mode);
    node.attr_string("coordinate_transformation_mode", c.coordinates);
    nchwc(g, "ReorderOutput", {"u"}, {"y"}).attr_int("channels", b());
    g.output("y", f32_type({}));
    ModelWriter expected = new_model(b());
    expected.graph().initializer(f32_tensor("s", {4}, {1, 1, 3, 2}));
    expected.graph()
        .node("Resize", {"x", "", "s"}, {"y"})
        .attr_string("mode", c.mode)
        .attr_string("nearest_mode", "floor")
        .attr_string("coordinate_transformation_mode", c.coordinates);
    expected.graph().output("y", f32_type({}));
    expect_same(blocked, expected, b(), b());
  }
}

// Where something else reads an image in blocks, it gets what ONNX Runtime's memory has; and the
// other way round.
TEST_P(TakeNchwc, OtherOperatorsSeeTheBlocks) {
  const int64_t channels = 2 * b();
  ModelWriter writer = new_model(channels);
  GraphWriter& g = writer.graph();
  g.initializer(i64_tensor("split", {5}, {0, 2, 0, 0, b()}));
  nchwc(g, "ReorderInput", {"x"}, {"xb"});
  g.node("Flatten", {"xb"}, {"f"});
  g.node("Reshape", {"xb", "split"}, {"r"});
  nchwc(g, "ReorderOutput", {"x"}, {"back"}).attr_int("channels", channels);
  g.output("xb", f32_type({})).output("f", f32_type({})).output("r", f32_type({}));
  g.output("back", f32_type({}));
  const NamedValue x = image(channels);
  const auto got = run_with(writer, x, b());
  ASSERT_TRUE(got.is_ok()) << text_of(got.status());
  std::vector<float> blocks;
  const std::vector<float> given = floats_of(x.value);
  constexpr int64_t kPixels = kHeight * kWidth;
  std::vector<float> back(given.size());
  for (int64_t n = 0; n < kBatch * 2; ++n) {
    for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
      for (int64_t c = 0; c < b(); ++c) {
        const auto at = static_cast<size_t>((n * b() + c) * kPixels + pixel);
        back[at] = given[blocks.size()];
        blocks.push_back(given[at]);
      }
    }
  }
  EXPECT_EQ(got.value()[0].tensor().shape(), (Shape{kBatch, channels, kHeight, kWidth}));
  EXPECT_EQ(got.value()[2].tensor().shape(), (Shape{kBatch, 2, kHeight, kWidth, b()}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(floats_of(got.value()[static_cast<size_t>(i)]), blocks);
  EXPECT_EQ(floats_of(got.value()[3]), back);
}

// An image in blocks that a subgraph takes from outside, whose channels nothing says there.
TEST_P(TakeNchwc, InsideASubgraph) {
  const Filter f = filter(40, 24, 1);
  ModelWriter blocked = new_model(24);
  ModelWriter expected = new_model(24);
  blocked.graph().initializer(in_blocks("w", f, b()));
  expected.graph().initializer(plain("w", f));
  nchwc(blocked.graph(), "ReorderInput", {"x"}, {"xb"});
  nchwc(blocked.graph(), "Conv", {"xb", "w"}, {"cb"});
  GraphWriter then("then");
  nchwc(then, "Conv", {"xb", "w"}, {"c"});
  nchwc(then, "ReorderOutput", {"c"}, {"i"}).attr_int("channels", 40);
  then.output("i", f32_type({}));
  GraphWriter other("other");
  nchwc(other, "ReorderOutput", {"cb"}, {"o"}).attr_int("channels", 40);
  other.output("o", f32_type({}));
  expected.graph().node("Conv", {"x", "w"}, {"y"});
  for (ModelWriter* writer : {&blocked, &expected}) {
    writer->graph().initializer(f32_tensor("zero", {}, {0}));
    writer->graph().node("ReduceMax", {"x"}, {"most"}).attr_int("keepdims", 0);
    writer->graph().node("Greater", {"most", "zero"}, {"positive"});
    writer->graph().output("y", f32_type({}));
  }
  blocked.graph()
      .node("If", {"positive"}, {"y"})
      .attr_graph("then_branch", std::move(then))
      .attr_graph("else_branch", std::move(other));
  expect_same(blocked, expected, 24);
}

// ------------------------------------------------------------- the block's size

std::string warnings;

// Filters whose output channels differ in size, as trained ones do.
ModelWriter two_convs(int64_t block, bool trained) {
  ModelWriter writer = new_model(32);
  GraphWriter& g = writer.graph();
  for (const char* name : {"w1", "w2"}) {
    Filter f = filter(32, 32, 3, static_cast<float>(name[1]));
    uint32_t state = static_cast<uint32_t>(name[1]);
    for (int64_t i = 0; i < f.count(); ++i) {
      state = state * 1664525U + 1013904223U;
      const float noise = static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F;
      const int64_t output = i / (32 * 9);
      const float size = trained ? 0.2F + 0.05F * static_cast<float>(output * 7 % 32) : 1.0F;
      f.weights[static_cast<size_t>(i)] = noise * size;
    }
    g.initializer(block == 0 ? plain(name, f) : in_blocks(name, f, block));
  }
  if (block == 0) {
    g.node("Conv", {"x", "w1"}, {"a"});
    g.node("Conv", {"a", "w2"}, {"y"});
  } else {
    nchwc(g, "ReorderInput", {"x"}, {"xb"});
    nchwc(g, "Conv", {"xb", "w1"}, {"a"});
    nchwc(g, "Conv", {"a", "w2"}, {"c"});
    nchwc(g, "ReorderOutput", {"c"}, {"y"}).attr_int("channels", 32);
  }
  g.output("y", f32_type({}));
  return writer;
}

class BlockSize : public ::testing::Test {
 protected:
  void SetUp() override {
    warnings.clear();
    set_log([](void*, LogLevel, const char* text) { warnings += text; }, nullptr,
            LogLevel::kWarning);
  }
  void TearDown() override { set_log(nullptr, nullptr, LogLevel::kWarning); }
};

TEST_F(BlockSize, IsRecognizedByTrainedWeights) {
  for (const int64_t block : {8, 16}) {
    expect_same(two_convs(block, true), two_convs(0, true), 32);
    EXPECT_EQ(warnings, "");
  }
}

TEST_F(BlockSize, IsSixteenWithAWarningWhereNothingShowsIt) {
  expect_same(two_convs(16, false), two_convs(0, false), 32);
  EXPECT_NE(warnings.find("folio.nchwc_block_size"), std::string::npos);
  const auto wrong = run_with(two_convs(8, false), image(32));
  const auto right = run_with(two_convs(0, false), image(32));
  ASSERT_TRUE(wrong.is_ok() && right.is_ok());
  EXPECT_NE(floats_of(wrong.value()[0]), floats_of(right.value()[0]));
}

TEST_F(BlockSize, IsWhatTheKeySays) {
  for (const int64_t block : {8, 16}) {
    expect_same(two_convs(block, false), two_convs(0, false), 32, block);
  }
  EXPECT_EQ(warnings, "");
}

// Counts come before weights: 20 channels with 12 more can only be blocks of 16.
TEST_F(BlockSize, IsSixteenWhereEightOrMoreChannelsWereAdded) {
  ModelWriter writer = two_convs(8, true);
  GraphWriter& g = writer.graph();
  nchwc(g, "ReorderOutput", {"c"}, {"z"}).attr_int("channels", 20);
  g.output("z", f32_type({}));
  auto model = build(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(nchwc_block_size(model.value()->graph), 16);
}

// ------------------------------------------------------------- what is wrong

using Spoil = std::function<void(GraphWriter&)>;

Status opened(const Spoil& spoil, int64_t block = 16) {
  ModelWriter writer = new_model(32);
  spoil(writer.graph());
  return run_with(writer, image(32), block).status();
}

TEST(TakeNchwcRefuses, FiltersThatDoNotFitTheBlock) {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{24, 32, 1, 1}, {32, 24, 1, 1}, {32, 32, 1}, {0, 32, 1, 1}}) {
    const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1},
                                          [](int64_t a, int64_t b) { return a * b; });
    EXPECT_TRUE(fails_with(opened([&](GraphWriter& g) {
                             g.initializer(f32_tensor("w", dims, wave(count)));
                             nchwc(g, "Conv", {"x", "w"}, {"y"}).named("odd");
                             g.output("y", f32_type({}));
                           }),
                           Code::kInvalidGraph, {"node 'odd' (Conv)", "filter"}));
  }
  EXPECT_TRUE(fails_with(opened([](GraphWriter& g) {
                           nchwc(g, "Conv", {"x", "x"}, {"y"}).named("odd");
                           g.output("y", f32_type({}));
                         }),
                         Code::kInvalidGraph, {"node 'odd' (Conv)", "no constant"}));
}

TEST(TakeNchwcRefuses, ChannelsThatTheBlockDoesNotHave) {
  for (const int64_t channels : {0, -1, 16, 33}) {
    EXPECT_TRUE(fails_with(
        opened([&](GraphWriter& g) {
          nchwc(g, "ReorderInput", {"x"}, {"xb"});
          nchwc(g, "ReorderOutput", {"xb"}, {"y"}).named("odd").attr_int("channels", channels);
          g.output("y", f32_type({}));
        }),
        Code::kInvalidGraph, {"node 'odd' (ReorderOutput)", "'channels'"}));
  }
  EXPECT_TRUE(fails_with(opened([](GraphWriter& g) {
                           nchwc(g, "ReorderInput", {"x"}, {"xb"});
                           nchwc(g, "ReorderOutput", {"xb"}, {"y"}).named("odd");
                           g.output("y", f32_type({}));
                         }),
                         Code::kInvalidGraph, {"node 'odd' (ReorderOutput)", "'channels'"}));
}

TEST(TakeNchwcRefuses, ScalesThatAreNoScales) {
  for (const std::vector<int64_t>& scales :
       {std::vector<int64_t>{}, {1, 1, 2}, {1, 2, 2, 2}, {1, 1, 0, 2}, {1, 1, 2, 1LL << 40}}) {
    EXPECT_TRUE(
        fails_with(opened([&](GraphWriter& g) {
                     nchwc(g, "ReorderInput", {"x"}, {"xb"});
                     nchwc(g, "Upsample", {"xb"}, {"u"}).named("odd").attr_ints("scales", scales);
                     nchwc(g, "ReorderOutput", {"u"}, {"y"}).attr_int("channels", 32);
                     g.output("y", f32_type({}));
                   }),
                   Code::kInvalidGraph, {"node 'odd' (Upsample)", "'scales'"}));
  }
}

TEST(TakeNchwcRefuses, OperatorsThatTheDomainLacks) {
  EXPECT_TRUE(fails_with(opened([](GraphWriter& g) {
                           nchwc(g, "LpPool", {"x"}, {"y"}).named("odd");
                           g.output("y", f32_type({}));
                         }),
                         Code::kUnsupportedOperator, {"com.microsoft.nchwc.LpPool", "odd"}));
  EXPECT_TRUE(fails_with(opened([](GraphWriter& g) {
                           nchwc(g, "ReorderInput", {"x", "x"}, {"y"}).named("odd");
                           g.output("y", f32_type({}));
                         }),
                         Code::kInvalidGraph, {"node 'odd' (ReorderInput)", "2 inputs"}));
}

// A run's image may have other channels than the filter: an error, as for any convolution.
TEST(TakeNchwcRefuses, ImagesOfOtherChannels) {
  const Filter f = filter(16, 48, 1);
  EXPECT_FALSE(opened([&](GraphWriter& g) {
                 g.initializer(in_blocks("w", f, 16));
                 nchwc(g, "ReorderInput", {"x"}, {"xb"});
                 nchwc(g, "Conv", {"xb", "w"}, {"c"});
                 nchwc(g, "ReorderOutput", {"c"}, {"y"}).attr_int("channels", 16);
                 g.output("y", f32_type({}));
               }).is_ok());
}

}  // namespace
}  // namespace folio
