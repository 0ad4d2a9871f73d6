// ConvTranspose with channels last beside the form with channels first, in double: numbers are
// small integers, so sums are exact in any order.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

struct Case {
  std::vector<int64_t> x;  // [N, C, spatial...]
  int64_t filters;
  std::vector<int64_t> kernel, strides, dilations, pads, output_padding;
  const char* activation = "";
};

template <typename T>
std::vector<T> numbers(int64_t count, int64_t step, int64_t most) {
  std::vector<T> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<T>(i * step % (2 * most + 1) - most));
  }
  return out;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

// [N, outer, inner] as [N, inner, outer].
template <typename T>
std::vector<T> turned(const std::vector<T>& from, int64_t n, int64_t outer, int64_t inner) {
  std::vector<T> to(from.size());
  for (int64_t b = 0; b < n; ++b) {
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < inner; ++j) {
        to[static_cast<size_t>((b * inner + j) * outer + i)] =
            from[static_cast<size_t>((b * outer + i) * inner + j)];
      }
    }
  }
  return to;
}

void set_attributes(const Case& c, OpTester* t) {
  t->attr_ints("strides", c.strides).attr_ints("dilations", c.dilations);
  t->attr_ints("pads", c.pads).attr_ints("output_padding", c.output_padding);
}

std::vector<int64_t> weights_of(const Case& c) {
  std::vector<int64_t> w{c.x[1], c.filters};
  w.insert(w.end(), c.kernel.begin(), c.kernel.end());
  return w;
}

void check(const Case& c, int threads) {
  const std::vector<int64_t> w = weights_of(c);
  OpTester first("ConvTranspose", 11);
  set_attributes(c, &first);
  first.input<double>(Shape(c.x), numbers<double>(product(c.x), 37, 9));
  first.input<double>(Shape(w), numbers<double>(product(w), 5, 3));
  first.input<double>({c.filters}, numbers<double>(c.filters, 3, 4)).outputs(1).run();
  const std::vector<double> expected = first.output_values<double>(0);

  const int64_t n = c.x[0];
  const int64_t pixels = product(c.x) / std::max<int64_t>(n * c.x[1], 1);
  std::vector<int64_t> image{n};
  image.insert(image.end(), c.x.begin() + 2, c.x.end());
  image.push_back(c.x[1]);
  OpTester last("ConvTranspose", 1, "folio.nhwc");
  set_attributes(c, &last);
  if (*c.activation) last.attr("activation", c.activation);
  last.input<float>(Shape(image), turned(numbers<float>(product(c.x), 37, 9), n, c.x[1], pixels));
  last.input<float>(Shape(w), numbers<float>(product(w), 5, 3));
  last.input<float>({c.filters}, numbers<float>(c.filters, 3, 4));
  last.threads(threads).outputs(1).run();
  const std::vector<float> got = last.output_values<float>(0);
  ASSERT_EQ(got.size(), expected.size());
  const int64_t out = static_cast<int64_t>(got.size()) / (n * c.filters);
  const std::vector<float> y = turned(got, n, out, c.filters);
  for (size_t i = 0; i < y.size(); ++i) {
    double value = expected[i];
    if (std::string_view(c.activation) == "Relu") value = std::max(value, 0.0);
    if (std::string_view(c.activation) == "HardSigmoid") {
      value = std::clamp(static_cast<double>(0.2F) * value + 0.5, 0.0, 1.0);
      ASSERT_NEAR(static_cast<double>(y[i]), value, 1e-6) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(y[i]), value) << i;
  }
}

TEST(NhwcConvTranspose, AgreesWithChannelsFirst) {
  const Case cases[] = {
      {{1, 3, 5, 6}, 8, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {0, 0}},
      {{2, 4, 7, 9}, 19, {3, 2}, {3, 2}, {2, 1}, {1, 0, 0, 1}, {0, 0}, "Relu"},
      {{1, 5, 9, 11}, 40, {4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}, "HardSigmoid"},
      {{1, 2, 6, 5}, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 1}, "Relu"},
      {{1, 2, 6, 5}, 33, {3, 3}, {1, 1}, {1, 1}, {0, 2, 2, 1}, {0, 0}},
      {{2, 3, 50}, 24, {16}, {8}, {1}, {4, 4}, {0}},
      {{1, 2, 700}, 300, {5}, {3}, {1}, {2, 0}, {2}},
      // Strides beyond the kernel: pixels that nothing reaches hold the bias.
      {{1, 2, 3, 4}, 9, {1, 2}, {3, 4}, {1, 1}, {0, 0, 0, 0}, {2, 3}, "Relu"},
      // Pads that leave the middle alone.
      {{1, 2, 3, 3}, 8, {5, 5}, {2, 2}, {1, 1}, {4, 3, 2, 4}, {0, 0}},
      // Lines in more than one part, and more than one product of lines.
      {{1, 1, 40, 300}, 17, {4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}},
      {{1, 1, 1, 1}, 70, {4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {0, 0}},
  };
  for (const Case& c : cases) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "case " << &c - cases << ", " << threads << " threads");
      check(c, threads);
    }
  }
}

TEST(NhwcConvTranspose, ImagesWithoutPixelsOrChannelsGiveTheBias) {
  OpTester channels("ConvTranspose", 1, "folio.nhwc");
  channels.input<float>({1, 2, 1, 0}, {});
  channels.input<float>({0, 2, 1, 2}, {});
  channels.input<float>({2}, {3, 4});
  channels.expect<float>(0, {1, 2, 2, 2}, {3, 4, 3, 4, 3, 4, 3, 4}).run();
  OpTester pixels("ConvTranspose", 1, "folio.nhwc");
  pixels.attr_ints("output_padding", {0, 1}).attr_ints("strides", {1, 2});
  pixels.input<float>({1, 1, 0, 3}, {});
  pixels.input<float>({3, 2, 2, 3}, std::vector<float>(36, 1));
  pixels.input<float>({2}, {3, 4});
  pixels.outputs(1).run();
}

TEST(NhwcConvTranspose, RefusesWhatDoesNotFit) {
  OpTester groups("ConvTranspose", 1, "folio.nhwc");
  groups.attr("group", 2);
  groups.input<float>({1, 2, 2, 2}, std::vector<float>(8, 1));
  groups.input<float>({2, 1, 1, 1}, {1, 2});
  groups.outputs(1).fails("in 2 groups");
  OpTester channels("ConvTranspose", 1, "folio.nhwc");
  channels.input<float>({1, 2, 2, 2}, std::vector<float>(8, 1));
  channels.input<float>({3, 1, 1, 1}, {1, 2, 3});
  channels.outputs(1).fails("do not agree on channels");
}

}  // namespace
}  // namespace folio
