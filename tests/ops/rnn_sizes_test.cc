// RNN, GRU and LSTM of sizes that fill panels and of sizes that do not, beside their formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr int64_t kSteps = 3;

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-0.6F, 0.6F);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = uniform(engine);
  return out;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Gates in the order of the operators: RNN h; GRU z, r, h; LSTM i, o, f, c.
class Layer {
 public:
  Layer(int gates, int64_t hidden, int64_t input, int64_t batch, int64_t directions)
      : gates_(gates),
        hidden_(hidden),
        input_(input),
        batch_(batch),
        directions_(directions),
        x_(random_floats(kSteps * batch * input, 1)),
        w_(random_floats(directions * gates * hidden * input, 2)),
        r_(random_floats(directions * gates * hidden * hidden, 3)),
        b_(random_floats(directions * 2 * gates * hidden, 4)) {}

  void check(int threads) const {
    OpTester t(gates_ == 1 ? "RNN" : gates_ == 3 ? "GRU" : "LSTM", 14);
    t.attr("hidden_size", hidden_);
    if (directions_ == 2) t.attr("direction", "bidirectional");
    t.input<float>({kSteps, batch_, input_}, x_);
    t.input<float>({directions_, gates_ * hidden_, input_}, w_);
    t.input<float>({directions_, gates_ * hidden_, hidden_}, r_);
    t.input<float>({directions_, 2 * gates_ * hidden_}, b_);
    t.expect<float>(0, {kSteps, directions_, batch_, hidden_}, y(), tolerance());
    t.threads(threads).run();
  }

 private:
  // Partial sums of `hidden` terms below 0.6 stay around 1 here: each term may cost half a unit in
  // the last place of that.
  double tolerance() const { return std::max(2e-6, 0x1p-24 * static_cast<double>(hidden_)); }

  // Row `row` of a gate of W times x, or of R times h, and its bias.
  double sum(const std::vector<float>& weights, int64_t part, int64_t dir, int64_t row, int64_t n,
             const double* from) const {
    double out = b_[static_cast<size_t>((dir * 2 + part) * gates_ * hidden_ + row)];
    for (int64_t i = 0; i < n; ++i) {
      out += weights[static_cast<size_t>((dir * gates_ * hidden_ + row) * n + i)] * from[i];
    }
    return out;
  }

  std::vector<float> y() const {
    std::vector<float> out(static_cast<size_t>(kSteps * directions_ * batch_ * hidden_));
    for (int64_t dir = 0; dir < directions_; ++dir) {
      for (int64_t item = 0; item < batch_; ++item) {
        std::vector<double> h(static_cast<size_t>(hidden_));
        std::vector<double> c(h);
        for (int64_t at = 0; at < kSteps; ++at) {
          const int64_t time = dir == 1 ? kSteps - 1 - at : at;
          const auto first = x_.begin() + (time * batch_ + item) * input_;
          step(dir, {first, first + input_}, &h, &c);
          std::copy(h.begin(), h.end(),
                    out.begin() + ((time * directions_ + dir) * batch_ + item) * hidden_);
        }
      }
    }
    return out;
  }

  void step(int64_t dir, const std::vector<double>& x, std::vector<double>* h,
            std::vector<double>* c) const {
    const auto gate = [&](int g, size_t j, const std::vector<double>& state) {
      const int64_t row = g * hidden_ + static_cast<int64_t>(j);
      return sum(w_, 0, dir, row, input_, x.data()) + sum(r_, 1, dir, row, hidden_, state.data());
    };
    std::vector<double> next(*h);
    std::vector<double> reset(*h);
    for (size_t j = 0; gates_ == 3 && j < h->size(); ++j) reset[j] *= sigmoid(gate(1, j, *h));
    for (size_t j = 0; j < h->size(); ++j) {
      if (gates_ == 1) next[j] = std::tanh(gate(0, j, *h));
      if (gates_ == 3) {
        const double z = sigmoid(gate(0, j, *h));
        next[j] = (1 - z) * std::tanh(gate(2, j, reset)) + z * (*h)[j];
      }
      if (gates_ == 4) {
        (*c)[j] =
            sigmoid(gate(2, j, *h)) * (*c)[j] + sigmoid(gate(0, j, *h)) * std::tanh(gate(3, j, *h));
        next[j] = sigmoid(gate(1, j, *h)) * std::tanh((*c)[j]);
      }
    }
    *h = next;
  }

  int gates_;
  int64_t hidden_, input_, batch_, directions_;
  std::vector<float> x_, w_, r_, b_;
};

TEST(RecurrentLayers, FollowTheirFormulasWhateverFillsAPanel) {
  for (const int gates : {1, 3, 4}) {
    for (const int64_t hidden : {1, 5, 16, 20, 50}) {
      for (const int64_t batch : {1, 3, 6}) {
        for (const int64_t directions : {1, 2}) {
          SCOPED_TRACE(testing::Message() << gates << " gates of " << hidden << ", batch " << batch
                                          << ", " << directions << " directions");
          for (const int threads : {1, 4}) {
            Layer(gates, hidden, 7, batch, directions).check(threads);
          }
        }
      }
    }
  }
}

// More weights than L2 holds: every other step multiplies them from the last to the first.
TEST(RecurrentLayers, FollowTheirFormulasWhereStepsTurn) {
  Layer(1, 528, 7, 2, 1).check(1);
  Layer(4, 272, 7, 2, 2).check(1);
  Layer(4, 272, 7, 2, 2).check(2);
}

}  // namespace
}  // namespace folio
