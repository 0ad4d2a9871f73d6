// A model of one QDQ convolution 3 x 3 behind another one, whose sums take every code.
#pragma once

#include <string>

#include "tests/support/model_tester.h"

namespace folio {

struct ByteConvModel {
  int64_t channels = 64, filters = 64, side = 40;
  int64_t stride = 1;
  int w_zero = 0;
  bool is_unsigned = false;  // the weights
  bool is_known = true;      // the image's size
  int64_t count = 1;         // one behind the other

  model_writer::ModelWriter writer() const {
    model_writer::ModelWriter writer = plain_model();
    auto& graph = writer.graph();
    const auto dim = is_known ? model_writer::Dim(side) : model_writer::Dim("side");
    const auto type =
        is_unsigned ? model_writer::ElementType::kUint8 : model_writer::ElementType::kInt8;
    graph.input("x", f32_type({1, channels, dim, dim}));
    graph.initializer(f32_tensor("s", {}, {0.02F}));
    graph.initializer(f32_tensor("ws", {}, {0.0006F}));
    graph.initializer(
        model_writer::TensorWriter("z", model_writer::ElementType::kUint8, {}).raw("\x70"));
    const int zero = w_zero + (is_unsigned ? 128 : 0);
    graph.initializer(
        model_writer::TensorWriter("wz", type, {}).raw(std::string(1, static_cast<char>(zero))));
    graph.node("QuantizeLinear", {"x", "s", "z"}, {"q0"});
    for (int64_t i = 0; i < count; ++i) {
      const std::string at = std::to_string(i);
      const int64_t each = i == 0 ? channels : filters;
      std::string codes;
      uint32_t state = 7 + static_cast<uint32_t>(i);
      for (int64_t k = 0; k < filters * each * 9; ++k) {
        state = state * 1664525U + 1013904223U;
        codes += static_cast<char>(state >> 24);
      }
      graph.initializer(
          model_writer::TensorWriter("w" + at, type, {filters, each, 3, 3}).raw(codes));
      graph
          .node("QLinearConv", {"q" + at, "s", "z", "w" + at, "ws", "wz", "s", "z"},
                {"q" + std::to_string(i + 1)})
          .attr_ints("strides", {stride, stride})
          .attr_ints("pads", {1, 1, 1, 1});
    }
    graph.node("DequantizeLinear", {"q" + std::to_string(count), "s", "z"}, {"y"});
    graph.output("y", f32_type({1, filters, model_writer::Dim("h"), model_writer::Dim("w")}));
    return writer;
  }
};

}  // namespace folio
