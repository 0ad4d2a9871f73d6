// join_in_place: which convolutions write where Concat would copy, with the bits they have apart.
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

// What makes one of a Concat's inputs.
enum class Maker {
  kConv,
  kPool,     // of a convolution that the others read, too: nothing that writes in place
  kSum,      // a convolution that adds what another has made
  kStem,     // what all of them read
  kDeep,     // many convolutions, one after the other
  kShared,   // a convolution that something else reads
  kFilters,  // one over one channel each
  kChain,    // such a one, and one of pixels: a chain where the image is large
};

struct Branch {
  Maker maker = Maker::kConv;
  int64_t filters = 32;
  int64_t kernel = 1;
  const char* function = "Relu";
  int64_t group = 1;
};

constexpr int64_t kStem = 48;  // channels that all branches read

struct JoinCase {
  std::vector<Branch> branches = {{}, {}};
  int64_t batch = 1, side = 12;
  bool is_known = true;        // batch, height and width
  bool is_apart = false;       // what branches make is read elsewhere, too
  bool joins_batches = false;  // along another axis
  bool is_inner = false;       // in a branch of If
};

class JoinModel {
 public:
  explicit JoinModel(const JoinCase& c)
      : c_(c),
        writer_(plain_model()),
        inner_("inner"),
        body_(c.is_inner ? inner_ : writer_.graph()) {
    const auto known = [&](const char* name, int64_t dim) {
      return c.is_known ? Dim(dim) : Dim(name);
    };
    writer_.graph().input(
        "x", f32_type({known("batch", c.batch), 8, known("h", c.side), known("w", c.side)}));
    add_body();
    if (!c.is_inner) return;
    writer_.graph().input("c", model_writer::Type::tensor(kBoolean, {}));
    GraphWriter otherwise("otherwise");
    otherwise.output("x", image_type());
    writer_.graph()
        .node("If", {"c"}, {"made"})
        .attr_graph("then_branch", std::move(inner_))
        .attr_graph("else_branch", std::move(otherwise));
    writer_.graph().output("made", image_type());
  }

  ModelWriter& writer() { return writer_; }

 private:
  static bool is_wide(const Branch& b) {
    return b.maker == Maker::kPool || b.maker == Maker::kStem || b.maker == Maker::kFilters;
  }
  static bool is_written(const Branch& b) {
    return b.maker != Maker::kPool && b.maker != Maker::kStem && b.maker != Maker::kShared;
  }
  static model_writer::Type image_type() {
    return f32_type({Dim("n"), Dim("c"), Dim("i"), Dim("j")});
  }

  void conv(const std::string& x, const std::string& y, const Branch& b, int64_t channels) {
    add_conv(body_, x, y, {channels, b.filters, b.kernel, b.group, b.function});
  }

  void add_body() {
    conv("x", "stem", {.filters = kStem, .kernel = 3}, 8);
    std::vector<std::string> parts;
    int64_t channels = 0;
    for (size_t i = 0; i < c_.branches.size(); ++i) {
      const Branch& branch = c_.branches[i];
      parts.push_back("part" + std::to_string(i));
      channels += is_wide(branch) ? kStem : branch.filters;
      make(branch, parts.back());
      const bool is_read = branch.maker == Maker::kShared || (c_.is_apart && is_written(branch));
      if (is_read) body_.output(parts.back(), image_type());
    }
    body_.node("Concat", parts, {"joined"}).attr_int("axis", c_.joins_batches ? 0 : 1);
    const int64_t read = c_.joins_batches ? c_.branches[0].filters : channels;
    conv("joined", "out", {.filters = 20, .function = ""}, read);
    body_.output("out", image_type());
  }

  void make(const Branch& branch, const std::string& y) {
    auto& graph = body_;
    const Branch filter{.filters = kStem, .kernel = 3, .group = kStem};
    switch (branch.maker) {
      case Maker::kConv:
      case Maker::kShared:
        return conv("stem", y, branch, kStem);
      case Maker::kFilters:
        return conv("stem", y, filter, kStem);
      case Maker::kChain:
        conv("stem", y + "_filter", filter, kStem);
        return conv(y + "_filter", y, branch, kStem);
      case Maker::kStem:
        graph.node("Identity", {"stem"}, {y});
        return;
      case Maker::kPool:
        graph.node("MaxPool", {"stem"}, {y})
            .attr_ints("kernel_shape", {3, 3})
            .attr_ints("pads", {1, 1, 1, 1});
        return;
      case Maker::kSum: {
        Branch plain = branch;
        plain.function = "";
        conv("stem", y + "_one", branch, kStem);
        conv("stem", y + "_two", plain, kStem);
        graph.node("Add", {y + "_two", y + "_one"}, {y});
        return;
      }
      case Maker::kDeep: {
        std::string from = "stem";
        for (int i = 0; i < 8; ++i) {
          const std::string to = i == 7 ? y : y + "_" + std::to_string(i);
          conv(from, to, branch, i == 0 ? kStem : branch.filters);
          from = to;
        }
        return;
      }
    }
  }

  JoinCase c_;
  ModelWriter writer_;
  GraphWriter inner_;
  GraphWriter& body_;
};

struct Found {
  int writers = 0;
  int concats = 0;
  int joins = 0;
  friend bool operator==(const Found&, const Found&) = default;
};
std::ostream& operator<<(std::ostream& out, const Found& f) {
  return out << f.writers << " writers, " << f.concats << " Concat, " << f.joins << " Join";
}

Found found(const JoinCase& c) {
  const auto model = formed(JoinModel(c).writer());
  Found f;
  for (const Node& node : model->graph.nodes) {
    if (node.dead) continue;
    f.writers += node.op_type != "Join" && node.attributes.has(kJoinedAttribute) ? 1 : 0;
    f.concats += node.op_type == "Concat" ? 1 : 0;
    f.joins += node.op_type == "Join" ? 1 : 0;
  }
  return f;
}

TEST(JoinInPlace, ConvolutionsWriteTheJoinedImage) {
  EXPECT_EQ(found({}), (Found{2, 0, 0}));
  EXPECT_EQ(found({.is_known = false}), (Found{2, 0, 0}));
  EXPECT_EQ(found({.branches = {{.filters = 16}, {.kernel = 3}, {.kernel = 5}}}), (Found{3, 0, 0}));
  EXPECT_EQ(found({.branches = {{.function = ""}, {.function = "Sigmoid"}}}), (Found{2, 0, 0}));
  EXPECT_EQ(found({.branches = {{}, {Maker::kSum}, {}}}), (Found{3, 0, 0}));
  EXPECT_EQ(found({.branches = {{.filters = 64}, {Maker::kFilters}}}), (Found{2, 0, 0}));
  EXPECT_EQ(found({.branches = {{Maker::kStem}, {.filters = 64}}}), (Found{2, 0, 0}))
      << "others read it there";
}

TEST(JoinInPlace, WhatOthersMakeIsCopied) {
  EXPECT_EQ(found({.branches = {{.filters = 64}, {Maker::kPool}}}), (Found{1, 0, 1}));
  EXPECT_EQ(found({.branches = {{}, {Maker::kShared}, {}}}), (Found{2, 0, 1}));
  EXPECT_EQ(found({.branches = {{}, {.filters = 5}}}), (Found{1, 0, 1})) << "few filters";
}

TEST(JoinInPlace, LeavesConcat) {
  EXPECT_EQ(found({.branches = {{}, {Maker::kPool}}}), (Found{0, 1, 0})) << "most is copied";
  EXPECT_EQ(found({.branches = {{.filters = 33}, {Maker::kDeep}}}), (Found{0, 1, 0}))
      << "the first one is made long before it";
  EXPECT_EQ(found({.branches = {{}, {Maker::kDeep}}}), (Found{1, 0, 1}));
  EXPECT_EQ(found({.branches = {{Maker::kDeep}, {}}}), (Found{2, 0, 0}));
  EXPECT_EQ(found({.joins_batches = true}), (Found{0, 1, 0}));
  EXPECT_EQ(found({.branches = {{}}}), (Found{0, 0, 0})) << "one input: there is none";
}

// All outputs of the first run, and of one with packed weights: the last one's floats.
std::vector<std::vector<float>> outputs(const JoinCase& c, int threads, bool has_nan) {
  std::vector<float> image = wave(c.batch * 8 * c.side * c.side);
  if (has_nan) image.back() = std::numeric_limits<float>::quiet_NaN();
  std::vector<NamedValue> inputs = {
      {"x", Value(make_tensor<float>(Shape{c.batch, 8, c.side, c.side}, image))}};
  if (c.is_inner) inputs.push_back({"c", Value(make_tensor<bool>(Shape{}, {true}))});
  std::vector<std::vector<float>> out;
  for (const auto& run : floats_of_runs(JoinModel(c).writer(), inputs, threads)) {
    out.push_back(run.back());
  }
  return out;
}

TEST(JoinInPlace, HasTheBitsOfConcat) {
  const JoinCase cases[] = {
      {},
      {.batch = 3},
      {.branches = {{.filters = 17}, {.filters = 33}}},
      {.branches = {{.filters = 20, .function = "Sigmoid"}, {.filters = 35, .function = "Tanh"}}},
      {.branches = {{.kernel = 3}, {.filters = 40, .kernel = 3, .function = "Sigmoid"}},
       .batch = 2,
       .side = 30},
      {.branches = {{.kernel = 5}, {.filters = 18, .kernel = 3, .function = ""}}, .side = 33},
      {.branches = {{.filters = 48, .kernel = 3, .group = 2}, {.filters = 48, .group = 2}}},
      {.branches = {{.filters = 64}, {Maker::kPool}, {.filters = 21}}, .batch = 2},
      {.branches = {{Maker::kStem}, {.filters = 90}, {Maker::kSum}}},
      {.branches = {{Maker::kSum, 20, 3, ""}, {Maker::kSum, 32, 3, "Sigmoid"}}, .side = 23},
      {.branches = {{Maker::kFilters}, {.filters = 24}}, .batch = 2, .side = 19},
      {.branches = {{Maker::kChain}, {}}, .batch = 2, .side = 80},
      {.branches = {{.function = "HardSwish"}, {Maker::kChain, 40, 1, "Sigmoid"}}, .side = 90},
      {.branches = {{.filters = 300}, {.filters = 16}}, .side = 3},
      {.branches = {{.filters = 64}, {.filters = 64}}, .side = 61},
      {.branches = {{}, {.kernel = 3}}, .batch = 2, .is_known = false},
  };
  for (const JoinCase& c : cases) {
    for (const bool has_nan : {false, true}) {
      SCOPED_TRACE("case " + std::to_string(&c - cases) + (has_nan ? ", NaN" : ""));
      EXPECT_GT(found(c).writers, 0);
      JoinCase apart = c;
      apart.is_apart = true;
      EXPECT_EQ(found(apart).writers, 0);
      const auto expected = outputs(apart, 1, has_nan);
      ASSERT_EQ(expected.size(), 2U);
      for (const int threads : {1, 2, 5}) {
        const auto got = outputs(c, threads, has_nan);
        ASSERT_EQ(got.size(), 2U);
        expect_same_bits(got[0], expected[0]);
        expect_same_bits(got[1], expected[1]);
      }
    }
  }
}

TEST(JoinInPlace, WritesImagesOfASubgraph) {
  const JoinCase inner = {.branches = {{.filters = 64}, {Maker::kPool}, {}}, .is_inner = true};
  JoinCase apart = inner;
  apart.is_apart = true;
  apart.is_inner = false;
  const auto model = formed(JoinModel(inner).writer());
  const Graph* body = nullptr;
  for (const Node& node : model->graph.nodes) {
    if (node.op_type == "If") body = node.subgraph("then_branch");
  }
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(count_nodes(*body, "Join"), 1) << types_of(*body);
  const auto expected = outputs(apart, 1, false);
  const auto got = outputs(inner, 2, false);
  ASSERT_EQ(expected.size(), 2U);
  ASSERT_EQ(got.size(), 2U);
  expect_same_bits(got[0], expected[0]);
  expect_same_bits(got[1], expected[1]);
}

}  // namespace
}  // namespace folio
