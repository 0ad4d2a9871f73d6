// LRN with channels last, beside LRN with channels first.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr int64_t kPlaces = 17;  // enough of them for rows of a slot with channels first

struct Case {
  int64_t batch, lines, channels, size;
  float beta;
};

void set_attributes(const Case& c, OpTester* t) {
  t->attr("size", c.size).attr("alpha", 0.7F).attr("beta", c.beta).attr("bias", 1.5F);
}

// As [N, places, C].
std::vector<float> turned(const Case& c, const float* x) {
  const int64_t places = c.lines * kPlaces;
  std::vector<float> y(static_cast<size_t>(c.batch * places * c.channels));
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const int64_t channel = i % c.channels;
    const int64_t place = i / c.channels % places;
    y[static_cast<size_t>(i)] =
        x[(i / c.channels / places * c.channels + channel) * places + place];
  }
  return y;
}

// The same bits.
void check(const Case& c, int threads) {
  const int64_t count = c.batch * c.channels * c.lines * kPlaces;
  std::vector<float> x;
  for (int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<float>(3 * std::sin(0.37 * static_cast<double>(i))));
  }
  OpTester first("LRN", 13);
  set_attributes(c, &first);
  first.input<float>({c.batch, c.channels, c.lines, kPlaces}, x).outputs(1);
  first.run();
  OpTester last("LRN", 1, "folio.nhwc");
  set_attributes(c, &last);
  const Shape shape{c.batch, c.lines, kPlaces, c.channels};
  last.input<float>(shape, turned(c, x.data())).threads(threads);
  last.expect<float>(0, shape, turned(c, first.output(0).tensor().data<float>()), 0);
  last.run();
}

TEST(NhwcLrn, IsLrnOfTheOtherForm) {
  for (const int64_t channels : {1, 3, 5, 64, 3000}) {
    for (const int64_t size : {1, 2, 5, 7}) {
      for (const float beta : {0.75F, 0.5F}) {
        for (const int threads : {1, 3}) {
          SCOPED_TRACE(testing::Message() << channels << " channels, size " << size << ", beta "
                                          << beta << ", " << threads << " threads");
          check({2, channels > 100 ? 1 : 9, channels, size, beta}, threads);
        }
      }
    }
  }
}

// Channels that see all others, and sums that no float holds: nothing reaches the next pixel.
TEST(NhwcLrn, PixelsDoNotSeeEachOther) {
  OpTester t("LRN", 1, "folio.nhwc");
  t.attr("size", 9).attr("alpha", 9.0F).attr("beta", 1.0F).attr("bias", 1.0F);
  t.input<float>({1, 1, 3, 2}, {1, 2, 1e30F, 1, 3, 0});
  t.expect<float>(0, {1, 1, 3, 2}, {1.0F / 6, 2.0F / 6, 0, 0, 3.0F / 10, 0}, 1e-6);
  t.run();
}

TEST(NhwcLrn, TakesNoPixels) {
  OpTester t("LRN", 1, "folio.nhwc");
  t.attr("size", 3);
  t.input<float>({0, 2, 2, 4}, std::vector<float>());
  t.expect<float>(0, {0, 2, 2, 4}, {});
  t.run();
}

TEST(NhwcLrn, RefusesWhatIsNoImage) {
  OpTester flat("LRN", 1, "folio.nhwc");
  flat.attr("size", 3);
  flat.input<float>({2, 3}, std::vector<float>(6, 1));
  flat.outputs(1).fails("is too flat");
  OpTester size("LRN", 1, "folio.nhwc");
  size.attr("size", 0);
  size.input<float>({1, 1, 1, 3}, {1, 2, 3});
  size.outputs(1).fails("attribute 'size' is 0");
}

}  // namespace
}  // namespace folio
