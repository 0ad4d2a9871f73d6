// What tests of channels_last share: a convolution, and what a test puts behind it.
//
// Flow:    types_last(writer, images) expects the same results without and with passes, and gives
// the
//          node types; types_after(rest, y) does so of a convolution and nodes that read its result
//          c and make y.
// Owns:    the model it gives.
#pragma once

#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {

using Rest = std::function<void(model_writer::GraphWriter&)>;

// x [1, 3, 6, 6] -> Conv -> c [1, 4, 6, 6], and what a test puts behind it; y is the output. The
// first convolution reads its few channels as they lie.
inline model_writer::ModelWriter conv_and(const Rest& rest,
                                          const std::vector<model_writer::Dim>& y) {
  model_writer::ModelWriter writer = plain_model(8, 18);
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 3, 6, 6}));
  graph.initializer(f32_tensor("w", {4, 3, 3, 3}, wave(108)));
  graph.initializer(f32_tensor("w2", {4, 4, 1, 1}, wave(16)));
  graph.node("Conv", {"x", "w"}, {"c"}).attr_ints("pads", {1, 1, 1, 1});
  rest(graph);
  graph.output("y", f32_type(y));
  return writer;
}

// The node types after the passes, channels last included; the results for images x of these
// shapes must stay.
inline std::string types_last(const model_writer::ModelWriter& writer,
                              const std::vector<Shape>& images) {
  for (const Shape& image : images) {
    SCOPED_TRACE(image.to_string());
    fused(writer, {{"x", make_tensor<float>(image, wave(image.count(), 0.1F))}});
  }
  const auto model = optimized(writer, Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

// The same of c and what stands behind it.
inline std::string types_after(const Rest& rest,
                               const std::vector<model_writer::Dim>& y = {1, 4, 6, 6}) {
  return types_last(conv_and(rest, y), {{1, 3, 6, 6}});
}

}  // namespace folio
