// MoE and QMoE: a mixture of experts, of floats and of 2, 4 or 8 bits.
//
// Source: com.microsoft MoE and QMoE, version 1, as ONNX Runtime's CPU computes them (quant_type
//         'int'; weights as the model has them, weights_prepacked 0 or -1).
// Inputs: input [tokens, hidden] or [batch, sequence, hidden], router_probs [tokens, experts];
//         weights [experts, out, in] (packed, low bits first) of fc1, fc2 and perhaps fc3, scales
//         [experts, out] or, with block_size, [experts, out, in / block_size], zero points packed
//         alike, biases [experts, out]; router_weights [tokens, experts].
// Math:   the k largest of router_probs choose; the weights of their results are the softmax over
//         these k (MoE without normalize_routing_weights: over all), or what router_weights has
//         there (normalize_routing_weights: over their sum).
//         y = sum of weight * (fc2 f(fc1 x + b1) + b2); f with fc3: f(fc1 x + b1) * (fc3 x + b3).
//         swiglu: G sigmoid(alpha G) (L + beta), G = min(g, limit), L in [-limit, limit]; g and l
//         are outputs of fc1, interleaved (swiglu_fusion 1) or halves (2), or fc1's and fc3's (0).
// Bits:   weights are widened, activations are not rounded (accuracy_level 0); only the chosen
//         experts' weights are read.
// Types:  float; float16 and bfloat16 in float.
// Notes:  quant_type other than int, weights packed for a GPU and use_sparse_mixer are refused.
// Errors: kInvalidArgument for shapes that do not match; other quantizations, weights packed for
//         a GPU and use_sparse_mixer are not implemented.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/ops/op_block_weights.h"
#include "core/ops/op_gemm_tiles.h"
#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr float kNoWeight = 1e-8F;

enum class Function { kRelu, kGelu, kSilu, kIdentity, kSwiGlu };

struct Attrs {
  Function function = Function::kRelu;
  int64_t k = 1;
  bool normalize = false;
  int64_t fusion = 0;  // of swiglu
  float alpha = 1.0F;
  float beta = 0.0F;
  float limit = std::numeric_limits<float>::infinity();
  bool quantized = false;
  int64_t bits = 4;
  int64_t block = 0;  // 0: one scale for a row

  bool doubled() const { return function == Function::kSwiGlu && fusion != 0; }
};

// Numbers of inputs; -1: there is none.
struct Places {
  int weights, scales, bias, zeros;
};

// fc1, fc2 or fc3: [experts, n, k].
class ExpertWeights {
 public:
  int64_t n = 0;
  int64_t k = 0;

  Status bind(OpRun& run, const Attrs& attrs, const Places& at, int64_t experts, int64_t rows,
              int64_t depth, DType dtype) {
    n = rows;
    k = depth;
    bits_ = attrs.quantized ? attrs.bits : 0;
    const int64_t pack = attrs.quantized ? 8 / bits_ : 1;
    FOLIO_TRY(const Tensor* weights,
              run.tensor(at.weights, attrs.quantized ? DType::kUint8 : dtype));
    const Shape expected{experts, n, k / pack};
    if (k % pack != 0 || !(weights->shape() == expected)) {
      return invalid_argument("weights at input ", at.weights, " are ",
                              weights->shape().to_string(), ", expected ", expected.to_string());
    }
    FOLIO_TRY(bias_, optional_reals<float>(run, at.bias, experts * n));
    if (!attrs.quantized) {
      FOLIO_TRY(floats_, floats_of(run, *weights));
      return Status::ok();
    }
    codes_ = weights->raw();
    return bind_scales(run, attrs, at, experts);
  }

  bool is_quantized() const { return bits_ != 0; }
  int64_t bits() const { return bits_; }
  int64_t row_bytes() const { return k * bits_ / 8; }
  const float* bias(int64_t expert) const { return bias_ ? bias_ + expert * n : nullptr; }

  // Floats of scratch that block_columns() takes.
  int64_t column_floats(int64_t columns) const {
    return is_quantized() ? 2 * columns * blocks_ : 0;
  }

  FolioBlockWeights block_columns(int64_t expert, int64_t begin, int64_t end, float* memory) const {
    FolioBlockWeights w{};
    w.n = end - begin;
    w.k = k;
    w.block = block_;
    w.bits = static_cast<int32_t>(bits_);
    w.codes = codes_ + (expert * n + begin) * row_bytes();
    const int64_t first = expert * n + begin;
    if (in_blocks_) {
      w.scales = scales_ + first * blocks_;
    } else {
      spread(scales_ + first, w.n, memory);
      w.scales = memory;
    }
    if (!zeros_) return w;
    float* zeros = memory + w.n * blocks_;
    w.zeros = zeros;
    if (in_blocks_) {
      for (int64_t j = 0; j < w.n; ++j) {
        unpack_block_codes(zeros_ + (first + j) * zero_bytes(), bits_, blocks_,
                           zeros + j * blocks_);
      }
      return w;
    }
    const uint8_t* row = zeros_ + expert * ((n * bits_ + 7) / 8);
    for (int64_t j = 0; j < w.n; ++j) {
      const int64_t bit = (begin + j) * bits_;
      const int code = row[bit / 8] >> bit % 8 & ((1 << bits_) - 1);
      std::fill_n(zeros + j * blocks_, blocks_, static_cast<float>(code));
    }
    return w;
  }

  // Calls work(write) with what writes pieces of columns [begin, end) of the product's B
  // (op_gemm_tiles.h).
  template <typename Work>
  void with_writer(const FolioKernels& kernels, int64_t expert, int64_t begin, int64_t end,
                   float* memory, const Work& work) const {
    if (is_quantized()) {
      const FolioBlockWeights w = block_columns(expert, begin, end, memory);
      work([&](int64_t first, int64_t depth, float* panels) {
        kernels.block_widen_f32p16(&w, first, depth, panels);
      });
    } else {
      const float* floats = floats_ + (expert * n + begin) * k;
      work([&](int64_t first, int64_t depth, float* panels) {
        kernels.pack_f32p16(depth, end - begin, floats + first, 1, k, panels);
      });
    }
  }

 private:
  int64_t zero_bytes() const {
    return folio_block_zero_bytes(blocks_, static_cast<int32_t>(bits_));
  }

  Status bind_scales(OpRun& run, const Attrs& attrs, const Places& at, int64_t experts) {
    in_blocks_ = attrs.block != 0;
    // Kernels want blocks that are powers of two: a row of one scale is cut into such.
    block_ = in_blocks_ ? attrs.block : (k & -k);
    if (block_ < 16 || k % block_ != 0) {
      return not_implemented("rows of ", k, " weights in blocks of ", attrs.block,
                             ", expected a multiple of the block, or of 16");
    }
    blocks_ = k / block_;
    FOLIO_TRY(const Tensor* scales, run.tensor(at.scales));
    const Shape expected = in_blocks_ ? Shape{experts, n, blocks_} : Shape{experts, n};
    if (!(scales->shape() == expected)) {
      return invalid_argument("scales at input ", at.scales, " are ", scales->shape().to_string(),
                              ", expected ", expected.to_string());
    }
    FOLIO_TRY(scales_, floats_of(run, *scales));
    if (!run.has_input(at.zeros)) return Status::ok();
    FOLIO_TRY(const Tensor* zeros, run.tensor(at.zeros, DType::kUint8));
    const Shape packed =
        in_blocks_ ? Shape{experts, n, zero_bytes()} : Shape{experts, (n * bits_ + 7) / 8};
    if (!(zeros->shape() == packed)) {
      return invalid_argument("zero points at input ", at.zeros, " are ",
                              zeros->shape().to_string(), ", expected ", packed.to_string());
    }
    zeros_ = zeros->raw();
    return Status::ok();
  }

  void spread(const float* scales, int64_t count, float* to) const {
    for (int64_t j = 0; j < count; ++j) std::fill_n(to + j * blocks_, blocks_, scales[j]);
  }

  int64_t bits_ = 0;
  int64_t block_ = 0;
  int64_t blocks_ = 0;
  bool in_blocks_ = false;
  const uint8_t* codes_ = nullptr;
  const float* floats_ = nullptr;
  const float* scales_ = nullptr;
  const uint8_t* zeros_ = nullptr;
  const float* bias_ = nullptr;
};

// Products of one run, one after another, each spread over the threads.
class Products {
 public:
  explicit Products(OpRun& run) : run_(run) {}

  // Memory for products with these.
  Status reserve(const std::vector<const ExpertWeights*>& all) {
    int64_t floats = 0;
    int64_t planes = 0;
    for (const ExpertWeights* w : all) {
      const int64_t columns = gemm_tile_columns(run_.kernels(), w->n);
      floats = std::max(
          floats, gemm_piece_floats(run_.kernels(), columns, w->k) + w->column_floats(columns));
      if (w->is_quantized()) {
        planes = std::max(planes, FOLIO_BLOCK_FEW_ROWS * w->row_bytes() * (8 / w->bits()));
      }
    }
    FOLIO_TRY(planes_, scratch_floats(run_, planes));
    return ThreadScratch::make(run_, static_cast<size_t>(floats) * sizeof(float), &scratch_);
  }

  // y [rows, n] = a [rows, k] * W[expert]^T + bias.
  void multiply(const ExpertWeights& w, int64_t expert, int64_t rows, const float* a, float* y) {
    const int64_t columns = gemm_tile_columns(run_.kernels(), w.n);
    const bool by_dots = w.is_quantized() && rows <= FOLIO_BLOCK_FEW_ROWS;
    const int64_t row_floats = by_dots ? w.row_bytes() * (8 / w.bits()) : 0;
    for (int64_t i = 0; by_dots && i < rows; ++i) {
      split_block_planes(w.k, w.bits(), w.row_bytes(), a + i * w.k, planes_ + i * row_floats);
    }
    run_.parallel().for_range((w.n + columns - 1) / columns, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch_);
      auto* panels = reinterpret_cast<float*>(block.data());
      float* memory = panels + gemm_piece_floats(run_.kernels(), columns, w.k);
      for (int64_t at = begin; at < end; ++at) {
        const int64_t first = at * columns;
        const int64_t last = std::min(first + columns, w.n);
        const float* bias = w.bias(expert) ? w.bias(expert) + first : nullptr;
        if (by_dots) {
          FolioBlockDotsF32 args{};
          args.w = w.block_columns(expert, first, last, memory);
          args.m = rows;
          args.a = planes_;
          args.a_row_stride = row_floats;
          args.bias = bias;
          args.y = y + first;
          args.y_row_stride = w.n;
          run_.kernels().block_dots_f32(&args);
          continue;
        }
        FolioGemmF32 args{};
        args.m = rows;
        args.n = last - first;
        args.k = w.k;
        args.a = a;
        args.a_row_stride = w.k;
        args.a_col_stride = 1;
        args.c = y + first;
        args.c_row_stride = w.n;
        args.col_bias = bias;
        args.alpha = 1.0F;
        w.with_writer(run_.kernels(), expert, first, last, memory, [&](const auto& write) {
          multiply_tile(run_.kernels(), args, write, panels);
        });
      }
    });
  }

 private:
  OpRun& run_;
  ThreadScratch scratch_;
  float* planes_ = nullptr;
};

// Which experts see a token, and what their results count.
struct Route {
  int64_t token = 0;
  int64_t place = 0;  // among the token's experts: the order in which they are added
  float weight = 0;
};

float gate(const Attrs& attrs, float g, float l) {
  const float cut = std::min(g, attrs.limit);
  const float linear = std::clamp(l, -attrs.limit, attrs.limit);
  return cut / (1.0F + std::exp(-attrs.alpha * cut)) * (linear + attrs.beta);
}

float apply(Function function, float x) {
  switch (function) {
    case Function::kRelu:
      return std::max(x, 0.0F);
    case Function::kGelu:
      return 0.5F * x * (1.0F + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
    case Function::kSilu:
      return x / (1.0F + std::exp(-x));
    default:
      return x;
  }
}

class Moe final : public OpKernel {
 public:
  Attrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* input, run.tensor(0));
    const Shape& shape = input->shape();
    if (shape.rank() != 2 && shape.rank() != 3) {
      return invalid_argument("input is ", shape.to_string(), ", expected 2 or 3 dims");
    }
    const int64_t hidden = shape[shape.rank() - 1];
    const int64_t tokens = shape.product(0, shape.rank() - 1);
    FOLIO_TRY(const float* x, floats_of(run, *input));
    FOLIO_TRY(const Tensor* router, run.tensor(1, input->dtype()));
    if (router->rank() != 2 || router->dim(0) != tokens || router->dim(1) < attrs.k || hidden < 1) {
      return invalid_argument("router_probs is ", router->shape().to_string(), ", expected [",
                              tokens, ", experts], k = ", attrs.k, " of them or more");
    }
    Weights w;
    FOLIO_RETURN_IF_ERROR(bind(run, hidden, router->dim(1), input->dtype(), &w));
    uint64_t count = 0;
    const int64_t work[] = {tokens, attrs.k, std::max(hidden, w.fc1.n), 8};
    if (!checked_count(work, &count) || count > uint64_t{1} << 48) {
      return invalid_argument("input ", shape.to_string(), " with k = ", attrs.k,
                              " needs too much memory");
    }
    std::vector<std::vector<Route>> routes;
    FOLIO_RETURN_IF_ERROR(choose(run, *router, &routes));
    FOLIO_TRY(const FloatOutput y, FloatOutput::make(run, 0, input->dtype(), shape));
    if (y.count() > 0) FOLIO_RETURN_IF_ERROR(mix(run, w, routes, x, tokens, y.data()));
    y.finish(run);
    return Status::ok();
  }

 private:
  struct Weights {
    ExpertWeights fc1, fc2, fc3;
    bool has_fc3 = false;
    int64_t inter = 0;
  };

  Status bind(OpRun& run, int64_t hidden, int64_t experts, DType dtype, Weights* w) const {
    const Places fc1 = attrs.quantized ? Places{2, 3, 4, 11} : Places{2, -1, 3, -1};
    const Places fc2 = attrs.quantized ? Places{5, 6, 7, 12} : Places{4, -1, 5, -1};
    const Places fc3 = attrs.quantized ? Places{8, 9, 10, 13} : Places{6, -1, 7, -1};
    FOLIO_TRY(const Tensor* first, run.tensor(fc1.weights));
    const int64_t out = first->rank() == 3 ? first->dim(1) : 0;
    w->inter = attrs.doubled() ? out / 2 : out;
    if (out < 1 || (attrs.doubled() && out % 2 != 0)) {
      return invalid_argument("weights of fc1 are ", first->shape().to_string(),
                              ", expected [experts, out, in]");
    }
    FOLIO_RETURN_IF_ERROR(w->fc1.bind(run, attrs, fc1, experts, out, hidden, dtype));
    FOLIO_RETURN_IF_ERROR(w->fc2.bind(run, attrs, fc2, experts, hidden, w->inter, dtype));
    w->has_fc3 = run.has_input(fc3.weights);
    if (w->has_fc3 && attrs.doubled()) {
      return invalid_argument("fc3 is given though swiglu_fusion is ", attrs.fusion);
    }
    if (!w->has_fc3 && attrs.function == Function::kSwiGlu && !attrs.doubled()) {
      return invalid_argument("swiglu of two products (swiglu_fusion 0) needs fc3");
    }
    if (!w->has_fc3) return Status::ok();
    return w->fc3.bind(run, attrs, fc3, experts, w->inter, hidden, dtype);
  }

  Status choose(OpRun& run, const Tensor& router, std::vector<std::vector<Route>>* routes) const {
    const int64_t tokens = router.dim(0);
    const int64_t experts = router.dim(1);
    FOLIO_TRY(const float* logits, floats_of(run, router));
    const float* given = nullptr;
    if (attrs.quantized && run.has_input(14)) {
      FOLIO_TRY(given, floats_of_input(run, 14, tokens * experts));
    }
    routes->resize(static_cast<size_t>(experts));
    std::vector<std::pair<float, int64_t>> order(static_cast<size_t>(experts));
    std::vector<float> weights(static_cast<size_t>(attrs.k));
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t e = 0; e < experts; ++e) {
        const float logit = logits[t * experts + e];
        const float lowest = -std::numeric_limits<float>::infinity();
        order[static_cast<size_t>(e)] = {std::isnan(logit) ? lowest : logit, e};
      }
      std::partial_sort(order.begin(), order.begin() + attrs.k, order.end(), std::greater<>());
      float sum = 0;
      for (size_t j = 0; j < weights.size(); ++j) {
        weights[j] = given ? given[t * experts + order[j].second]
                           : std::exp(order[j].first - order[0].first);
        sum += weights[j];
      }
      if (!attrs.quantized && !attrs.normalize) {  // MoE's share in the softmax over all
        for (size_t j = weights.size(); j < order.size(); ++j) {
          sum += std::exp(order[j].first - order[0].first);
        }
      }
      const bool divide = !given || attrs.normalize;
      for (size_t j = 0; j < weights.size(); ++j) {
        const float weight = !divide ? weights[j] : sum == 0 ? 0 : weights[j] / sum;
        if (!(weight > kNoWeight)) continue;
        (*routes)[static_cast<size_t>(order[j].second)].push_back(
            {t, static_cast<int64_t>(j), weight});
      }
    }
    return Status::ok();
  }

  // All experts in turn; their results are added for each token in the order of its experts.
  Status mix(OpRun& run, const Weights& w, const std::vector<std::vector<Route>>& routes,
             const float* x, int64_t tokens, float* y) const {
    size_t most = 0;
    for (const auto& chosen : routes) most = std::max(most, chosen.size());
    const auto rows = static_cast<int64_t>(most);
    const int64_t hidden = w.fc1.k;
    FOLIO_TRY(float* a, scratch_floats(run, rows * hidden));
    FOLIO_TRY(float* first, scratch_floats(run, rows * w.fc1.n));
    FOLIO_TRY(float* third, scratch_floats(run, w.has_fc3 ? rows * w.inter : 0));
    FOLIO_TRY(float* last, scratch_floats(run, rows * hidden));
    FOLIO_TRY(float* parts, scratch_floats(run, tokens * attrs.k * hidden));
    std::fill_n(parts, tokens * attrs.k * hidden, 0.0F);
    Products products(run);
    std::vector<const ExpertWeights*> all = {&w.fc1, &w.fc2};
    if (w.has_fc3) all.push_back(&w.fc3);
    FOLIO_RETURN_IF_ERROR(products.reserve(all));
    for (size_t e = 0; e < routes.size(); ++e) {
      const auto count = static_cast<int64_t>(routes[e].size());
      if (count == 0) continue;
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      const auto expert = static_cast<int64_t>(e);
      for (int64_t i = 0; i < count; ++i) {
        const Route& route = routes[e][static_cast<size_t>(i)];
        std::copy_n(x + route.token * hidden, hidden, a + i * hidden);
      }
      products.multiply(w.fc1, expert, count, a, first);
      if (w.has_fc3) products.multiply(w.fc3, expert, count, a, third);
      activate(run, w, count, first, w.has_fc3 ? third : nullptr);
      products.multiply(w.fc2, expert, count, first, last);
      for (int64_t i = 0; i < count; ++i) {
        const Route& route = routes[e][static_cast<size_t>(i)];
        float* to = parts + (route.token * attrs.k + route.place) * hidden;
        for (int64_t h = 0; h < hidden; ++h) to[h] = route.weight * last[i * hidden + h];
      }
    }
    for (int64_t t = 0; t < tokens; ++t) {
      const float* from = parts + t * attrs.k * hidden;
      std::copy_n(from, hidden, y + t * hidden);
      for (int64_t j = 1; j < attrs.k; ++j) {
        for (int64_t h = 0; h < hidden; ++h) y[t * hidden + h] += from[j * hidden + h];
      }
    }
    return Status::ok();
  }

  // In place; rows of fused swiglu become half as long and stand one behind another.
  void activate(OpRun& run, const Weights& w, int64_t rows, float* first,
                const float* third) const {
    const int64_t n = w.inter;
    if (!attrs.doubled()) {
      run.parallel().for_range(rows * n, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (attrs.function == Function::kSwiGlu) {
            first[i] = gate(attrs, first[i], third[i]);
          } else {
            first[i] = apply(attrs.function, first[i]) * (third ? third[i] : 1.0F);
          }
        }
      });
      return;
    }
    // A row is written before those behind it are read, and no element before its own are.
    const int64_t step = attrs.fusion == 1 ? 2 : 1;
    const int64_t other = attrs.fusion == 1 ? 1 : n;
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = first + r * 2 * n;
      for (int64_t i = 0; i < n; ++i) {
        first[r * n + i] = gate(attrs, row[i * step], row[i * step + other]);
      }
    }
  }
};

Status parse_function(const Attributes& from, Attrs* out) {
  FOLIO_TRY(const std::string name, from.get_string("activation_type", "relu"));
  constexpr std::string_view kNames[] = {"relu", "gelu", "silu", "identity", "swiglu"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return invalid_graph("attribute 'activation_type' is '", name,
                         "', expected relu, gelu, silu, identity or swiglu");
  }
  out->function = static_cast<Function>(found - std::begin(kNames));
  FOLIO_TRY(out->fusion, from.get_int("swiglu_fusion", 0));
  if (out->fusion < 0 || out->fusion > 2) {
    return invalid_graph("attribute 'swiglu_fusion' is ", out->fusion, ", expected 0 to 2");
  }
  FOLIO_TRY(out->alpha, from.get_float("activation_alpha", 1.0F));
  FOLIO_TRY(out->beta, from.get_float("activation_beta", 0.0F));
  FOLIO_TRY(out->limit, from.get_float("swiglu_limit", out->limit));
  if (!(out->limit >= 0)) return invalid_graph("attribute 'swiglu_limit' is ", out->limit);
  return Status::ok();
}

Status parse_quantized(const Attributes& from, Attrs* out) {
  FOLIO_TRY(const std::string type, from.get_string("quant_type", "int"));
  if (type != "int") return not_implemented("quant_type '", type, "', expected int");
  FOLIO_TRY(const int64_t prepacked, from.get_int("weights_prepacked", -1));
  if (prepacked == 1) return not_implemented("weights packed for a GPU (weights_prepacked 1)");
  FOLIO_TRY(out->bits, from.get_int("expert_weight_bits", 4));
  if (out->bits != 2 && out->bits != 4 && out->bits != 8) {
    return not_implemented("expert_weight_bits ", out->bits, ", expected 2, 4 or 8");
  }
  FOLIO_TRY(out->block, from.get_int("block_size", 0));
  if (out->block < 0) out->block = 0;
  const bool power = out->block >= 16 && (out->block & (out->block - 1)) == 0;
  if (out->block != 0 && !power) {
    return invalid_graph("attribute 'block_size' is ", out->block,
                         ", expected a power of two from 16 on");
  }
  return Status::ok();
}

template <bool kQuantized>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Moe>();
  const Attributes& from = build.attrs();
  Attrs& attrs = kernel->attrs;
  attrs.quantized = kQuantized;
  FOLIO_RETURN_IF_ERROR(parse_function(from, &attrs));
  if (kQuantized) FOLIO_RETURN_IF_ERROR(parse_quantized(from, &attrs));
  FOLIO_TRY(attrs.k, from.get_int("k", 1));
  if (attrs.k < 1) return invalid_graph("attribute 'k' is ", attrs.k, ", expected 1 or more");
  FOLIO_TRY(const int64_t normalize, from.get_int("normalize_routing_weights", 0));
  FOLIO_TRY(const int64_t sparse, from.get_int("use_sparse_mixer", 0));
  if (sparse != 0) return not_implemented("use_sparse_mixer ", sparse);
  attrs.normalize = normalize != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_moe(OpRegistry& registry) {
  OpDef def;
  def.domain = "com.microsoft";
  def.type = "MoE";
  def.keeps_half = true;
  def.min_inputs = 5;
  def.optional_inputs = 1U << 3;  // a bias
  def.max_inputs = 8;
  def.infer = infer;
  def.make = make<false>;
  def.picked_inputs = 1U << 2 | 1U << 4 | 1U << 6;
  registry.add(def);
  def.type = "QMoE";
  def.min_inputs = 6;
  def.optional_inputs = 1U << 4;
  def.max_inputs = 21;
  def.make = make<true>;
  def.picked_inputs = 1U << 2 | 1U << 5 | 1U << 8;
  def.unaligned_inputs = def.picked_inputs;
  registry.add(def);
}

}  // namespace folio
