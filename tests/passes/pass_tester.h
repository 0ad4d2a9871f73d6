// What tests of fusing passes share: the model after the passes, whose results must stay.
//
// Flow:    fused(writer, inputs) runs the model without and with passes, expects the same results
//          within float rounding, and gives the graph after the passes.
// Owns:    the model it gives.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/model_tester.h"

namespace folio {

inline constexpr float kNearly = 2e-5F;

// -1 to 1, different everywhere.
inline std::vector<float> wave(int64_t count, float phase = 0.3F) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(std::sin(phase + 0.7F * static_cast<float>(i)));
  }
  return out;
}

inline void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], kNearly * (1.0F + std::abs(expected[i]))) << "element " << i;
  }
}

inline std::unique_ptr<Model> fused(const model_writer::ModelWriter& writer,
                                    const std::vector<NamedValue>& inputs) {
  SessionOptions off;
  off.optimize = Optimize::kOff;
  const auto plain = run_once(writer, inputs, off);
  const auto result = run_once(writer, inputs);
  EXPECT_TRUE(plain.is_ok()) << text_of(plain.status());
  EXPECT_TRUE(result.is_ok()) << text_of(result.status());
  if (plain.is_ok() && result.is_ok()) {
    for (size_t i = 0; i < plain.value().size(); ++i) {
      const Value& a = plain.value()[i];
      const Value& b = result.value()[i];
      EXPECT_EQ(b.tensor().shape(), a.tensor().shape());
      if (a.tensor().dtype() == DType::kFloat) expect_near(floats_of(b), floats_of(a));
    }
  }
  auto model = optimized(writer);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? std::move(model).take() : std::make_unique<Model>();
}

// The last output at a level, whose bits a test compares.
inline std::vector<float> floats_at(const model_writer::ModelWriter& writer,
                                    const std::vector<NamedValue>& inputs, Optimize level) {
  SessionOptions options;
  options.optimize = level;
  const auto outputs = run_once(writer, inputs, options);
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  return outputs.is_ok() ? floats_of(outputs.value().back()) : std::vector<float>();
}

// At every level.
inline void expect_refused(const model_writer::ModelWriter& writer,
                           const std::vector<NamedValue>& inputs) {
  for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
    SessionOptions options;
    options.optimize = level;
    EXPECT_FALSE(run_once(writer, inputs, options).is_ok()) << static_cast<int>(level);
  }
}

// "Conv Relu": the node types in order, with their domains.
inline std::string types_of(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes) {
    if (!out.empty()) out += ' ';
    if (!node.domain.empty()) out += node.domain + '.';
    out += node.op_type;
  }
  return out;
}

}  // namespace folio
