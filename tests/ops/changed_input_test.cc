// Inputs used as indices may stand in a file that another process writes to during a run: what an
// operator uses is what it has checked.
#include <gtest/gtest.h>

#include <cstring>

#include "core/kernels/select.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr int kAbsent = -1;

// Overwrites an input as soon as the operator asks for memory of its output: it has checked the
// input by then, and has not used it.
class OverwritingHost final : public OpHost {
 public:
  explicit OverwritingHost(Tensor input) : input_(std::move(input)) {}
  Result<Tensor> allocate_output(int, DType dtype, const Shape& shape) override {
    std::memset(input_.raw_mut(), 0x3F, input_.bytes());
    return allocate_tensor(dtype, shape);
  }
  Status run_subgraph(int, Span<const Value>, std::vector<Value>*) override { return Status::ok(); }
  Status check_cancelled() override { return Status::ok(); }

 private:
  Tensor input_;
};

struct Operator {
  const char* domain;
  const char* type;
  std::vector<std::pair<const char*, int64_t>> numbers;  // attributes
  std::vector<Value> inputs;                             // those of no kind are absent
  size_t outputs = 1;
};

// Output 0 of a run in which input `changed` is overwritten, kAbsent: none.
std::vector<float> result_of(const Operator& op, int changed) {
  Graph graph;
  Node node;
  node.domain = op.domain;
  node.op_type = op.type;
  node.version = kNewestOpset;
  std::vector<AttributeDef> attributes;
  for (const auto& [name, number] : op.numbers) {
    AttributeDef& attribute = attributes.emplace_back();
    attribute.name = name;
    attribute.type = AttributeDef::Type::kInt;
    attribute.ints = {number};
  }
  node.attributes = Attributes(std::move(attributes));
  std::vector<const Value*> inputs;
  for (const Value& input : op.inputs) {
    node.inputs.push_back(input.is_none() ? kNone : static_cast<ValueId>(graph.values.size()));
    graph.values.emplace_back();
    inputs.push_back(input.is_none() ? nullptr : &input);
  }
  for (size_t i = 0; i < op.outputs; ++i) {
    node.outputs.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.emplace_back();
  }
  const OpDef* def = op_registry().find(op.domain, op.type, kNewestOpset);
  OpBuild build(graph, node, kernels_for(0), /*prepack=*/false);
  auto kernel = def->make(build);
  EXPECT_TRUE(kernel.is_ok()) << kernel.status().message();
  if (!kernel.is_ok()) return {};
  Tensor spare = make_tensor<float>({1}, {0});
  OverwritingHost host(changed == kAbsent ? spare
                                          : op.inputs[static_cast<size_t>(changed)].tensor());
  InlineParallel parallel;
  OpRun run(host, kernels_for(0), parallel);
  const std::vector<uint8_t> wanted(op.outputs, 1);
  run.begin(inputs, wanted, {});
  const Status status = kernel.value()->run(run);
  EXPECT_TRUE(status.is_ok()) << status.message();
  if (!status.is_ok()) return {};
  const Tensor& y = run.outputs()[0].tensor();
  return {y.data<float>(), y.data<float>() + y.count()};
}

void expect_unmoved(const Operator& op, int changed) {
  const std::vector<float> before = result_of(op, kAbsent);
  EXPECT_FALSE(before.empty());
  EXPECT_EQ(result_of(op, changed), before);
}

Value counting(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<float>(i % 7));
  return Value(make_tensor<float>(shape, values));
}

TEST(ChangedInput, GroupsOfMatMulNBits) {
  for (const int64_t rows : {1, 70}) {
    std::vector<int32_t> groups(32);
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int32_t>(i % 2);
    expect_unmoved({"com.microsoft",
                    "MatMulNBits",
                    {{"K", 32}, {"N", 2}, {"bits", 4}, {"block_size", 16}},
                    {counting({rows, 32}),
                     Value(make_tensor<uint8_t>({2, 2, 8}, std::vector<uint8_t>(32, 0x9A))),
                     counting({2, 2}), Value(), Value(make_tensor<int32_t>({32}, groups))}},
                   4);
  }
}

TEST(ChangedInput, BatchesOfCropAndResize) {
  expect_unmoved(
      {"com.microsoft",
       "CropAndResize",
       {},
       {counting({2, 1, 3, 3}), Value(make_tensor<float>({2, 4}, {0, 0, 1, 1, 0, 0, 0.5F, 0.5F})),
        Value(make_tensor<int32_t>({2}, {1, 0})), Value(make_tensor<int32_t>({2}, {2, 2}))}},
      2);
}

TEST(ChangedInput, IdsOfEmbedLayerNormalization) {
  for (const int changed : {0, 1, 8}) {
    expect_unmoved(
        {"com.microsoft",
         "EmbedLayerNormalization",
         {},
         {Value(make_tensor<int32_t>({1, 2}, {1, 0})), Value(make_tensor<int32_t>({1, 2}, {1, 0})),
          counting({2, 3}), counting({3, 3}), counting({2, 3}), counting({3}), counting({3}),
          Value(), Value(make_tensor<int32_t>({1, 2}, {2, 0}))}},
        changed);
  }
}

TEST(ChangedInput, CharactersOfWordConvEmbedding) {
  expect_unmoved({"com.microsoft",
                  "WordConvEmbedding",
                  {},
                  {Value(make_tensor<int32_t>({2, 3}, {1, 2, 0, 3, 1, 2})), counting({2, 1, 2, 2}),
                   counting({2}), counting({4, 2})}},
                 0);
}

TEST(ChangedInput, LengthsOfAttention) {
  expect_unmoved({"",
                  "Attention",
                  {{"is_causal", 1}},
                  {counting({2, 1, 2, 4}), counting({2, 1, 5, 4}), counting({2, 1, 5, 4}), Value(),
                   Value(), Value(), Value(make_tensor<int64_t>({2}, {3, 4}))}},
                 6);
}

}  // namespace
}  // namespace folio
