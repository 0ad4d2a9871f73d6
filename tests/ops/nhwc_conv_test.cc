// Conv of domain folio.nhwc against ONNX's Conv between transposes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// Of x: the folio form reads [N, spatial..., C], or, with planes, what Conv reads.
enum class Order { kLast, kPlanes };

struct ConvCase {
  std::vector<int64_t> x;       // [N, C, spatial...]
  std::vector<int64_t> kernel;  // spatial
  int64_t out_channels = 1;
  int64_t group = 1;
  std::vector<int64_t> pads, strides, dilations;
};

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

std::vector<float> wave(int64_t count, float step) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(std::sin(step * static_cast<float>(i)));
  return out;
}

Shape shape_of(const std::vector<int64_t>& dims) {
  Shape shape;
  for (const int64_t dim : dims) shape.push_back(dim);
  return shape;
}

// [N, C, pixels...] as [N, pixels..., C].
std::vector<float> turned(const std::vector<float>& first, const Shape& shape) {
  const int64_t batch = shape[0];
  const int64_t channels = shape[1];
  const int64_t pixels = static_cast<int64_t>(first.size()) / (batch * channels);
  std::vector<float> last(first.size());
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        last[static_cast<size_t>((n * pixels + p) * channels + c)] =
            first[static_cast<size_t>((n * channels + c) * pixels + p)];
      }
    }
  }
  return last;
}

Shape turned(const Shape& first) {
  Shape last = first;
  last.erase(1);
  last.push_back(first[1]);
  return last;
}

void set_image(const ConvCase& c, Order order, OpTester* t) {
  const std::vector<float> x = wave(count_of(c.x), 0.37F);
  if (order == Order::kPlanes) {
    t->attr("planes", 1).input<float>(shape_of(c.x), x);
  } else {
    t->input<float>(turned(shape_of(c.x)), turned(x, shape_of(c.x)));
  }
}

void set_attributes(const ConvCase& c, OpTester* t) {
  t->attr("group", c.group);
  if (!c.pads.empty()) t->attr_ints("pads", c.pads);
  if (!c.strides.empty()) t->attr_ints("strides", c.strides);
  if (!c.dilations.empty()) t->attr_ints("dilations", c.dilations);
}

// Runs both and compares: with bias; with z and `activation` when that is not null.
void expect_same(const ConvCase& c, const char* activation, Order order = Order::kLast) {
  const std::vector<float> x = wave(count_of(c.x), 0.37F);
  std::vector<int64_t> w_dims{c.out_channels, c.x[1] / c.group};
  w_dims.insert(w_dims.end(), c.kernel.begin(), c.kernel.end());
  const std::vector<float> w = wave(count_of(w_dims), 0.73F);
  const std::vector<float> bias = wave(c.out_channels, 0.19F);

  OpTester plain("Conv", 11);
  set_attributes(c, &plain);
  plain.input<float>(shape_of(c.x), x).input<float>(shape_of(w_dims), w);
  plain.input<float>({c.out_channels}, bias).outputs(1).run();
  const Shape out = plain.output(0).tensor().shape();
  std::vector<float> expected = plain.output_values<float>(0);
  const std::vector<float> z = wave(static_cast<int64_t>(expected.size()), 0.41F);
  if (activation) {
    OpTester fused("FusedConv", 1, "com.microsoft");
    set_attributes(c, &fused);
    fused.attr("activation", activation);
    fused.input<float>(shape_of(c.x), x).input<float>(shape_of(w_dims), w);
    fused.input<float>({c.out_channels}, bias).input<float>(out, z).outputs(1).run();
    expected = fused.output_values<float>(0);
  }

  OpTester t("Conv", 1, "folio.nhwc");
  set_attributes(c, &t);
  if (activation) t.attr("activation", activation);
  set_image(c, order, &t);
  t.input<float>(shape_of(w_dims), w).input<float>({c.out_channels}, bias);
  if (activation) t.input<float>(turned(out), turned(z, out));
  t.expect<float>(0, turned(out), turned(expected, out),
                  2e-6 * static_cast<double>(count_of(w_dims)));
  t.run();
}

const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      {{1, 3, 9, 11}, {3, 3}, 8, 1, {1, 1, 1, 1}, {}, {}},         // a window's row is one piece
      {{2, 3, 17, 16}, {7, 7}, 20, 1, {3, 3, 3, 3}, {2, 2}, {}},   // the same, strides, two images
      {{1, 2, 3, 2}, {5, 5}, 3, 1, {4, 4, 4, 4}, {}, {}},          // windows beside the image
      {{1, 33, 8, 9}, {3, 3}, 17, 1, {1, 1, 1, 1}, {}, {}},        // piece by tap
      {{1, 5, 10, 10}, {3, 3}, 4, 1, {2, 2, 2, 2}, {}, {2, 2}},    // dilated
      {{2, 40, 13, 14}, {1, 1}, 33, 1, {}, {}, {}},                // x is A
      {{1, 40, 9, 9}, {1, 1}, 16, 1, {}, {2, 2}, {}},              // 1x1 with strides
      {{1, 40, 9, 9}, {1, 1}, 16, 1, {0, 1, 2, 0}, {}, {}},        // 1x1 with a border
      {{1, 6, 8, 8}, {3, 3}, 40, 2, {1, 1, 1, 1}, {}, {}},         // groups
      {{1, 32, 6, 6}, {1, 1}, 24, 2, {}, {}, {}},                  // groups of a 1x1
      {{1, 19, 9, 10}, {3, 3}, 19, 19, {1, 1, 1, 1}, {}, {}},      // depthwise
      {{2, 16, 9, 10}, {5, 5}, 16, 16, {2, 2, 2, 2}, {2, 2}, {}},  //
      {{1, 7, 5, 9}, {2, 3}, 7, 7, {0, 3, 1, 0}, {1, 2}, {1, 3}},  //
      {{2, 12, 9, 21}, {3, 3}, 12, 6, {1, 1, 1, 1}, {}, {}},       // square groups of 2
      {{1, 20, 7, 12}, {3, 3}, 20, 5, {1, 1, 1, 1}, {}, {}},       // 4: threes of columns
      {{1, 20, 9, 9}, {3, 3}, 20, 5, {1, 0, 1, 1}, {2, 2}, {}},    // with strides
      {{1, 24, 11, 14}, {3, 3}, 24, 3, {2, 2, 2, 2}, {}, {2, 1}},  // 8: dilated
      {{2, 24, 5, 30}, {2, 2}, 24, 3, {0, 0, 1, 1}, {}, {}},       // no threes
      {{1, 48, 6, 7}, {3, 3}, 48, 3, {1, 1, 1, 1}, {}, {}},        // 16
      {{1, 32, 9, 5}, {1, 1}, 32, 4, {}, {}, {}},                  // of a 1x1
      {{1, 8, 40}, {9}, 8, 2, {4, 4}, {}, {}},                     // of one spatial dim
      {{1, 9, 3000}, {31}, 9, 9, {15, 15}, {}, {}},                // depthwise: columns in parts
      {{2, 20, 1700}, {4}, 20, 20, {0, 600}, {2}, {3}},            // parts beside the image
      {{2, 24, 1500}, {5}, 24, 3, {2, 2}, {}, {}},                 // square groups in parts
      {{1, 16, 3, 4, 11}, {3, 1, 3}, 16, 2, {1, 0, 1, 1, 0, 1}, {}, {}},  // of three
      {{1, 4, 30}, {5}, 6, 1, {2, 2}, {3}, {}},                           // one spatial dim
      {{2, 9, 1500}, {4}, 6, 1, {2, 600}, {1}, {}},                       // parts of lines
      {{1, 3, 4, 5, 6}, {2, 3, 2}, 9, 1, {1, 0, 1, 0, 1, 0}, {}, {}},     // three
      {{1, 8, 3, 3}, {3, 3}, 300, 1, {}, {}, {}},                   // one pixel, split channels
      {{1, 8, 6, 60}, {3, 39}, 8, 1, {1, 19, 1, 19}, {}, {}},       // few filters
      {{2, 33, 9, 11}, {3, 3}, 1, 1, {1, 1, 1, 1}, {}, {}},         // one
      {{2, 20, 9, 30}, {5, 5}, 3, 1, {2, 2, 2, 2}, {1, 3}, {}},     // and strides
      {{1, 40, 9, 9}, {3, 3}, 2, 1, {2, 2, 2, 2}, {}, {2, 2}},      // dilated: piece by tap
      {{2, 70, 5, 7}, {1, 1}, 4, 1, {}, {}, {}},                    // x is A
      {{1, 1, 700}, {256}, 1, 1, {3, 0}, {2}, {}},                  // one channel
      {{1, 24, 30, 3}, {3, 5}, 3, 1, {1, 4, 1, 4}, {}, {}},         // all windows see a border
      {{1, 12, 2, 1200}, {2, 9}, 2, 1, {1, 30, 0, 9}, {}, {}},      // parts of lines
      {{1, 2, 3, 2}, {1, 1}, 4, 1, {3, 0, 0, 0}, {}, {2, 2}},       // windows above the image
      {{1, 32, 5, 2}, {2, 1}, 8, 1, {5, 0, 5, 0}, {3, 2}, {2, 3}},  // on both sides of it
      {{2, 3, 4}, {2}, 5, 1, {9, 9}, {}, {3}},                      // of one spatial dim
      {{1, 3, 2, 2, 3}, {1, 2, 2}, 6, 1, {3, 5, 1, 3, 5, 1}, {}, {2, 2, 1}},  // of three
      {{1, 8, 3, 4}, {1, 2}, 8, 8, {4, 5, 4, 5}, {}, {3, 2}},                 // depthwise
      {{2, 16, 700}, {7}, 16, 1, {9, 9}, {}, {3}},  // taps of a line stand apart
      {{1, 5, 61}, {3}, 20, 1, {0, 7}, {2}, {4}},   // with strides
      {{1, 16, 9}, {5}, 24, 1, {30, 11}, {}, {6}},  // a border wider than the image
      {{1, 31, 5, 40}, {1, 3}, 17, 1, {1, 2, 0, 2}, {2, 1}, {3, 2}},  // lines of an image
  };
  return all;
}

TEST(NhwcConv, IsConvBetweenTransposes) {
  for (size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    expect_same(cases()[i], nullptr);
  }
}

TEST(NhwcConv, AddsZThenAppliesTheActivation) {
  for (size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    expect_same(cases()[i], "Relu");     // the product's own
    expect_same(cases()[i], "Sigmoid");  // after it
  }
}

// The output over weights packed before (constants) or while they are used.
std::vector<float> output_of(const ConvCase& c, bool packed_before, bool scaled,
                             Order order = Order::kLast) {
  std::vector<int64_t> w_dims{c.out_channels, c.x[1] / c.group};
  w_dims.insert(w_dims.end(), c.kernel.begin(), c.kernel.end());
  const std::vector<float> w = wave(count_of(w_dims), 0.73F);
  OpTester t("Conv", 1, "folio.nhwc");
  set_attributes(c, &t);
  set_image(c, order, &t);
  if (packed_before) {
    t.constant<float>(shape_of(w_dims), w);
  } else {
    t.input<float>(shape_of(w_dims), w);
  }
  if (scaled) {
    t.input_absent().input_absent();
    t.input<float>({c.out_channels}, wave(c.out_channels, 0.51F));
  }
  t.outputs(1).run();
  return t.output_values<float>(0);
}

TEST(NhwcConv, HasTheSameBitsWhenWeightsArePackedBeforeOrOnTheWay) {
  std::vector<ConvCase> all = cases();
  all.push_back({{1, 512, 4, 5}, {3, 3}, 170, 1, {1, 1, 1, 1}, {}, {}});  // blocks of columns
  all.push_back({{1, 2048, 13, 15}, {1, 1}, 400, 1, {}, {}, {}});
  all.push_back({{1, 40, 19, 18}, {3, 3}, 100, 5, {1, 1, 1, 1}, {}, {}});  // and of groups
  all.push_back({{1, 2, 30, 21}, {19, 17}, 600, 1, {}, {}, {}});           // many taps
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const std::vector<float> before = output_of(all[i], /*packed_before=*/true, /*scaled=*/false);
    const std::vector<float> on_the_way = output_of(all[i], false, false);
    ASSERT_EQ(on_the_way.size(), before.size());
    EXPECT_EQ(std::memcmp(on_the_way.data(), before.data(), before.size() * sizeof(float)), 0);
  }
}

// Images of few channels that are read plane by plane.
const std::vector<ConvCase>& plane_cases() {
  static const std::vector<ConvCase> all = {
      {{1, 3, 9, 11}, {3, 3}, 8, 1, {1, 1, 1, 1}, {}, {}},
      {{2, 3, 19, 40}, {7, 7}, 20, 1, {3, 3, 3, 3}, {2, 2}, {}},
      {{3, 1, 6, 50}, {1, 5}, 33, 1, {0, 1, 0, 4}, {1, 3}, {}},
      {{1, 2, 3, 2}, {5, 5}, 3, 1, {4, 4, 4, 4}, {}, {}},       // windows beside the image
      {{1, 2, 4, 9}, {3, 3}, 3, 1, {0, 0, 0, 0}, {2, 5}, {}},   // columns behind the last window
      {{1, 2, 5, 12}, {3, 4}, 5, 1, {0, 9, 0, 0}, {1, 2}, {}},  // windows in the border only
      {{1, 8, 12, 13}, {3, 39}, 16, 1, {1, 19, 1, 19}, {}, {}},
      {{1, 5, 12, 10}, {3, 3}, 4, 1, {2, 1, 2, 1}, {}, {2, 1}},  // lines dilated
      {{2, 1, 300}, {64}, 40, 1, {}, {5}, {}},
      {{2, 2, 1700}, {9}, 5, 1, {4, 700}, {}, {}},  // parts of lines, the last in the border only
      {{1, 3, 4, 1100}, {3, 5}, 18, 1, {1, 2, 1, 2}, {1, 1}, {}},
      {{2, 2, 3, 5, 6}, {2, 3, 4}, 9, 1, {1, 0, 1, 0, 1, 0}, {2, 1, 1}, {}},
      {{2, 3, 37, 41}, {3, 3}, 16, 1, {1, 1, 1, 1}, {}, {}},  // several lines of an image at once
      {{2, 3, 67, 90}, {3, 3}, 48, 1, {1, 1, 1, 1}, {2, 2}, {}},
      {{2, 1, 50, 45}, {5, 6}, 24, 1, {2, 0, 1, 7}, {3, 4}, {}},
      {{1, 4, 40, 33}, {3, 3}, 20, 1, {2, 1, 2, 1}, {}, {2, 1}},
      {{2, 8, 37, 41}, {3, 3}, 1, 1, {1, 1, 1, 1}, {}, {}},  // few filters
      {{1, 3, 70, 90}, {3, 3}, 3, 1, {1, 1, 1, 1}, {2, 2}, {}},
      {{2, 4, 20, 33}, {5, 3}, 4, 1, {2, 1, 2, 1}, {1, 2}, {}},
      {{1, 2, 90, 20}, {3, 4}, 2, 1, {9, 9, 9, 9}, {1, 3}, {7, 1}},
      {{3, 1, 300}, {31}, 2, 1, {15, 15}, {}, {}},
  };
  return all;
}

TEST(NhwcConv, ReadsFewChannelsAsTheyLie) {
  for (size_t i = 0; i < plane_cases().size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const ConvCase& c = plane_cases()[i];
    for (const char* activation : {static_cast<const char*>(nullptr), "Relu", "Sigmoid"}) {
      expect_same(c, activation, Order::kPlanes);
    }
    const std::vector<float> before = output_of(c, /*packed_before=*/true, false, Order::kPlanes);
    const std::vector<float> on_the_way = output_of(c, false, false, Order::kPlanes);
    ASSERT_EQ(on_the_way.size(), before.size());
    EXPECT_EQ(std::memcmp(on_the_way.data(), before.data(), before.size() * sizeof(float)), 0);
  }
}

TEST(NhwcConv, RefusesPlanesThatAreNoLines) {
  const std::vector<ConvCase> refused = {
      {{1, 17, 9, 11}, {3, 3}, 8, 1, {}, {}, {}},    // many channels
      {{1, 4, 9, 11}, {3, 3}, 8, 2, {}, {}, {}},     // groups
      {{1, 3, 9, 11}, {3, 3}, 8, 1, {}, {}, {1, 2}}  // columns dilated
  };
  for (const ConvCase& c : refused) {
    OpTester t("Conv", 1, "folio.nhwc");
    set_attributes(c, &t);
    set_image(c, Order::kPlanes, &t);
    const Shape w{c.out_channels, c.x[1] / c.group, c.kernel[0], c.kernel[1]};
    t.input<float>(w, std::vector<float>(static_cast<size_t>(w.count()))).outputs(1);
    t.fails("planes");
  }
}

TEST(NhwcConv, ScalesTheSumsOfEachChannel) {
  for (size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const ConvCase& c = cases()[i];
    // Filters beside their channels: scaled weights.
    if (c.group > 1 && c.out_channels == c.x[1]) continue;
    const std::vector<float> plain = output_of(c, true, false);
    const std::vector<float> scale = wave(c.out_channels, 0.51F);
    for (const bool packed_before : {true, false}) {
      const std::vector<float> scaled = output_of(c, packed_before, true);
      ASSERT_EQ(scaled.size(), plain.size());
      for (size_t j = 0; j < plain.size(); ++j) {
        ASSERT_EQ(scaled[j], plain[j] * scale[j % scale.size()]) << j;
      }
    }
  }
}

TEST(NhwcConv, RefusesWhatDoesNotFit) {
  {
    OpTester t("Conv", 1, "folio.nhwc");
    t.input<float>({1, 4, 3}, std::vector<float>(12)).input<float>({2, 2, 1}, {1, 2, 3, 4});
    t.outputs(1).fails("do not agree on channels");
  }
  {
    OpTester t("Conv", 1, "folio.nhwc");
    t.attr("group", 2);
    t.input<float>({1, 4, 4}, std::vector<float>(16));
    t.input<float>({2, 2, 1}, {1, 2, 3, 4}).outputs(1).fails("in 2 groups");
  }
  {
    OpTester t("Conv", 1, "folio.nhwc");
    t.input<float>({1, 1, 1}, {1}).input<float>({1, 1, 1}, {1}).input_absent();
    t.input<float>({1, 2, 1}, {1, 2}).outputs(1).fails("differs from the output");
  }
  {
    OpTester t("Conv", 1, "folio.nhwc");
    t.input<float>({1, 1, 1}, {1}).input<float>({1, 1, 1}, {1}).input_absent().input_absent();
    t.input<float>({2}, {1, 2}).outputs(1).fails("scale [2] does not fit W [1,1,1]");
  }
}

}  // namespace
}  // namespace folio
