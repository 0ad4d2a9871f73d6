#include "tools/op_bench/families.h"

#include <algorithm>

#include "tools/op_bench/cases.h"

namespace op_bench {

namespace {

constexpr const char* kMicrosoft = "com.microsoft";

const char* sign_of(ElementType type) { return type == kS8 ? "s8" : "u8"; }

// ---- Products of floats ---------------------------------------------------------------------

std::vector<NamedCase> gemm_f32() {
  Cases cases("gemm_f32");
  const Dims shapes[] = {{512, 512, 512}, {1024, 1024, 1024}, {128, 768, 3072}, {128, 3072, 768},
                         {128, 768, 768}, {16, 768, 768},     {4, 4096, 4096},  {1, 4096, 4096},
                         {1, 768, 3072},  {37, 129, 65},      {100, 300, 500},  {333, 777, 111}};
  for (const Dims& mkn : shapes) {
    cases.add(text_of(mkn), "MatMul", "", [=](OneNode& node) {
      node.x(kF32, {mkn[0], mkn[1]}).w(kF32, {mkn[1], mkn[2]}).y(kF32, {mkn[0], mkn[2]});
    });
  }
  for (const Dims& mkn : {Dims{100000, 3, 3}, Dims{100000, 4, 4}, Dims{50176, 3, 1}}) {  // points
    cases.add(text_of(mkn), "MatMul", "", [=](OneNode& node) {
      node.x(kF32, {mkn[0], mkn[1]}).w(kF32, {mkn[1], mkn[2]}).y(kF32, {mkn[0], mkn[2]});
    });
  }
  cases.add("128x768x768_transB_bias", "Gemm", "", [](OneNode& node) {
    node.x(kF32, {128, 768}).w(kF32, {768, 768}).w(kF32, {768}).y(kF32, {128, 768});
    node.attr("transB", 1);
  });
  const Dims batches[] = {{12, 128, 64, 128}, {12, 128, 128, 64}, {64, 16, 64, 16}};
  for (const Dims& bmkn : batches) {
    cases.add(text_of(bmkn) + "_no_constant", "MatMul", "", [=](OneNode& node) {
      node.x(kF32, {bmkn[0], bmkn[1], bmkn[2]}).x(kF32, {bmkn[0], bmkn[2], bmkn[3]});
      node.y(kF32, {bmkn[0], bmkn[1], bmkn[3]});
    });
  }
  return cases.take();
}

// ---- Convolutions ---------------------------------------------------------------------------

struct ConvCase {
  int64_t in, out, image, kernel, stride, group = 1, dilation = 1;
  std::string name() const {
    return std::to_string(in) + "to" + std::to_string(out) + "_" + std::to_string(image) + "_k" +
           std::to_string(kernel) + (stride > 1 ? "s" + std::to_string(stride) : "") +
           (dilation > 1 ? "d" + std::to_string(dilation) : "") +
           (group > 1 ? "g" + std::to_string(group) : "");
  }
  int64_t pad() const { return dilation * (kernel - 1) / 2; }
  int64_t size() const { return (image + 2 * pad() - dilation * (kernel - 1) - 1) / stride + 1; }
  Dims x() const { return {1, in, image, image}; }
  Dims w() const { return {out, in / group, kernel, kernel}; }
  Dims y() const { return {1, out, size(), size()}; }
  void set(OneNode* node) const {
    node->attr("kernel_shape", {kernel, kernel}).attr("strides", {stride, stride});
    node->attr("pads", {pad(), pad(), pad(), pad()}).attr("dilations", {dilation, dilation});
    node->attr("group", group);
  }
};

constexpr int64_t kManyGroups = 32;
const ConvCase kConvs[] = {{64, 64, 56, 3, 1},        {128, 128, 28, 3, 1},
                           {256, 256, 14, 3, 1},      {512, 512, 7, 3, 1},
                           {256, 64, 56, 1, 1},       {64, 256, 56, 1, 1},
                           {1024, 256, 14, 1, 1},     {3, 64, 224, 7, 2},
                           {3, 32, 224, 3, 2},        {128, 128, 56, 3, 2},
                           {64, 64, 112, 3, 1, 64},   {384, 384, 14, 3, 1, 384},
                           {144, 144, 56, 3, 2, 144}, {128, 128, 28, 3, 1, kManyGroups},
                           {64, 64, 56, 5, 1},        {64, 64, 56, 3, 1, 1, 2}};

// Groups of 2 to 16 channels.
const ConvCase kGroupedConvs[] = {{64, 64, 56, 3, 1, 32},   {128, 128, 56, 3, 2, kManyGroups},
                                  {256, 256, 28, 3, 1, 32}, {256, 256, 14, 3, 1, 16},
                                  {512, 512, 14, 3, 1, 32}, {512, 512, 7, 3, 1, 32},
                                  {96, 96, 28, 5, 1, 8},    {240, 240, 28, 1, 1, 3}};

std::vector<NamedCase> conv_f32() {
  Cases cases("conv_f32");
  for (const ConvCase& conv : kConvs) {
    cases.add(conv.name(), "Conv", "", [=](OneNode& node) {
      node.x(kF32, conv.x()).w(kF32, conv.w()).w(kF32, {conv.out}).y(kF32, conv.y());
      conv.set(&node);
    });
  }
  for (const ConvCase& conv : kGroupedConvs) {
    cases.add(conv.name(), "Conv", "", [=](OneNode& node) {
      node.x(kF32, conv.x()).w(kF32, conv.w()).w(kF32, {conv.out}).y(kF32, conv.y());
      conv.set(&node);
    });
  }
  cases.add("80to384_len3000_k3", "Conv", "", [](OneNode& node) {
    node.x(kF32, {1, 80, 3000}).w(kF32, {384, 80, 3}).w(kF32, {384}).y(kF32, {1, 384, 3000});
    node.attr("kernel_shape", Dims{3}).attr("pads", Dims{1, 1});
  });
  cases.add("64to32_28_k4s2", "ConvTranspose", "", [](OneNode& node) {
    node.x(kF32, {1, 64, 28, 28}).w(kF32, {64, 32, 4, 4}).y(kF32, {1, 32, 56, 56});
    node.attr("kernel_shape", Dims{4, 4}).attr("strides", Dims{2, 2}).attr("pads", {1, 1, 1, 1});
  });
  return cases.take();
}

// ---- Products of bytes ----------------------------------------------------------------------

void integer_matmul(const Dims& mkn, ElementType a, ElementType b, Cases* cases) {
  const std::string name = text_of(mkn) + "_" + sign_of(a) + sign_of(b);
  cases->add(name, "MatMulInteger", "", [=](OneNode& node) {
    node.x_bytes(a, {mkn[0], mkn[1]}).w(b, {mkn[1], mkn[2]}).w_zero(a).w_zero(b);
    node.y(kS32, {mkn[0], mkn[2]});
  });
}

void linear_matmul(const Dims& mkn, ElementType a, ElementType b, Cases* cases) {
  const std::string name = text_of(mkn) + "_" + sign_of(a) + sign_of(b);
  cases->add(name, "QLinearMatMul", "", [=](OneNode& node) {
    node.x_bytes(a, {mkn[0], mkn[1]}).w_floats({}, {0.02F}).w_zero(a);
    node.w(b, {mkn[1], mkn[2]}).w_floats({}, {0.01F}).w_zero(b);
    node.w_floats({}, {0.5F}).w_zero(a).y(a, {mkn[0], mkn[2]});
  });
}

void linear_conv(const ConvCase& conv, ElementType type, Cases* cases) {
  cases->add(conv.name() + "_" + sign_of(type) + "s8", "QLinearConv", "", [=](OneNode& node) {
    node.x_bytes(type, conv.x()).w_floats({}, {0.02F}).w_zero(type);
    node.w(kS8, conv.w()).w_floats({}, {0.01F}).w_zero(kS8);
    node.w_floats({}, {0.5F}).w_zero(type).y(type, conv.y());
    conv.set(&node);
  });
}

std::vector<NamedCase> bytes() {
  Cases cases("bytes");
  const Dims products[] = {{512, 512, 512}, {1024, 1024, 1024}, {128, 768, 3072}};
  for (const Dims& mkn : products) {
    integer_matmul(mkn, kU8, kS8, &cases);
    linear_matmul(mkn, kU8, kS8, &cases);
  }
  for (const Dims& mkn : {Dims{16, 768, 768}, Dims{1, 4096, 4096}}) {
    integer_matmul(mkn, kU8, kS8, &cases);
  }
  integer_matmul(products[0], kU8, kU8, &cases);
  integer_matmul(products[0], kS8, kS8, &cases);
  integer_matmul(products[0], kS8, kU8, &cases);
  linear_matmul(products[0], kS8, kS8, &cases);
  for (const Dims& mkn : {Dims{512, 512, 512}, Dims{128, 768, 3072}, Dims{1, 4096, 4096}}) {
    cases.add(text_of(mkn), "DynamicQuantizeMatMul", kMicrosoft, [=](OneNode& node) {
      node.x(kF32, {mkn[0], mkn[1]}).w(kS8, {mkn[1], mkn[2]}).w_floats({}, {0.01F}).w_zero(kS8);
      node.y(kF32, {mkn[0], mkn[2]});
    });
  }
  for (const ConvCase& conv : kConvs) {
    if (conv.group != kManyGroups && conv.dilation == 1 && conv.kernel != 5) {
      linear_conv(conv, kU8, &cases);
    }
  }
  linear_conv(kConvs[0], kS8, &cases);
  linear_conv(kConvs[4], kS8, &cases);
  return cases.take();
}

// ---- Weights in blocks ----------------------------------------------------------------------

void nbits(int64_t m, int64_t bits, int64_t block, int64_t level, Cases* cases) {
  constexpr int64_t kSize = 4096;
  const std::string name = text_of({m, kSize, kSize}) + "_b" + std::to_string(block) + "_" +
                           std::to_string(bits) + "bit_acc" + std::to_string(level);
  cases->add(name, "MatMulNBits", kMicrosoft, [=](OneNode& node) {
    const int64_t blocks = kSize / block;
    node.x(kF32, {1, m, kSize}).w(kU8, {kSize, blocks, block * bits / 8});
    node.w(kF32, {kSize * blocks}).y(kF32, {1, m, kSize});
    node.attr("K", kSize).attr("N", kSize).attr("bits", bits).attr("block_size", block);
    node.attr("accuracy_level", level);
  });
}

std::vector<NamedCase> blocks() {
  Cases cases("blocks");
  for (const int64_t m : {1, 16, 128}) {
    for (const int64_t level : {0, 4}) nbits(m, 4, 32, level, &cases);
  }
  nbits(1, 4, 128, 4, &cases);
  nbits(128, 4, 128, 4, &cases);
  nbits(1, 8, 32, 0, &cases);
  nbits(1, 8, 32, 4, &cases);
  return cases.take();
}

// ---- Rows and elements ----------------------------------------------------------------------

const char* suffix_of(ElementType type) {
  return type == kF64   ? "_f64"
         : type == kS32 ? "_s32"
         : type == kI64 ? "_s64"
         : type == kU8  ? "_u8"
                        : "";
}

// Where a function of one number is defined, within [-4, 4].
std::pair<double, double> domain_of(std::string_view op) {
  if (op == "Log" || op == "Sqrt") return {0.1, 4};
  if (op == "Asin" || op == "Acos" || op == "Atanh") return {-0.99, 0.99};
  if (op == "Acosh") return {1, 4};
  return {-4, 4};
}

std::vector<NamedCase> elements() {
  Cases cases("elements");
  const Dims dims = {128, 3072};
  for (const char* op : {"Exp",         "Log",   "Tanh",  "Sigmoid", "Erf",
                         "Sin",         "Relu",  "Sqrt",  "Sign",    "Softsign",
                         "Tan",         "Asin",  "Acos",  "Atan",    "Sinh",
                         "Cosh",        "Asinh", "Acosh", "Atanh",   "LeakyRelu",
                         "HardSigmoid", "Elu",   "Selu",  "Celu",    "ThresholdedRelu"}) {
    cases.add(text_of(dims), op, "", [=](OneNode& node) {
      const auto [low, high] = domain_of(op);
      node.x(kF32, dims, low, high).y(kF32, dims);
    });
  }
  cases.add(text_of(dims), "Gelu", kMicrosoft,
            [=](OneNode& node) { node.x(kF32, dims, -4, 4).y(kF32, dims); });
  for (const char* op : {"Add", "Mul", "Div", "Pow"}) {
    cases.add(text_of(dims), op, "", [=](OneNode& node) {
      node.x(kF32, dims, 0.5, 2).x(kF32, dims, 0.5, 2).y(kF32, dims);
    });
  }
  cases.add(text_of(dims), "PRelu", "",
            [=](OneNode& node) { node.x(kF32, dims, -4, 4).w(kF32, {3072}).y(kF32, dims); });
  for (const ElementType type : {kS32, kI64}) {
    cases.add(text_of(dims) + suffix_of(type), "Add", "",
              [=](OneNode& node) { node.x(type, dims, 0, 99).x(type, dims, 0, 99).y(type, dims); });
  }
  for (const auto& [from, to] : std::vector<std::pair<ElementType, ElementType>>{{kF32, kS32},
                                                                                 {kF32, kI64},
                                                                                 {kF32, kU8},
                                                                                 {kF32, kF64},
                                                                                 {kS32, kF32},
                                                                                 {kI64, kF32},
                                                                                 {kI64, kS32},
                                                                                 {kU8, kF32}}) {
    const std::string name = text_of(dims) + suffix_of(from) + "_to" + suffix_of(to);
    cases.add(to == kF32 ? name + "_f32" : name, "Cast", "",
              [=, from = from, to = to](OneNode& node) {
                node.x(from, dims, 0, 99).y(to, dims).attr("to", static_cast<int64_t>(to));
              });
  }
  for (const float exponent : {2.0F, 3.0F, 4.0F, 0.5F, -0.5F, -1.0F, 1.5F, 2.2F}) {
    const std::string name = text_of(dims) + "_by" + std::to_string(exponent).substr(0, 4);
    cases.add(name, "Pow", "", [=](OneNode& node) {
      node.x(kF32, dims, 0, 2).w_floats({}, {exponent}).y(kF32, dims);
    });
  }
  cases.add(text_of(dims) + "_row", "Add", "",
            [=](OneNode& node) { node.x(kF32, dims).w(kF32, {3072}).y(kF32, dims); });
  cases.add(text_of(dims), "QuantizeLinear", "", [=](OneNode& node) {
    node.x(kF32, dims).w_floats({}, {0.01F}).w_zero(kU8).y(kU8, dims);
  });
  cases.add(text_of(dims), "DequantizeLinear", "", [=](OneNode& node) {
    node.x_bytes(kU8, dims).w_floats({}, {0.01F}).w_zero(kU8).y(kF32, dims);
  });
  cases.add(text_of(dims), "DynamicQuantizeLinear", "",
            [=](OneNode& node) { node.x(kF32, dims).y(kU8, dims).y(kF32, {}).y(kU8, {}); });
  return cases.take();
}

void reduction(const char* op, ElementType type, const Dims& dims, const Dims& axes, Cases* cases) {
  const std::string axis = axes.empty() ? "_all" : "_axis" + text_of(axes);
  cases->add(text_of(dims) + axis + suffix_of(type), op, "", [=](OneNode& node) {
    Dims result = dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (axes.empty() || std::count(axes.begin(), axes.end(), at) > 0) result[i] = 1;
    }
    const bool is_float = type == kF32 || type == kF64;
    const bool is_log = op == std::string("ReduceLogSum");
    // ONNX Runtime's integers do not wrap.
    const double most = is_float || op == std::string("ReduceProd") ? 1 : 10;
    node.x(type, dims, is_log ? 0.1 : type == kU8 ? 0 : -most, type == kU8 ? 255 : most);
    if (op == std::string("ReduceSum")) {  // an input since opset 13
      if (!axes.empty()) node.w_ints({static_cast<int64_t>(axes.size())}, axes);
    } else if (!axes.empty()) {
      node.attr("axes", axes);
    }
    node.y(type, result);
  });
}

// Types but float: what ONNX Runtime has of them.
void typed_reductions(Cases* cases) {
  const Dims image = {128, 64, 96};
  const Dims patterns[] = {{0}, {1}, {2}, {0, 2}, {}};
  for (const ElementType type : {kF64, kS32, kI64}) {
    for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"}) {
      if (type == kI64 && op == std::string("ReduceMean")) continue;
      if (type == kF64 && op == std::string("ReduceProd")) continue;
      for (const Dims& axes : patterns) reduction(op, type, image, axes, cases);
      reduction(op, type, {20000, 5}, {1}, cases);
      reduction(op, type, {256, 300, 4}, {1}, cases);
      reduction(op, type, {1, 2000, 80}, {2}, cases);
    }
  }
  for (const ElementType type : {kF64, kS32}) {
    for (const Dims& axes : patterns) reduction("ReduceSumSquare", type, image, axes, cases);
  }
  for (const Dims& axes : patterns) reduction("ReduceLogSumExp", kF64, image, axes, cases);
  for (const Dims& axes : patterns) reduction("ReduceMax", kU8, image, axes, cases);
}

void reductions(Cases* cases) {
  const Dims image = {128, 64, 96};
  const Dims patterns[] = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {}};
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceL2", "ReduceSum", "ReduceMin",
                         "ReduceSumSquare", "ReduceL1", "ReduceLogSumExp"}) {
    for (const Dims& axes : patterns) reduction(op, kF32, image, axes, cases);
  }
  for (const char* op : {"ReduceProd", "ReduceLogSum"}) {
    for (const int64_t axis : {0, 1, 2}) reduction(op, kF32, image, {axis}, cases);
  }
  typed_reductions(cases);
  reduction("ReduceMean", kF32, {1, 512, 7, 7}, {2, 3}, cases);
  reduction("ReduceMean", kF32, {1, 128, 768}, {2}, cases);
  for (const char* op : {"ReduceSum", "ReduceMax"}) {
    reduction(op, kF32, {20000, 5}, {1}, cases);
    reduction(op, kF32, {1, 25200, 80}, {2}, cases);
    for (const int64_t few : {2, 3, 4, 10}) reduction(op, kF32, {256, 300, few}, {1}, cases);
  }
}

void arg_max(ElementType type, const Dims& dims, int64_t axis, Cases* cases) {
  cases->add(text_of(dims) + "_axis" + std::to_string(axis) + suffix_of(type), "ArgMax", "",
             [=](OneNode& node) {
               Dims result = dims;
               result[static_cast<size_t>(axis)] = 1;
               const bool is_float = type == kF32 || type == kF64;
               node.x(type, dims, is_float ? -1 : -100, is_float ? 1 : 100);
               node.y(kI64, result).attr("axis", axis);
             });
}

void arg_maxes(Cases* cases) {
  for (const ElementType type : {kF32, kF64, kS32}) {
    for (const int64_t axis : {0, 1, 2}) arg_max(type, {128, 64, 96}, axis, cases);
  }
  arg_max(kF32, {1, 21, 128, 128}, 1, cases);
  arg_max(kF32, {20000, 5}, 1, cases);
  arg_max(kF32, {1, 513, 513, 21}, 3, cases);
  arg_max(kF32, {1, 2000, 80}, 2, cases);
  arg_max(kF32, {256, 300, 4}, 1, cases);
}

void softmax(const char* op, ElementType type, const Dims& dims, int64_t axis, Cases* cases) {
  const std::string at = axis < 0 ? "" : "_axis" + std::to_string(axis);
  cases->add(text_of(dims) + at + suffix_of(type), op, "",
             [=](OneNode& node) { node.x(type, dims, -8, 8).y(type, dims).attr("axis", axis); });
}

void softmaxes(Cases* cases) {
  for (const Dims& dims : {Dims{12, 128, 128}, Dims{1, 32000}, Dims{1, 4420, 2}, Dims{2000, 5},
                           Dims{2000, 10}, Dims{1, 8732, 21}}) {
    softmax("Softmax", kF32, dims, -1, cases);
  }
  softmax("Softmax", kF32, {1, 21, 64, 64}, 1, cases);
  softmax("Softmax", kF32, {1, 16, 4, 2100}, 1, cases);
  softmax("Softmax", kF64, {2000, 10}, -1, cases);
  for (const Dims& dims : {Dims{1, 4420, 2}, Dims{2000, 10}, Dims{12, 128, 128}}) {
    softmax("LogSoftmax", kF32, dims, -1, cases);
  }
}

std::vector<NamedCase> rows() {
  Cases cases("rows");
  softmaxes(&cases);
  const Dims dims = {1, 128, 768};
  cases.add(text_of(dims), "LayerNormalization", "", [=](OneNode& node) {
    node.x(kF32, dims).w(kF32, {768}).w(kF32, {768}).y(kF32, dims).attr("axis", -1);
  });
  cases.add(text_of(dims), "SkipLayerNormalization", kMicrosoft, [=](OneNode& node) {
    node.x(kF32, dims).x(kF32, dims).w(kF32, {768}).w(kF32, {768}).y(kF32, dims);
  });
  reductions(&cases);
  arg_maxes(&cases);
  return cases.take();
}

// ---- Attention and layers that recur --------------------------------------------------------

std::vector<NamedCase> attention() {
  Cases cases("attention");
  for (const Dims& sizes : {Dims{128, 128}, Dims{512, 512}, Dims{1, 512}}) {
    const std::string name = "12x64_" + text_of(sizes);
    cases.add(name, "MultiHeadAttention", kMicrosoft, [=](OneNode& node) {
      node.x(kF32, {1, sizes[0], 768}).x(kF32, {1, sizes[1], 768}).x(kF32, {1, sizes[1], 768});
      node.y(kF32, {1, sizes[0], 768}).attr("num_heads", 12);
    });
  }
  return cases.take();
}

std::vector<NamedCase> recurrent() {
  Cases cases("recurrent");
  struct Layer {
    const char* op;
    int64_t gates, steps;
  };
  for (const Layer& layer : {Layer{"LSTM", 4, 50}, {"LSTM", 4, 1}, {"GRU", 3, 50}}) {
    cases.add(std::to_string(layer.steps) + "x1x128", layer.op, "", [=](OneNode& node) {
      constexpr int64_t kHidden = 128;
      const int64_t gates = layer.gates * kHidden;
      // Larger ones make a GRU chaotic: outputs could not be compared.
      node.x(kF32, {layer.steps, 1, kHidden}).w_even({1, gates, kHidden});
      node.w_even({1, gates, kHidden}).w_even({1, 2 * gates});
      node.y(kF32, {layer.steps, 1, 1, kHidden}).attr("hidden_size", kHidden);
    });
  }
  return cases.take();
}

// ---- Moving ---------------------------------------------------------------------------------

void transpose(const Dims& dims, const Dims& perm, Cases* cases) {
  cases->add(text_of(dims) + "_" + text_of(perm), "Transpose", "", [=](OneNode& node) {
    Dims turned;
    for (const int64_t axis : perm) turned.push_back(dims[static_cast<size_t>(axis)]);
    node.x(kF32, dims).y(kF32, turned).attr("perm", perm);
  });
}

struct ResizeCase {
  const char* mode;
  const char* coordinates;
  float height, width;
};

void resize(const ResizeCase& to, Cases* cases) {
  constexpr int64_t kSize = 64;
  const auto height = static_cast<int64_t>(kSize * to.height);
  const auto width = static_cast<int64_t>(kSize * to.width);
  const std::string name = "1x32x64x64_to" + text_of({height, width}) + "_" + to.mode;
  cases->add(name, "Resize", "", [=](OneNode& node) {
    node.x(kF32, {1, 32, kSize, kSize}).none().w_floats({4}, {1, 1, to.height, to.width});
    node.y(kF32, {1, 32, height, width});
    node.attr("mode", to.mode).attr("coordinate_transformation_mode", to.coordinates);
    if (to.mode == std::string("nearest")) node.attr("nearest_mode", "floor");
  });
}

void resizes(Cases* cases) {
  for (const float by : {2.0F, 4.0F, 3.0F, 1.5F, 0.5F}) {
    resize({"nearest", "asymmetric", by, by}, cases);
    resize({"linear", "half_pixel", by, by}, cases);
  }
  resize({"nearest", "asymmetric", 1, 2}, cases);
  resize({"nearest", "asymmetric", 2, 1}, cases);
  resize({"linear", "half_pixel", 1, 2}, cases);
  resize({"linear", "half_pixel", 2, 1}, cases);
  resize({"cubic", "half_pixel", 2, 2}, cases);
  resize({"cubic", "half_pixel", 0.5F, 0.5F}, cases);
}

void pad(const char* mode, const Dims& dims, const Dims& pads, Cases* cases) {
  cases->add(text_of(dims) + "_by" + text_of(pads) + "_" + mode, "Pad", "", [=](OneNode& node) {
    Dims result = dims;
    for (size_t i = 0; i < dims.size(); ++i) result[i] += pads[i] + pads[i + dims.size()];
    node.x(kF32, dims).w_ints({static_cast<int64_t>(pads.size())}, pads).y(kF32, result);
    node.attr("mode", mode);
  });
}

void pads(Cases* cases) {
  for (const char* mode : {"constant", "edge", "reflect"}) {
    pad(mode, {1, 64, 56, 56}, {0, 0, 1, 1, 0, 0, 1, 1}, cases);
    pad(mode, {1, 3, 224, 224}, {0, 0, 3, 3, 0, 0, 3, 3}, cases);
    pad(mode, {1, 80, 3000}, {0, 0, 1, 0, 0, 1}, cases);
  }
  pad("constant", {1, 56, 56, 64}, {0, 1, 1, 0, 0, 1, 1, 0}, cases);
  pad("constant", {1, 128, 768}, {0, 0, 0, 0, 32, 0}, cases);
  pad("constant", {1, 64, 56, 56}, {0, 32, 0, 0, 0, 32, 0, 0}, cases);
  pad("constant", {1, 64, 56, 56}, {0, 0, -1, -1, 0, 0, -1, -1}, cases);
}

void top_k(const Dims& dims, int64_t axis, int64_t k, bool sorted, Cases* cases) {
  std::string name = text_of(dims) + "_axis" + std::to_string(axis) + "_k" + std::to_string(k);
  if (!sorted) name += "_unsorted";
  cases->add(name, "TopK", "", [=](OneNode& node) {
    Dims result = dims;
    result[static_cast<size_t>(axis)] = k;
    node.x(kF32, dims).w_ints({1}, {k}).y(kF32, result).y(kI64, result);
    node.attr("axis", axis).attr("sorted", sorted ? 1 : 0);
  });
}

void top_ks(Cases* cases) {
  for (const int64_t k : {1, 5, 10, 100, 500, 1000}) top_k({64, 1000}, 1, k, true, cases);
  top_k({1, 25200}, 1, 300, true, cases);
  top_k({1, 32000}, 1, 50, true, cases);
  top_k({1, 32000}, 1, 1, true, cases);
  top_k({8, 100, 64}, 1, 5, true, cases);
  top_k({1000, 64}, 0, 10, true, cases);
  top_k({1000, 64}, 0, 100, true, cases);
  top_k({4096, 16}, 1, 2, true, cases);
}

// Every order of three dims and of four but the one that moves nothing.
void transposes(Cases* cases) {
  for (const Dims& dims : {Dims{96, 64, 80}, Dims{8, 24, 32, 40}}) {
    Dims perm;
    for (size_t i = 0; i < dims.size(); ++i) perm.push_back(static_cast<int64_t>(i));
    while (std::next_permutation(perm.begin(), perm.end())) transpose(dims, perm, cases);
  }
  transpose({1, 128, 12, 64}, {0, 2, 1, 3}, cases);
  transpose({1, 128, 12, 64}, {0, 2, 3, 1}, cases);
  transpose({1, 64, 56, 56}, {0, 2, 3, 1}, cases);
  transpose({1, 56, 56, 64}, {0, 3, 1, 2}, cases);
  transpose({1, 3, 224, 224}, {0, 2, 3, 1}, cases);
  transpose({1, 224, 224, 3}, {0, 3, 1, 2}, cases);
  transpose({1, 255, 20, 20}, {0, 2, 3, 1}, cases);
  transpose({1, 3, 85, 20, 20}, {0, 1, 3, 4, 2}, cases);
  transpose({1, 2, 58, 28, 28}, {0, 2, 1, 3, 4}, cases);
  transpose({1024, 768}, {1, 0}, cases);
  transpose({1000, 5}, {1, 0}, cases);
}

std::vector<NamedCase> moves() {
  Cases cases("moves");
  transposes(&cases);
  resizes(&cases);
  pads(&cases);
  top_ks(&cases);
  cases.add("30000x768_128", "Gather", "", [](OneNode& node) {
    node.w(kF32, {30000, 768}).x(kI64, {1, 128}, 0, 29999).y(kF32, {1, 128, 768});
  });
  cases.add("2_of_1x64x56x56", "Concat", "", [](OneNode& node) {
    node.x(kF32, {1, 64, 56, 56}).x(kF32, {1, 64, 56, 56}).y(kF32, {1, 128, 56, 56});
    node.attr("axis", 1);
  });
  cases.add("25200x4_1_80", "Concat", "", [](OneNode& node) {
    node.x(kF32, {25200, 4}).x(kF32, {25200, 1}).x(kF32, {25200, 80}).y(kF32, {25200, 85});
    node.attr("axis", 1);
  });
  cases.add("1x128x768_half", "Slice", "", [](OneNode& node) {
    node.x(kF32, {1, 128, 768}).w_ints({1}, {0}).w_ints({1}, {384}).w_ints({1}, {2});
    node.y(kF32, {1, 128, 384});
  });
  for (const int64_t axis : {0, 1}) {
    cases.add("128x3072_axis" + std::to_string(axis), "CumSum", "", [=](OneNode& node) {
      node.x(kF32, {128, 3072}).w_ints({}, {axis}).y(kF32, {128, 3072});
    });
  }
  cases.add("64x1000x16_axis1_200", "Gather", "", [](OneNode& node) {
    node.x(kF32, {64, 1000, 16}).x(kI64, {200}, 0, 999).y(kF32, {64, 200, 16});
    node.attr("axis", 1);
  });
  cases.add("1x64x112x112_k3s2", "MaxPool", "", [](OneNode& node) {
    node.x(kF32, {1, 64, 112, 112}).y(kF32, {1, 64, 56, 56}).attr("kernel_shape", Dims{3, 3});
    node.attr("strides", Dims{2, 2}).attr("pads", {1, 1, 1, 1});
  });
  return cases.take();
}

}  // namespace

std::vector<NamedCase> all_cases() {
  std::vector<NamedCase> all;
  for (const auto family :
       {gemm_f32, conv_f32, bytes, blocks, elements, rows, attention, recurrent, moves, types}) {
    for (NamedCase& each : family()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace op_bench
