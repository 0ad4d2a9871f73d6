// keep_indices: an Expand of a scatter's indices goes, with the same results; others stay.
#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

// y = ScatterElements(x [5, dims...], Expand(index), updates)
struct Scattered {
  std::vector<int64_t> index{7, 1};
  std::vector<int64_t> updates{7, 3};
  std::vector<int64_t> expanded{7, 3};
  const char* reduction = "add";
  int opset = 18;
};

std::string types_after(const Scattered& s) {
  ModelWriter writer = plain_model(8, s.opset);
  GraphWriter& graph = writer.graph();
  std::vector<int64_t> x = s.updates;
  x[0] = 5;
  const auto count = [](const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (const int64_t dim : dims) n *= dim;
    return n;
  };
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count(s.index); ++i) places.push_back(i * 3 % 10 - 5);
  graph.input("x", f32_type({x.begin(), x.end()}));
  graph.input("u", f32_type({s.updates.begin(), s.updates.end()}));
  graph.input("i", model_writer::Type::tensor(kI64, {s.index.begin(), s.index.end()}));
  graph.initializer(i64_tensor("d", {static_cast<int64_t>(s.expanded.size())}, s.expanded));
  graph.node("Expand", {"i", "d"}, {"e"});
  graph.node("ScatterElements", {"x", "e", "u"}, {"y"}).attr_string("reduction", s.reduction);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto shape = [](const std::vector<int64_t>& dims) {
    return Shape(Span<const int64_t>(dims));
  };
  fused(writer, {{"x", make_tensor<float>(shape(x), wave(count(x), 1))},
                 {"u", make_tensor<float>(shape(s.updates), wave(count(s.updates), 2))},
                 {"i", make_tensor<int64_t>(shape(s.index), places)}});  // the same results
  const auto model = optimized(writer, Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

TEST(KeepIndices, ThatAnExpandRepeats) {
  EXPECT_EQ(types_after({}), "folio.ScatterElements");
  EXPECT_EQ(types_after({.reduction = "max"}), "folio.ScatterElements");
  EXPECT_EQ(types_after({.reduction = "none"}), "folio.ScatterElements");
  EXPECT_EQ(types_after({.reduction = "mul", .opset = 16}), "folio.ScatterElements");
  EXPECT_EQ(types_after({.index = {7, 1, 1}, .updates = {7, 3, 200}, .expanded = {7, 3, 200}}),
            "folio.ScatterElements");
  EXPECT_EQ(types_after({.index = {7, 3, 1}, .updates = {7, 3, 4}, .expanded = {7, 3, 4}}),
            "folio.ScatterElements");
  EXPECT_EQ(types_after({.index = {1, 3}, .updates = {7, 3}, .expanded = {7, 3}}),
            "folio.ScatterElements");
}

TEST(KeepIndices, KeepTheVersionOfTheirScatter) {
  EXPECT_EQ(types_after({.opset = 11}), "folio.ScatterElements");  // has no reduction: replaces
}

TEST(KeepIndices, LeavesThoseOfAnotherRank) {
  EXPECT_EQ(types_after({.index = {3}}), "Expand ScatterElements");
}

}  // namespace
}  // namespace folio
