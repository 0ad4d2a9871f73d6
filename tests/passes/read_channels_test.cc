// read_channels and join_in_place together: who reads channels of an image that Split, Slice or
// Concat would copy reads the image, with the bits it has apart.
#include <gtest/gtest.h>

#include <limits>

#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_channels.h"
#include "tests/passes/conv_tester.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

using model_writer::Dim;
using model_writer::GraphWriter;
using model_writer::ModelWriter;

// A network behind a convolution, whose image is "stem".
class Network {
 public:
  Network(int64_t stem, int64_t batch, int64_t side) : batch_(batch), side_(side) {
    graph().input("x", f32_type({batch, 8, side, side}));
    conv("x", "stem", {.channels = 8, .filters = stem, .kernel = 3});
  }

  GraphWriter& graph() { return writer_.graph(); }
  ModelWriter& writer() { return writer_; }

  void conv(const std::string& x, const std::string& y, const ConvShape& s) {
    add_conv(graph(), x, y, s);
    made_.push_back(y);
  }
  void add(const std::string& a, const std::string& b, const std::string& y) {
    graph().node("Add", {a, b}, {y});
    made_.push_back(y);
  }
  void split(const std::string& x, const std::vector<std::string>& parts,
             const std::vector<int64_t>& sizes) {
    graph().initializer(i64_tensor(x + "_sizes", {static_cast<int64_t>(sizes.size())}, sizes));
    graph().node("Split", {x, x + "_sizes"}, parts).attr_int("axis", 1);
    made_.insert(made_.end(), parts.begin(), parts.end());
  }
  void slice(const std::string& x, const std::string& y, int64_t from, int64_t to,
             int64_t step = 1) {
    graph().initializer(i64_tensor(y + "_from", {1}, {from}));
    graph().initializer(i64_tensor(y + "_to", {1}, {to}));
    graph().initializer(i64_tensor(y + "_axis", {1}, {1}));
    graph().initializer(i64_tensor(y + "_step", {1}, {step}));
    graph().node("Slice", {x, y + "_from", y + "_to", y + "_axis", y + "_step"}, {y});
    made_.push_back(y);
  }
  void concat(const std::vector<std::string>& parts, const std::string& y) {
    graph().node("Concat", parts, {y}).attr_int("axis", 1);
    made_.push_back(y);
  }
  void made(const std::string& y) { made_.push_back(y); }
  void output(const std::string& y) {
    graph().output(y, f32_type({Dim("n"), Dim("c"), Dim("i"), Dim("j")}));
    outputs_.push_back(y);
  }
  // Everything is read elsewhere, too, so that nothing becomes part of an image.
  void set_apart() {
    for (const std::string& y : made_) {
      if (std::find(outputs_.begin(), outputs_.end(), y) == outputs_.end()) {
        graph().output(y, f32_type({Dim("n"), Dim("c"), Dim("i"), Dim("j")}));
      }
    }
  }

  size_t output_count() const { return outputs_.size(); }
  Tensor image() const {
    return make_tensor<float>(Shape{batch_, 8, side_, side_}, wave(batch_ * 8 * side_ * side_));
  }

 private:
  ModelWriter writer_ = plain_model();
  int64_t batch_, side_;
  std::vector<std::string> made_;
  std::vector<std::string> outputs_;
};

struct NetworkCase {
  const char* name;
  void (*add)(Network& n);
  int64_t stem = 64, batch = 1, side = 12;
};

Network network_of(const NetworkCase& c, bool is_apart) {
  Network network(c.stem, c.batch, c.side);
  c.add(network);
  if (is_apart) network.set_apart();
  return network;
}

// How often what copies channels, and what reads or writes some, is left.
struct Found {
  int copies = 0;
  int reads = 0;
  int writes = 0;
  friend bool operator==(const Found&, const Found&) = default;
};
std::ostream& operator<<(std::ostream& out, const Found& f) {
  return out << f.copies << " that copy, " << f.reads << " that read, " << f.writes
             << " that write channels";
}

Found found(const NetworkCase& c, bool is_apart = false) {
  Network network = network_of(c, is_apart);
  const auto model = formed(network.writer());
  Found f;
  for (const Node& node : model->graph.nodes) {
    if (node.dead) continue;
    const std::string& type = node.op_type;
    const bool is_join = type == "Join";
    f.copies += is_join || type == "Concat" || type == "Split" || type == "Slice" ? 1 : 0;
    f.writes += !is_join && node.attributes.has(kJoinedAttribute) ? 1 : 0;
    for (const AttributeDef& attribute : node.attributes.all()) {
      const std::string& name = attribute.name;
      const bool is_x = name.size() >= 4 && name.substr(name.size() - 4) == kXAtAttribute;
      f.reads += is_x || name == kZAtAttribute ? 1 : 0;
    }
  }
  return f;
}

// All of `c` as it is and with nothing in one image: the outputs that it has anyway.
void expect_same(const NetworkCase& c) {
  SCOPED_TRACE(c.name);
  const auto runs = [&](bool is_apart, int threads) {
    Network network = network_of(c, is_apart);
    return floats_of_runs(network.writer(), {{"x", Value(network.image())}}, threads);
  };
  const size_t count = network_of(c, false).output_count();
  const auto expected = runs(true, 1);
  ASSERT_EQ(expected.size(), 2U);
  for (const int threads : {1, 2, 5}) {
    const auto got = runs(false, threads);
    ASSERT_EQ(got.size(), 2U);
    for (size_t i = 0; i < count; ++i) {
      SCOPED_TRACE("output " + std::to_string(i) + ", threads: " + std::to_string(threads));
      expect_same_bits(got[0][i], expected[0][i]);
      expect_same_bits(got[1][i], expected[1][i]);
    }
  }
}

// One convolution for each half of the image.
template <int64_t kFilters, int64_t kKernel, int64_t kGroup, int64_t kStride = 1,
          int64_t kDilation = 1>
void halves(Network& n) {
  n.split("stem", {"a", "b"}, {24, 40});
  n.conv("a", "of_a", {.channels = 24, .filters = 16, .kernel = kKernel});
  n.conv("b", "of_b", {40, kFilters, kKernel, kGroup, "Relu", kStride, kDilation});
  n.output("of_a");
  n.output("of_b");
}

const NetworkCase kReaders[] = {
    {"pixels", halves<20, 1, 1>},
    {"pixels, strided", halves<20, 1, 1, 2>, 64, 2, 13},
    {"3x3", halves<40, 3, 1>, 64, 2, 21},
    {"3x3, strided", halves<40, 3, 1, 2>, 64, 2, 21},
    {"3x3, dilated", halves<16, 3, 1, 1, 4>, 64, 2, 21},
    {"5x5", halves<17, 5, 1>, 64, 1, 40},
    {"groups", halves<32, 3, 2>, 64, 2, 14},
    {"small groups", halves<40, 3, 5>, 64, 2, 14},
    {"filters over one channel each", halves<40, 3, 40>, 64, 2, 17},
    {"filters of 5x5", halves<40, 5, 40>, 64, 2, 9},
    {"filters of one tap", halves<40, 1, 40>, 64, 2, 9},
};

TEST(ReadChannels, ConvolutionsReadWhatSplitWouldCopy) {
  for (const NetworkCase& c : kReaders) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(found(c), (Found{0, 2, 0}));
    EXPECT_EQ(found(c, true).copies, 1);
    expect_same(c);
  }
}

TEST(ReadChannels, LinesOfFewChannels) {
  const NetworkCase c = {"lines",
                         [](Network& n) {
                           n.split("stem", {"a", "b", "c"}, {8, 20, 4});
                           n.conv("a", "of_a", {.channels = 8, .filters = 24, .kernel = 3});
                           n.conv("b", "of_b", {20, 33, 5, 1, "Sigmoid"});
                           n.conv("c", "of_c", {4, 16, 3, 1, "", 2, 2});
                           for (const char* y : {"of_a", "of_b", "of_c"}) n.output(y);
                         },
                         32, 2, 37};
  EXPECT_EQ(found(c), (Found{0, 3, 0}));
  expect_same(c);
}

TEST(ReadChannels, ChainsReadWhatSplitWouldCopy) {
  const NetworkCase c = {"chains",
                         [](Network& n) {
                           n.split("stem", {"a", "b"}, {40, 56});
                           n.conv("a", "filtered", {40, 40, 3, 40});
                           n.conv("filtered", "of_a", {.channels = 40, .filters = 24});
                           n.conv("b", "wide", {.channels = 56, .filters = 64});
                           n.conv("wide", "of_b", {64, 64, 3, 64});
                           n.output("of_a");
                           n.output("of_b");
                         },
                         96, 1, 90};
  EXPECT_EQ(found(c), (Found{0, 2, 0}));
  expect_same(c);
}

TEST(ReadChannels, SlicesOfAnImage) {
  const NetworkCase taken = {"slices", [](Network& n) {
                               n.slice("stem", "a", 8, 40);
                               n.slice("stem", "b", -24, 1000);
                               n.conv("a", "of_a", {.kernel = 3});
                               n.conv("b", "of_b", {.channels = 24});
                               n.output("of_a");
                               n.output("of_b");
                             }};
  EXPECT_EQ(found(taken), (Found{0, 2, 0}));
  expect_same(taken);
  const NetworkCase left = {"every second one", [](Network& n) {
                              n.slice("stem", "a", 0, 64, 2);
                              n.conv("a", "of_a", {});
                              n.output("of_a");
                            }};
  EXPECT_EQ(found(left).copies, 1);
}

TEST(ReadChannels, WhatOthersReadIsCopied) {
  const NetworkCase tanh = {"a function", [](Network& n) {
                              n.split("stem", {"a", "b"}, {32, 32});
                              n.graph().node("Tanh", {"a"}, {"of_a"});
                              n.conv("b", "of_b", {});
                              n.output("of_a");
                              n.output("of_b");
                            }};
  EXPECT_EQ(found(tanh), (Found{1, 0, 0}));
  const NetworkCase few = {"few filters", [](Network& n) {
                             n.split("stem", {"a", "b"}, {32, 32});
                             n.conv("a", "of_a", {.filters = 2});
                             n.conv("b", "of_b", {});
                             n.output("of_a");
                             n.output("of_b");
                           }};
  EXPECT_EQ(found(few), (Found{1, 0, 0}));
}

TEST(ReadChannels, SplitsOfSplits) {
  const NetworkCase c = {"twice", [](Network& n) {
                           n.split("stem", {"a", "b"}, {16, 48});
                           n.split("b", {"c", "d"}, {20, 28});
                           n.conv("a", "of_a", {.channels = 16});
                           n.conv("c", "of_c", {.channels = 20});
                           n.conv("d", "of_d", {.channels = 28, .kernel = 3});
                           for (const char* y : {"of_a", "of_c", "of_d"}) n.output(y);
                         }};
  EXPECT_EQ(found(c), (Found{0, 3, 0}));
  expect_same(c);
}

// A block of YOLOv8: halves of an image, of which one goes on, and all that was made.
template <int kDepth, int64_t kChannels>
void c2f(Network& n) {
  n.conv("stem", "both", {.channels = 64, .filters = 2 * kChannels});
  n.split("both", {"a", "m0"}, {kChannels, kChannels});
  std::vector<std::string> parts = {"a", "m0"};
  for (int i = 0; i < kDepth; ++i) {
    const std::string y = "m" + std::to_string(i + 1);
    n.conv(parts.back(), y + "_first", {kChannels, kChannels, 3});
    n.conv(y + "_first", y + "_second", {kChannels, kChannels, 3});
    n.add(parts.back(), y + "_second", y);
    parts.push_back(y);
  }
  n.concat(parts, "joined");
  n.conv("joined", "y", {.channels = (kDepth + 2) * kChannels, .filters = 48});
  n.output("y");
}

TEST(ReadChannels, BlocksOfYolo) {
  const NetworkCase one = {"C2f", c2f<1, 32>, 64, 1, 20};
  const NetworkCase two = {"C2f of two", c2f<2, 16>, 64, 2, 23};
  EXPECT_EQ(found(one), (Found{0, 2, 2}));
  EXPECT_EQ(found(two), (Found{0, 4, 3}));
  expect_same(one);
  expect_same(two);
}

// A layer reads all that the ones before it made.
void dense(Network& n) {
  std::vector<std::string> features = {"pool"};
  n.graph().node("MaxPool", {"stem"}, {"pool"}).attr_ints("kernel_shape", {2, 2});
  int64_t channels = 32;
  for (int i = 0; i < 4; ++i, channels += 24) {
    const std::string y = "layer" + std::to_string(i);
    std::string x = features[0];
    if (i > 0) n.concat(features, x = y + "_in");
    n.conv(x, y + "_first", {.channels = channels, .filters = 48});
    n.conv(y + "_first", y, {48, 24, 3, 1, ""});
    features.push_back(y);
  }
  n.concat(features, "joined");
  n.conv("joined", "y", {.channels = channels});
  n.output("y");
}

TEST(ReadChannels, BlocksOfDenseNet) {
  const NetworkCase c = {"dense", dense, 32, 2, 17};
  EXPECT_EQ(found(c), (Found{1, 3, 4})) << "what MaxPool made is copied once";
  expect_same(c);
}

// A convolution and a filter of what it made, side by side; then all of them, in halves again.
void ghost(Network& n) {
  n.conv("stem", "a", {.channels = 64, .filters = 24});
  n.conv("a", "b", {24, 24, 3, 24});
  n.concat({"a", "b"}, "ghost");
  n.conv("ghost", "c", {.channels = 48, .filters = 20, .function = "Sigmoid"});
  n.conv("c", "d", {20, 20, 3, 20, "HardSwish"});
  n.concat({"d", "c"}, "turned");
  n.split("turned", {"e", "f"}, {30, 10});
  n.conv("e", "of_e", {.channels = 30, .filters = 16});
  n.conv("f", "of_f", {10, 10, 3, 10});
  n.output("of_e");
  n.output("of_f");
}

TEST(ReadChannels, FiltersBesideWhatTheyRead) {
  const NetworkCase c = {"ghost", ghost, 64, 2, 15};
  EXPECT_EQ(found(c), (Found{0, 4, 4}));
  expect_same(c);
}

// Halves that change places, and a part that is there twice.
void turned(Network& n) {
  n.split("stem", {"a", "b"}, {20, 44});
  n.conv("b", "c", {.channels = 44, .filters = 20});
  n.concat({"b", "c", "a", "a"}, "joined");
  n.conv("joined", "y", {.channels = 104});
  n.output("y");
}

TEST(ReadChannels, JoinsCopyChannels) {
  const NetworkCase c = {"turned", turned, 64, 2, 11};
  EXPECT_EQ(found(c), (Found{1, 1, 0}));
  expect_same(c);
}

// A decoder: an image resized beside one that was made long before, as in U-Nets.
void decoder(Network& n, const char* mode, const char* coordinates, bool is_skip_first,
             float of_channels = 1) {
  n.conv("stem", "skip", {.channels = 32});
  n.conv("stem", "down", {32, 40, 3, 1, "Relu", 2});
  std::string x = "down";
  for (int i = 0; i < 5; ++i) n.conv(x, x + "_", {.channels = 40, .filters = 40}), x += "_";
  n.graph().initializer(f32_tensor("scales", {4}, {1, of_channels, 2, 2}));
  n.graph()
      .node("Resize", {x, "", "scales"}, {"up"})
      .attr_string("mode", mode)
      .attr_string("coordinate_transformation_mode", coordinates)
      .attr_string("nearest_mode", "floor");
  n.made("up");
  const std::vector<std::string> parts = {"skip", "up"};
  n.concat(is_skip_first ? parts : std::vector<std::string>{parts[1], parts[0]}, "joined");
  n.conv("joined", "y", {.channels = 72, .filters = 24, .kernel = 3});
  n.output("y");
}

TEST(JoinResize, WritesWhereConcatWouldCopy) {
  const NetworkCase cases[] = {
      {"linear", [](Network& n) { decoder(n, "linear", "half_pixel", true); }, 32, 2, 22},
      {"corners", [](Network& n) { decoder(n, "linear", "align_corners", false); }, 32, 1, 36},
      {"cubic", [](Network& n) { decoder(n, "cubic", "half_pixel", false); }, 32, 1, 10},
      {"nearest", [](Network& n) { decoder(n, "nearest", "asymmetric", true); }, 32, 2, 14},
      // As many channels, each a little beside its own.
      {"channels", [](Network& n) { decoder(n, "linear", "asymmetric", true, 1.02F); }, 32, 1, 8},
      {"near", [](Network& n) { decoder(n, "nearest", "asymmetric", true, 1.02F); }, 32, 1, 8},
  };
  for (const NetworkCase& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(found(c), (Found{1, 0, 1}));
    expect_same(c);
  }
}

// The decoder of a U-Net that learns how its images grow.
template <int64_t kFilters, int64_t kKernel, bool kIsSkipFirst>
void grown(Network& n, const char* function) {
  n.conv("stem", "skip", {.channels = 32});
  n.conv("stem", "down", {32, 40, 3, 1, "Relu", 2});
  std::string x = "down";
  for (int i = 0; i < 5; ++i) n.conv(x, x + "_", {.channels = 40, .filters = 40}), x += "_";
  n.graph().initializer(f32_tensor("grow", {40, kFilters, kKernel, kKernel},
                                   small_wave(40 * kFilters * kKernel * kKernel, 0.3F)));
  const int64_t pad = (kKernel - 2) / 2;
  n.graph()
      .node("ConvTranspose", {x, "grow"}, {"sum"})
      .attr_ints("strides", {2, 2})
      .attr_ints("pads", {pad, pad, pad, pad});
  n.graph().node(function, {"sum"}, {"up"});
  n.made("up");
  const std::vector<std::string> parts = {"skip", "up"};
  n.concat(kIsSkipFirst ? parts : std::vector<std::string>{parts[1], parts[0]}, "joined");
  n.conv("joined", "y", {.channels = 32 + kFilters, .filters = 24, .kernel = 3});
  n.output("y");
}

TEST(JoinTransposed, WritesWhereConcatWouldCopy) {
  const NetworkCase cases[] = {
      {"Relu", [](Network& n) { grown<32, 2, true>(n, "Relu"); }, 32, 2, 18},
      {"Sigmoid", [](Network& n) { grown<40, 2, false>(n, "Sigmoid"); }, 32, 1, 34},
      {"overlapping", [](Network& n) { grown<300, 4, true>(n, "Relu"); }, 32, 2, 12},
  };
  for (const NetworkCase& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(found(c), (Found{1, 0, 1}));
    expect_same(c);
  }
}

// One axis grows, the other shrinks: by a tensor between.
TEST(JoinResize, WhatIsNotMadeLineByLineIsCopied) {
  const auto shrinks = [](Network& n) {
    n.conv("stem", "a", {.channels = 32, .filters = 40});
    n.graph().initializer(f32_tensor("scales", {4}, {1, 1, 0.5F, 2}));
    n.graph().node("Resize", {"a", "", "scales"}, {"b"}).attr_string("mode", "linear");
    n.made("b");
    n.graph().node("Resize", {"stem", "", "scales"}, {"c"}).attr_string("mode", "linear");
    n.made("c");
    n.concat({"b", "c"}, "joined");
    n.conv("joined", "y", {.channels = 72});
    n.output("y");
  };
  const NetworkCase c = {"shrinks", shrinks, 32, 2, 12};
  EXPECT_EQ(found(c), (Found{0, 0, 2}));
  expect_same(c);
}

// What a join and one that it takes in both have is written once.
void twice(Network& n) {
  n.conv("stem", "a", {.channels = 64, .filters = 16});
  n.conv("a", "b", {.channels = 16, .filters = 20});
  n.concat({"a", "b"}, "inner");
  n.conv("inner", "c", {.channels = 36, .filters = 24});
  n.concat({"c", "inner", "a"}, "joined");
  n.conv("joined", "y", {.channels = 76, .kernel = 3});
  n.output("y");
}

TEST(ReadChannels, WhatIsJoinedTwiceIsWrittenOnce) {
  const NetworkCase c = {"twice", twice, 64, 2, 11};
  EXPECT_EQ(found(c), (Found{1, 2, 3}));
  expect_same(c);
}

// Two chains that read the input: no convolution of the graph is alone.
void chains(Network& n) {
  for (const std::string y : {"a", "b"}) {
    n.conv("x", y + "_wide", {.channels = 8});
    n.conv(y + "_wide", y, {.kernel = 3, .group = 32});
  }
  n.concat({"a", "b"}, "joined");
  n.graph().node("MaxPool", {"joined"}, {"y"}).attr_ints("kernel_shape", {2, 2});
  n.output("y");
}

TEST(ReadChannels, ChainsAloneWriteOneImage) {
  const NetworkCase c = {"chains", chains, 32, 1, 96};
  EXPECT_EQ(found(c), (Found{0, 0, 2}));
  expect_same(c);
}

// What goes through a function that no kernel applies before it is added to.
template <int64_t kKernel, int64_t kGroup>
void shortcut(Network& n) {
  n.conv("stem", "a", {32, 32, kKernel, kGroup, "Sigmoid"});
  n.add("stem", "a", "b");
  n.conv("b", "c", {32, 32, kKernel, kGroup, "Relu"});
  n.add("c", "b", "d");
  n.output("d");
}

TEST(AddBehind, ConvolutionsAddShortcuts) {
  const NetworkCase cases[] = {
      {"pixels", shortcut<1, 1>, 32, 2, 19},  {"3x3", shortcut<3, 1>, 32, 2, 22},
      {"5x5", shortcut<5, 1>, 32, 1, 12},     {"groups", shortcut<3, 2>, 32, 2, 9},
      {"filters", shortcut<3, 32>, 32, 2, 9}, {"small groups", shortcut<3, 8>, 32, 1, 12},
  };
  for (const NetworkCase& c : cases) {
    SCOPED_TRACE(c.name);
    Network network = network_of(c, false);
    const auto model = formed(network.writer());
    EXPECT_EQ(count_nodes(model->graph, "Add"), 0) << types_of(model->graph);
    expect_same(c);
  }
}

// The chain of a convolution, a filter and one more, of an image that is large.
TEST(AddBehind, ChainsAddShortcuts) {
  const NetworkCase c = {"chain",
                         [](Network& n) {
                           n.conv("stem", "a", {.channels = 32, .filters = 48});
                           n.conv("a", "b", {48, 48, 3, 48});
                           n.conv("b", "c", {48, 32, 1, 1, "HardSwish"});
                           n.add("stem", "c", "d");
                           n.output("d");
                         },
                         32, 1, 96};
  Network network = network_of(c, false);
  const auto model = formed(network.writer());
  EXPECT_EQ(count_nodes(model->graph, "Add"), 0) << types_of(model->graph);
  EXPECT_EQ(count_nodes(model->graph, "ConvChain"), 1) << types_of(model->graph);
  expect_same(c);
}

}  // namespace
}  // namespace folio
