// What tests of channels_last and of the passes behind it share: convolutions, what a test puts
// behind one, and what a session makes of them.
//
// Flow:    types_last(writer, images) expects the same results without and with passes, and gives
// the
//          node types; types_after(rest, y) does so of a convolution and nodes that read its result
//          c and make y. formed(writer) gives the model as a session runs it,
//          floats_of_runs(writer, inputs, threads) what it makes.
// Owns:    the model it gives.
#pragma once

#include <cstring>
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {

struct ConvShape {
  int64_t channels = 32, filters = 32;
  int64_t kernel = 1;
  int64_t group = 1;
  const char* function = "Relu";  // behind it, if it has a name
  int64_t stride = 1, dilation = 1;
};

// x -> Conv with a border and a bias -> y, of numbers that depend on the length of that name.
inline void add_conv(model_writer::GraphWriter& graph, const std::string& x, const std::string& y,
                     const ConvShape& s) {
  const int64_t each = s.channels / s.group;
  graph.initializer(f32_tensor(
      y + "_w", {s.filters, each, s.kernel, s.kernel},
      small_wave(s.filters * each * s.kernel * s.kernel, 0.1F * static_cast<float>(y.size()))));
  graph.initializer(f32_tensor(y + "_b", {s.filters}, wave(s.filters)));
  const std::string function = s.function;
  const std::string made = function.empty() ? y : y + "_sum";
  const int64_t pad = s.kernel / 2 * s.dilation;
  graph.node("Conv", {x, y + "_w", y + "_b"}, {made})
      .attr_int("group", s.group)
      .attr_ints("strides", {s.stride, s.stride})
      .attr_ints("dilations", {s.dilation, s.dilation})
      .attr_ints("pads", {pad, pad, pad, pad});
  if (!function.empty()) graph.node(function, {made}, {y});
}

// After all passes, with the forms that a session chooses; an empty one where they fail.
inline std::unique_ptr<Model> formed(const model_writer::ModelWriter& writer) {
  auto model = optimized(writer, Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return std::make_unique<Model>();
  choose_forms(model.value().get(), {});
  return std::move(model).take();
}

// The outputs of a first run, and of one with packed weights; nothing where one fails.
inline std::vector<std::vector<std::vector<float>>> floats_of_runs(
    const model_writer::ModelWriter& writer, const std::vector<NamedValue>& inputs, int threads) {
  SessionOptions options;
  options.threads = threads;
  const auto session = open_session(writer, options);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  if (!session.is_ok()) return {};
  std::vector<std::vector<std::vector<float>>> runs(2);
  for (auto& outputs : runs) {
    const auto values = run_all(*session.value(), inputs);
    EXPECT_TRUE(values.is_ok()) << text_of(values.status());
    if (!values.is_ok()) return {};
    for (const Value& value : values.value()) outputs.push_back(floats_of(value));
    EXPECT_TRUE(session.value()->wait_packed(std::chrono::milliseconds(-1)));
  }
  return runs;
}

inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
}

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
