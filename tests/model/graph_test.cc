// Graph: captures, replacing uses, and long chains of recipes.
#include "core/model/graph.h"

#include <gtest/gtest.h>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

Node node_of(std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node node;
  node.op_type = "Test";
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

TEST(Graph, ACaptureIsMadeOnce) {
  Graph outer;
  const ValueId x = outer.add_value("x");
  Graph inner;
  inner.parent = &outer;
  const ValueId first = inner.capture(x);
  EXPECT_EQ(inner.capture(x), first);
  EXPECT_EQ(inner.value(first).outer, x);
  EXPECT_EQ(inner.values.size(), 1U);
}

// a, b are values of the outer graph; the subgraph captures both and gives both.
struct Nested {
  Graph outer;
  ValueId a = outer.add_value("a");
  ValueId b = outer.add_value("b");
  Graph* inner = nullptr;
  ValueId inner_a = kNone;
  ValueId inner_b = kNone;

  Nested() {
    auto graph = std::make_unique<Graph>();
    inner = graph.get();
    inner->parent = &outer;
    inner_a = inner->capture(a);
    inner_b = inner->capture(b);
    inner->nodes.push_back(node_of({inner_a, inner_b}, {inner->add_value("sum")}));
    inner->outputs = {inner_a, inner_b};
    Node node = node_of({a, b}, {outer.add_value("y")});
    node.subgraph_names = {"body"};
    node.subgraphs.push_back(std::move(graph));
    outer.nodes.push_back(std::move(node));
    outer.outputs = {b};
  }
};

TEST(Graph, ReplacingAUseMergesCaptures) {
  Nested nested;
  nested.outer.replace_uses({{nested.b, nested.a}});
  EXPECT_EQ(nested.outer.nodes[0].inputs, (std::vector<ValueId>{nested.a, nested.a}));
  EXPECT_EQ(nested.inner->nodes[0].inputs, (std::vector<ValueId>{nested.inner_a, nested.inner_a}));
  EXPECT_EQ(nested.inner->outputs, (std::vector<ValueId>{nested.inner_a, nested.inner_a}));
  EXPECT_EQ(nested.outer.outputs, (std::vector<ValueId>{nested.b})) << "graph outputs stay";
  EXPECT_EQ(nested.inner->capture(nested.a), nested.inner_a);
}

TEST(Graph, ReplacingAUseMovesACapture) {
  Nested nested;
  const ValueId c = nested.outer.add_value("c");
  nested.outer.replace_uses({{nested.b, c}});
  EXPECT_EQ(nested.inner->value(nested.inner_b).outer, c);
  EXPECT_EQ(nested.inner->capture(c), nested.inner_b);
}

TEST(Graph, ReplacementsAreAppliedTogether) {
  // c reads b, b reads a: both now read a.
  Nested nested;
  const ValueId c = nested.outer.add_value("c");
  nested.outer.nodes[0].inputs = {nested.b, c};
  nested.outer.replace_uses({{nested.b, nested.a}, {c, nested.a}});
  EXPECT_EQ(nested.outer.nodes[0].inputs, (std::vector<ValueId>{nested.a, nested.a}));
}

TEST(Graph, UnusedCapturesAreForgotten) {
  Nested nested;
  nested.inner->nodes[0].inputs = {nested.inner_a};
  nested.inner->outputs = {nested.inner_a};
  nested.inner->drop_unused_captures();
  EXPECT_EQ(nested.inner->value(nested.inner_b).outer, kNone);
  EXPECT_EQ(nested.inner->value(nested.inner_a).outer, nested.a);
  const std::vector<int> uses = nested.outer.use_counts();
  EXPECT_EQ(uses[static_cast<size_t>(nested.a)], 2);
}

TEST(Graph, AConstantIsSeenThroughCaptures) {
  Nested nested;
  nested.outer.value(nested.a).initializer = make_ref<Initializer>();
  EXPECT_EQ(nested.inner->constant_value(nested.inner_a), &nested.outer.value(nested.a));
  EXPECT_EQ(nested.inner->constant_value(nested.inner_b), nullptr);
  nested.outer.value(nested.a).is_input = true;  // overridable
  EXPECT_EQ(nested.inner->constant_value(nested.inner_a), nullptr);
}

TEST(Graph, ALongChainOfRecipesDiesWithoutRecursion) {
  Ref<Initializer> last;
  for (int i = 0; i < 1'000'000; ++i) {
    auto next = make_ref<Initializer>();
    next->recipe = std::make_unique<Recipe>();
    next->recipe->inputs = {last, last};
    last = std::move(next);
  }
  EXPECT_TRUE(last->recipe);
  last = nullptr;
}

}  // namespace
}  // namespace folio
