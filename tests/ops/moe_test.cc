#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr int64_t kExperts = 4;
constexpr int64_t kHidden = 32;
constexpr int64_t kInter = 16;

struct MoeCase {
  int64_t tokens = 3;
  int bits = 0;  // 0: floats
  int block = 0;
  bool zeros = false;
  bool has_fc3 = false;
  const char* function = "relu";
  int fusion = 0;
  bool router_weights = false;
  bool normalize = false;

  bool doubled() const { return fusion != 0; }
};

std::vector<float> wave(int64_t count, float phase, float scale = 1.0f) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(scale * std::sin(phase + 0.37f * static_cast<float>(i)));
  }
  return out;
}

std::vector<uint8_t> bytes(int64_t count, uint32_t seed) {
  std::vector<uint8_t> out;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.push_back(static_cast<uint8_t>(seed >> 24));
  }
  return out;
}

int code_at(const std::vector<uint8_t>& packed, int64_t byte, int64_t at, int bits) {
  return packed[static_cast<size_t>(byte + at * bits / 8)] >> at * bits % 8 & ((1 << bits) - 1);
}

// fc1, fc2 or fc3 as a node has it and as plain numbers [experts, n, k].
struct Matrix {
  Matrix(const MoeCase& s, int64_t rows, int64_t depth, uint32_t seed) : n(rows), k(depth) {
    bias = wave(kExperts * n, static_cast<float>(seed), 0.3f);
    if (s.bits == 0) {
      numbers = wave(kExperts * n * k, static_cast<float>(seed), 0.2f);
      return;
    }
    const int64_t blocks = s.block == 0 ? 1 : k / s.block;
    const int64_t pack = 8 / s.bits;
    codes = bytes(kExperts * n * k / pack, seed);
    for (const float value : wave(kExperts * n * blocks, static_cast<float>(seed), 0.01f)) {
      scales.push_back(0.02f + value);
    }
    scale_shape = s.block == 0 ? Shape{kExperts, n} : Shape{kExperts, n, blocks};
    const int64_t row = s.block == 0 ? (n + pack - 1) / pack : (blocks + pack - 1) / pack;
    zero_shape = s.block == 0 ? Shape{kExperts, row} : Shape{kExperts, n, row};
    zeros = bytes(zero_shape.count(), seed + 1);
    for (int64_t e = 0; e < kExperts; ++e) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = e * n + j;
        for (int64_t p = 0; p < k; ++p) {
          const int64_t block = s.block == 0 ? 0 : p / s.block;
          int zero = 1 << (s.bits - 1);
          if (s.zeros && s.block == 0) zero = code_at(zeros, e * row, j, s.bits);
          if (s.zeros && s.block != 0) zero = code_at(zeros, at * row, block, s.bits);
          const int code = code_at(codes, at * k / pack, p, s.bits);
          numbers.push_back(static_cast<float>(code - zero) *
                            scales[static_cast<size_t>(at * blocks + block)]);
        }
      }
    }
  }

  std::vector<double> multiply(int64_t expert, const std::vector<double>& x) const {
    std::vector<double> out;
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias[static_cast<size_t>(expert * n + j)];
      for (int64_t p = 0; p < k; ++p) {
        sum += x[static_cast<size_t>(p)] * numbers[static_cast<size_t>((expert * n + j) * k + p)];
      }
      out.push_back(sum);
    }
    return out;
  }

  int64_t n, k;
  std::vector<float> numbers, bias, scales;
  std::vector<uint8_t> codes, zeros;
  Shape scale_shape, zero_shape;
};

struct Model {
  explicit Model(const MoeCase& s)
      : setup(s),
        fc1(s, s.doubled() ? 2 * kInter : kInter, kHidden, 1),
        fc2(s, kHidden, kInter, 2),
        fc3(s, kInter, kHidden, 3),
        x(wave(s.tokens * kHidden, 0.5f)),
        router(wave(s.tokens * kExperts, 1.5f, 2.0f)),
        weights(wave(s.tokens * kExperts, 2.5f)) {
    for (float& weight : weights) weight = std::abs(weight) + 0.1f;
  }

  double function(double value) const {
    const std::string name = setup.function;
    if (name == "relu") return std::max(value, 0.0);
    if (name == "silu") return value / (1 + std::exp(-value));
    if (name == "identity") return value;
    return 0.5 * value * (1 + std::tanh(0.7978845608 * (value + 0.044715 * value * value * value)));
  }
  static double gate(double g, double l) {
    g = std::min(g, 1.5);
    return g / (1 + std::exp(-1.7 * g)) * (std::clamp(l, -1.5, 1.5) + 0.5);
  }

  std::vector<double> expert(int64_t e, const std::vector<double>& row) const {
    const std::vector<double> first = fc1.multiply(e, row);
    const std::vector<double> third = fc3.multiply(e, row);
    std::vector<double> middle;
    for (size_t i = 0; i < kInter; ++i) {
      if (setup.fusion == 1) {
        middle.push_back(gate(first[2 * i], first[2 * i + 1]));
      } else if (setup.fusion == 2) {
        middle.push_back(gate(first[i], first[i + kInter]));
      } else if (std::string(setup.function) == "swiglu") {
        middle.push_back(gate(first[i], third[i]));
      } else {
        middle.push_back(function(first[i]) * (setup.has_fc3 ? third[i] : 1.0));
      }
    }
    return fc2.multiply(e, middle);
  }

  std::vector<float> expected() const {
    std::vector<float> out;
    for (int64_t t = 0; t < setup.tokens; ++t) {
      std::vector<std::pair<double, int64_t>> order;
      double all = 0;
      for (int64_t e = 0; e < kExperts; ++e) {
        order.emplace_back(router[static_cast<size_t>(t * kExperts + e)], e);
        all += std::exp(order.back().first);
      }
      std::sort(order.rbegin(), order.rend());
      double share[2];
      double sum = 0;
      for (size_t j = 0; j < 2; ++j) {
        const auto at = static_cast<size_t>(t * kExperts + order[j].second);
        share[j] = setup.router_weights ? weights[at] : std::exp(order[j].first);
        sum += share[j];
      }
      if (setup.router_weights && !setup.normalize) sum = 1;
      if (setup.bits == 0 && !setup.normalize) sum = all;
      std::vector<double> y(kHidden, 0.0);
      const std::vector<double> row(x.begin() + t * kHidden, x.begin() + (t + 1) * kHidden);
      for (size_t j = 0; j < 2; ++j) {
        const std::vector<double> part = expert(order[j].second, row);
        for (size_t h = 0; h < kHidden; ++h) y[h] += share[j] / sum * part[h];
      }
      out.insert(out.end(), y.begin(), y.end());
    }
    return out;
  }

  MoeCase setup;
  Matrix fc1, fc2, fc3;
  std::vector<float> x, router, weights;
};

OpTester node_of(const Model& m) {
  const MoeCase& s = m.setup;
  OpTester t(s.bits == 0 ? "MoE" : "QMoE", 1, "com.microsoft");
  t.attr("k", 2).attr("activation_type", s.function).attr("swiglu_fusion", s.fusion);
  t.attr("activation_alpha", 1.7f).attr("activation_beta", 0.5f).attr("swiglu_limit", 1.5f);
  t.attr("normalize_routing_weights", s.normalize ? 1 : 0);
  if (s.bits != 0) t.attr("expert_weight_bits", s.bits);
  if (s.block != 0) t.attr("block_size", s.block);
  t.input<float>({s.tokens, kHidden}, m.x).input<float>({s.tokens, kExperts}, m.router);
  for (const Matrix* w : {&m.fc1, &m.fc2, &m.fc3}) {
    if (w == &m.fc3 && !s.has_fc3) {
      t.input_absent().input_absent();
      if (s.bits != 0) t.input_absent();
      continue;
    }
    if (s.bits == 0) {
      t.input<float>({kExperts, w->n, w->k}, w->numbers);
    } else {
      t.input<uint8_t>({kExperts, w->n, w->k * s.bits / 8}, w->codes);
      t.input<float>(w->scale_shape, w->scales);
    }
    t.input<float>({kExperts, w->n}, w->bias);
  }
  if (s.bits == 0) return t;
  for (const Matrix* w : {&m.fc1, &m.fc2, &m.fc3}) {
    if (s.zeros && (w != &m.fc3 || s.has_fc3)) {
      t.input<uint8_t>(w->zero_shape, w->zeros);
    } else {
      t.input_absent();
    }
  }
  if (s.router_weights) t.input<float>({s.tokens, kExperts}, m.weights);
  return t;
}

void check(const MoeCase& setup) {
  SCOPED_TRACE(testing::Message() << setup.function << " fusion " << setup.fusion << " bits "
                                  << setup.bits << " block " << setup.block);
  const Model model(setup);
  OpTester t = node_of(model);
  t.expect<float>(0, {setup.tokens, kHidden}, model.expected(), 2e-5);
  t.run();
}

TEST(QMoE, MixesTheChosenExpertsOfEveryWidth) {
  for (const int bits : {2, 4, 8}) {
    for (const int block : {0, 16}) {
      for (const bool zeros : {false, true}) {
        for (const int64_t tokens : {1, 20}) {  // dot products; widened panels
          MoeCase s;
          s.bits = bits;
          s.block = block;
          s.zeros = zeros;
          s.tokens = tokens;
          check(s);
        }
      }
    }
  }
}

TEST(QMoE, AppliesEveryFunctionAndGate) {
  MoeCase s;
  s.bits = 4;
  s.tokens = 9;
  for (const char* function : {"relu", "gelu", "silu", "identity"}) {
    s.function = function;
    s.has_fc3 = false;
    check(s);
    s.has_fc3 = true;
    check(s);
  }
  s.function = "swiglu";
  check(s);
  s.has_fc3 = false;
  for (s.fusion = 1; s.fusion < 3; ++s.fusion) check(s);
}

TEST(QMoE, TakesTheWeightsOfTheRouterWhereGiven) {
  MoeCase s;
  s.bits = 8;
  s.router_weights = true;
  check(s);
  s.normalize = true;
  check(s);
}

TEST(MoE, MixesFloatExperts) {
  for (const int64_t tokens : {1, 20}) {
    for (const bool normalize : {false, true}) {
      MoeCase s;
      s.tokens = tokens;
      s.normalize = normalize;
      s.function = "silu";
      check(s);
      s.has_fc3 = true;
      check(s);
    }
  }
}

void fails(const MoeCase& setup, const std::function<void(Model&)>& spoil,
           const std::string& text) {
  Model model(setup);
  spoil(model);
  node_of(model).outputs(1).fails(text);
}

TEST(QMoE, RefusesShapesThatDoNotFit) {
  MoeCase s;
  s.bits = 4;
  s.block = 16;
  s.zeros = true;
  fails(
      s, [](Model& m) { m.fc2.scale_shape = Shape{kExperts * kHidden}; }, "scales at input 6");
  fails(
      s, [](Model& m) { m.fc1.zero_shape = Shape{kExperts * kInter}; }, "zero points at input 11");
  const auto halve = [](Model& m) {
    m.fc1.k = kHidden / 2;
    m.fc1.codes.resize(m.fc1.codes.size() / 2);
  };
  fails(s, halve, "weights at input 2");
  fails(
      s, [](Model& m) { m.setup.block = 24; }, "'block_size' is 24");
  fails(
      s, [](Model& m) { m.setup.function = "frob"; }, "'activation_type' is 'frob'");
  fails(
      s, [](Model& m) { m.setup.function = "swiglu"; }, "needs fc3");
}

TEST(QMoE, RefusesOtherQuantizations) {
  for (const char* type : {"fp4", "fp8"}) {
    MoeCase s;
    s.bits = 4;
    OpTester t = node_of(Model(s));
    t.attr("quant_type", type).outputs(1).fails("quant_type");
  }
  MoeCase s;
  s.bits = 4;
  OpTester t = node_of(Model(s));
  t.attr("k", 5).outputs(1).fails("router_probs");
  OpTester u = node_of(Model(s));
  u.attr("expert_weight_bits", 3).outputs(1).fails("expert_weight_bits 3");
}

}  // namespace
}  // namespace folio
