#include "tools/folio/node_work.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace folio_cli {

namespace {

// Reads of shapes and attributes that give 0 where there is nothing.
class Node {
 public:
  explicit Node(const NodeShapes& shapes) : shapes_(shapes) {}

  const std::string& type() const { return shapes_.op_type; }
  const SeenShape& in(size_t i) const { return at(shapes_.inputs, i); }
  const SeenShape& out(size_t i) const { return at(shapes_.outputs, i); }
  // Dim `i` of a shape, from behind if negative.
  static double dim(const SeenShape& shape, int i) {
    const auto rank = static_cast<int>(shape.dims.size());
    const int from = i < 0 ? rank + i : i;
    return from < 0 || from >= rank ? 0.0
                                    : static_cast<double>(shape.dims[static_cast<size_t>(from)]);
  }
  int64_t number(const char* name, int64_t fallback) const {
    const auto& a = shapes_.attributes;
    if (!a.is_object() || !a.contains(name) || !a[name].is_number_integer()) return fallback;
    return a[name].get<int64_t>();
  }
  std::string text(const char* name) const {
    const auto& a = shapes_.attributes;
    if (!a.is_object() || !a.contains(name) || !a[name].is_string()) return "";
    return a[name].get<std::string>();
  }
  // Entry `i` of a list of numbers.
  int64_t entry(const std::string& name, size_t i, int64_t fallback) const {
    const auto& a = shapes_.attributes;
    if (!a.is_object() || !a.contains(name) || !a[name].is_array()) return fallback;
    const auto& list = a[name];
    return i < list.size() && list[i].is_number_integer() ? list[i].get<int64_t>() : fallback;
  }

 private:
  static const SeenShape& at(const std::vector<SeenShape>& list, size_t i) {
    static const SeenShape kNone;
    return i < list.size() ? list[i] : kNone;
  }

  const NodeShapes& shapes_;
};

bool is_byte(const SeenShape& shape) {
  return shape.type == FOLIO_INT8 || shape.type == FOLIO_UINT8;
}

Work products(double pairs, bool of_bytes) {
  Work work;
  work.operations = 2 * pairs;
  work.of_bytes = of_bytes;
  return work;
}

double ratio(double a, double b) { return b > 0 ? a / b : 0.0; }

// Each output takes as many products as a filter has elements: W [M, C / group, kernel...].
double conv_pairs(const SeenShape& w, double outputs) {
  return outputs * ratio(w.count(), Node::dim(w, 0));
}

// Of a ConvChain: where weights of a step are among its inputs.
constexpr size_t kSteps = 3;
constexpr size_t weights_of_step(size_t step) { return 1 + 3 * step; }
const std::string kStepNames[kSteps] = {"first.", "filter.", "last."};

// The weights of a convolution, or of a chain's first or last step that has any.
struct StepWeights {
  std::string prefix;  // of its attributes
  size_t input = 1;
};
StepWeights weights_of(const Node& n, bool is_last) {
  if (n.type() != "ConvChain") return {};
  for (size_t i = 0; i < kSteps; ++i) {
    const size_t step = is_last ? kSteps - 1 - i : i;
    if (n.in(weights_of_step(step)).dims.empty()) continue;
    return {kStepNames[step], weights_of_step(step)};
  }
  return {};
}

// Channels that a node makes.
double made_channels(const Node& n) {
  if (n.type() == "Resize") return Node::dim(n.in(0), -1);
  if (n.type() == "ConvTranspose") return Node::dim(n.in(1), 1);
  return Node::dim(n.in(weights_of(n, true).input), 0);
}

// Of the image that a node writes, or only some channels of: what it writes of it.
double share_of_output(const Node& n) {
  const auto joined = static_cast<double>(n.number("joined_channels", 0));
  return joined > 0 ? made_channels(n) / joined : 1.0;
}

// Of the images of which a convolution reads some channels: the bytes of the others.
double unread_bytes(const Node& n) {
  const auto rest = [](const SeenShape& image, double read) {
    return image.bytes() * (1 - std::min(1.0, ratio(read, Node::dim(image, -1))));
  };
  double bytes = 0;
  const StepWeights first = weights_of(n, false);
  if (n.number((first.prefix + "x_at").c_str(), -1) >= 0) {
    const auto group = static_cast<double>(n.number((first.prefix + "group").c_str(), 1));
    bytes += rest(n.in(0), Node::dim(n.in(first.input), 1) * group);
  }
  if (n.number("z_at", -1) >= 0) {
    bytes += rest(n.in(n.type() == "ConvChain" ? weights_of_step(kSteps) : 3), made_channels(n));
  }
  return bytes;
}

// Whether the image that it writes channels of is an input, too.
bool has_begun_image(const Node& n) {
  const size_t into = n.type() == "ConvChain" ? weights_of_step(kSteps) + 1
                      : n.type() == "Resize"  ? 4
                      : n.type() == "Conv"    ? 5
                                              : 3;
  return !n.in(into).dims.empty();
}

Work conv(const Node& n, size_t weights) {
  const double outputs = n.out(0).count() * share_of_output(n);
  Work work = products(conv_pairs(n.in(weights), outputs), is_byte(n.in(weights)));
  work.is_winograd = n.number("winograd", 0) != 0;
  return work;
}

// Here each input: W [C, M / group, kernel...].
Work conv_transpose(const Node& n) {
  return products(conv_pairs(n.in(1), n.in(0).count()), is_byte(n.in(1)));
}

// X [N, H, W, C] (planes: [N, C, H, W]) -> Y [N, H2, W2, M], through up to three steps of weights
// [M, ., kernel...]. What stands between them is no output: its height and width follow from the
// attributes.
Work conv_chain(const Node& n) {
  const int height = n.number("first.planes", 0) != 0 ? 2 : 1;  // where that dim of X is
  double image[] = {Node::dim(n.in(0), height), Node::dim(n.in(0), height + 1)};
  double pairs = 0;
  size_t number = 0;
  for (const std::string& step : kStepNames) {
    const SeenShape& w = n.in(weights_of_step(number++));
    const bool is_pool = w.dims.empty() && n.entry(step + "kernel_shape", 0, 0) > 0;
    if (w.dims.empty() && !is_pool) continue;
    const bool is_same = n.text((step + "auto_pad").c_str()).rfind("SAME", 0) == 0;
    for (size_t i = 0; i < 2; ++i) {
      const auto stride = static_cast<double>(n.entry(step + "strides", i, 1));
      const double taps = is_pool ? static_cast<double>(n.entry(step + "kernel_shape", i, 1))
                                  : Node::dim(w, static_cast<int>(i) + 2);
      const double reach = (taps - 1) * static_cast<double>(n.entry(step + "dilations", i, 1));
      const double size = image[i] + static_cast<double>(n.entry(step + "pads", i, 0)) +
                          static_cast<double>(n.entry(step + "pads", i + 2, 0)) - reach - 1;
      image[i] = is_same ? std::ceil(ratio(image[i], stride)) : std::floor(ratio(size, stride)) + 1;
    }
    if (is_pool) continue;
    pairs += conv_pairs(w, Node::dim(n.in(0), 0) * Node::dim(w, 0) * image[0] * image[1]);
  }
  return products(pairs, false);
}

// Each output is a sum over the depth, A's last dim or, transposed, the one before.
Work matmul(const Node& n, size_t a, size_t b) {
  const bool is_transposed = n.number("transA", 0) != 0 && n.in(a).dims.size() > 1;
  const double depth = Node::dim(n.in(a), is_transposed ? -2 : -1);
  return products(n.out(0).count() * depth, is_byte(n.in(b)));
}

Work block_matmul(const Node& n) {
  constexpr int64_t kRoundsRows = 4;  // accuracy_level
  return products(n.out(0).count() * Node::dim(n.in(0), -1),
                  n.number("accuracy_level", 0) == kRoundsRows);
}

// Rows of Q times `keys` rows of K, and weights times as many of V: heads side by side in a row.
Work attention(const SeenShape& q, double keys, const Node& n) {
  return products(keys * (q.count() + n.out(0).count()), false);
}

// Rows of keys, of K as [B, T, H * D] or [B, H, T, D], or of what an output holds of all keys.
double keys_of(const SeenShape& k) { return Node::dim(k, k.dims.size() == 4 ? 2 : 1); }

Work multi_head_attention(const Node& n) {
  const SeenShape& present = n.out(1);
  const double keys = present.dims.size() == 4 ? Node::dim(present, 2) : keys_of(n.in(1));
  const bool is_packed = n.in(1).dims.empty();  // Q, K and V in one: Q is as large as the output
  return attention(is_packed ? n.out(0) : n.in(0), keys > 0 ? keys : Node::dim(n.in(0), 1), n);
}

// com.microsoft's makes Q, K and V itself, of X [B, S, C] and W [C, 3 N].
Work any_attention(const Node& n) {
  if (n.in(1).dims.size() != 2) return multi_head_attention(n);
  const double rows = ratio(n.in(0).count(), Node::dim(n.in(0), -1));
  const double past = n.out(1).dims.size() == 5 ? Node::dim(n.out(1), 3) : 0.0;
  Work work = attention(n.out(0), past > 0 ? past : Node::dim(n.in(0), 1), n);
  work.operations += 2 * rows * n.in(1).count();
  return work;
}

// Dim i of the logical [B, H, T, D] is dim perm_k[i] of K.
Work strided_attention(const Node& n) {
  const SeenShape& k = n.in(1);
  if (k.dims.size() < 2) return {};
  const size_t i = k.dims.size() - 2;
  const auto axis = static_cast<int>(n.entry("perm_k", i, static_cast<int64_t>(i)));
  return attention(n.in(0), Node::dim(k, axis), n);
}

// X [S, B, I]: each of its rows takes W and R [directions, gates * H, .] once.
Work recurrent(const Node& n) {
  const double rows = Node::dim(n.in(0), 0) * Node::dim(n.in(0), 1);
  return products(rows * (n.in(1).count() + n.in(2).count()), is_byte(n.in(1)));
}

using CountFn = std::function<Work(const Node&)>;

CountFn conv_at(size_t weights) {
  return [=](const Node& n) { return conv(n, weights); };
}
CountFn matmul_at(size_t a, size_t b) {
  return [=](const Node& n) { return matmul(n, a, b); };
}

const std::map<std::string, CountFn>& counts() {
  static const std::map<std::string, CountFn> table = {
      {"Conv", conv_at(1)},
      {"FusedConv", conv_at(1)},
      {"PlanesConv", conv_at(1)},
      {"ConvInteger", conv_at(1)},
      {"ConvIntegerToFloat", conv_at(1)},
      {"DeformConv", conv_at(1)},
      {"QLinearConv", conv_at(3)},
      {"QLinearConvAdd", conv_at(3)},
      {"ConvChain", conv_chain},
      {"ConvTranspose", conv_transpose},
      {"MatMul", matmul_at(0, 1)},
      {"FusedMatMul", matmul_at(0, 1)},
      {"Gemm", matmul_at(0, 1)},
      {"FusedGemm", matmul_at(0, 1)},
      {"MatMulInteger", matmul_at(0, 1)},
      {"MatMulIntegerToFloat", matmul_at(0, 1)},
      {"DynamicQuantizeMatMul", matmul_at(0, 1)},
      {"QLinearMatMul", matmul_at(0, 3)},
      {"QGemm", matmul_at(0, 3)},
      {"MatMulNBits", block_matmul},
      {"MatMulBnb4", block_matmul},
      {"Attention", any_attention},
      {"QAttention", any_attention},
      {"MultiHeadAttention", multi_head_attention},
      {"DecoderMaskedMultiHeadAttention", multi_head_attention},
      {"GroupQueryAttention", multi_head_attention},
      {"StridedAttention", strided_attention},
      {"LSTM", recurrent},
      {"GRU", recurrent},
      {"RNN", recurrent},
      {"DynamicQuantizeLSTM", recurrent},
  };
  return table;
}

// Nothing is moved: the output lies where the input does, or is a few numbers; or other nodes,
// which the profile has too, do it all.
bool moves_nothing(const std::string& op_type) {
  static const std::set<std::string> kNames = {"Reshape", "Squeeze", "Unsqueeze", "Identity",
                                               "Flatten", "Shape",   "Size",      "If",
                                               "Loop",    "Scan"};
  return kNames.count(op_type) != 0;
}

// Of the first input only what becomes the output is read.
bool reads_what_it_writes(const std::string& op_type) {
  static const std::set<std::string> kNames = {"Gather", "GatherND", "GatherElements", "Slice"};
  return kNames.count(op_type) != 0;
}

// What it reads, some channels of each image, goes into one that may have been there before.
double joined_bytes(const Node& n, size_t inputs) {
  double read = 0;
  for (size_t i = 1; i < inputs; ++i) {
    const auto channels = static_cast<double>(n.entry("channels", i - 1, 0));
    read += n.in(i).bytes() * ratio(channels, Node::dim(n.in(i), -1));
  }
  return 2 * read;
}

double moved_bytes(const NodeShapes& node) {
  if (moves_nothing(node.op_type)) return 0;
  const Node n(node);
  if (node.op_type == "Join") return joined_bytes(n, node.inputs.size());
  double written = 0;
  for (const SeenShape& output : node.outputs) written += output.bytes();
  const bool is_part = reads_what_it_writes(node.op_type);
  double bytes = is_part ? 2 * written : written;
  for (size_t i = is_part ? 1 : 0; i < node.inputs.size(); ++i) bytes += node.inputs[i].bytes();
  bytes -= unread_bytes(n);
  const double share = share_of_output(n);
  if (share == 1.0) return bytes;
  return bytes - (1 - share) * written - (has_begun_image(n) ? written : 0);
}

}  // namespace

double SeenShape::count() const {
  if (type == FOLIO_UNDEFINED) return 0;
  return std::accumulate(dims.begin(), dims.end(), 1.0, [](double product, int64_t d) {
    return product * static_cast<double>(d);
  });
}

double SeenShape::bytes() const { return count() * facts_of(type).bits / 8; }

Work work_of(const NodeShapes& node) {
  const auto found = counts().find(node.op_type);
  Work work = found == counts().end() ? Work() : found->second(Node(node));
  work.bytes = moved_bytes(node);
  return work;
}

}  // namespace folio_cli
