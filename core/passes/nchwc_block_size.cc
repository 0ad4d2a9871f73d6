// How many channels a block of a model's NCHWc images has, which the file does not say.
//
// Counts of channels are whole blocks: one that is an odd multiple of 8 has blocks of 8; channels
// that were added to make it whole are fewer than a block, so 8 or more of them make it 16; and a
// filter over 8 to 15 channels has them in blocks where a block is not longer.
//
// Where all counts are multiples of 16 (ResNet), the filters tell. The innermost index of a filter
// in blocks is the output channel within its block. So weights that are a multiple of 16 apart
// mostly belong to one output channel, whatever the block; those 24 or 40 apart do with blocks of 8
// only, and with blocks of 16 they share neither output nor input channel. Trained output channels
// differ in size, and so the sizes of two weights of one of them go together. Weights 4 more apart
// share no channel either way, and show what all weights nearby have in common.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/base/log.h"
#include "core/ops/op_registry.h"
#include "core/passes/nchwc.h"

namespace folio {
namespace {

constexpr int64_t kSmall = 8;
constexpr int64_t kLarge = 16;

// What is read of filters: enough for a likeness of a few hundredths to stand out.
constexpr int64_t kWeightsOfFilter = 1 << 16;
constexpr int kFilters = 32;
// Distances, about 32 each: one output channel whatever the block; with blocks of 8; never.
constexpr std::array<size_t, 3> kSame = {16, 32, 48};
constexpr std::array<size_t, 2> kSameIfSmall = {24, 40};
constexpr std::array<size_t, 4> kOther = {20, 28, 36, 44};
// How much more alike weights of one channel are, in standard deviations of a product's sum.
// Trained models from basic_pitch to ResNet-50 show 20 to 400, random weights 3.
constexpr double kClear = 8;
// Ratios of likeness at kSameIfSmall to that at kSame: those models have 0.5 to 1.4 with blocks of
// 8, and less than 0.1 with blocks of 16.
constexpr double kMostOfLarge = 0.3;
constexpr double kLeastOfSmall = 0.45;

class Evidence {
 public:
  void see(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (const auto& subgraph : node.subgraphs) see(*subgraph);
      if (is_nchwc(node, "Conv")) see_conv(graph, node);
      if (is_nchwc(node, "ReorderOutput")) see_reorder_output(graph, node);
      if (node.domain.empty() && node.op_type == "Reshape") see_reshape(graph, node);
    }
  }

  std::optional<int64_t> block() const {
    if (small_ > 0) return kSmall;
    if (large_ > 0) return kLarge;
    if (samples_ == 0 || same_ < kClear * std::sqrt(samples_)) return std::nullopt;
    const double ratio = same_if_small_ / same_;
    if (ratio >= kLeastOfSmall) return kSmall;
    if (ratio <= kMostOfLarge) return kLarge;
    return std::nullopt;
  }

 private:
  static const Node* producer(const Graph& graph, ValueId id) {
    if (id == kNone || graph.value(id).producer == kNone) return nullptr;
    return &graph.nodes[static_cast<size_t>(graph.value(id).producer)];
  }

  // The node of the domain behind functions of elements; null: none that makes blocks.
  static const Node* maker(const Graph& graph, ValueId id) {
    for (size_t steps = 0; steps <= graph.nodes.size(); ++steps) {
      const Node* node = producer(graph, id);
      if (!node) return nullptr;
      if (is_nchwc(*node)) return makes_blocks(*node) ? node : nullptr;
      const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
      if (!def || !def->elementwise || node->inputs.empty()) return nullptr;
      id = node->inputs[0];
    }
    return nullptr;
  }

  static const Initializer* filter_of(const Graph& graph, const Node& conv) {
    if (conv.inputs.size() < 2) return nullptr;
    const GraphValue* value = graph.constant_value(conv.inputs[1]);
    if (!value || value->initializer->shape.rank() != 4) return nullptr;
    return value->initializer.get();
  }

  // The count of channels of an image in blocks, as its convolution says; 0: not known.
  static int64_t channels(const Graph& graph, ValueId id) {
    for (size_t steps = 0; steps <= graph.nodes.size(); ++steps) {
      const Node* node = maker(graph, id);
      if (!node || node->inputs.empty()) return 0;
      if (node->op_type == "Conv") {
        const Initializer* filter = filter_of(graph, *node);
        return filter ? filter->shape[0] : 0;
      }
      if (node->op_type == "ReorderInput") return 0;
      id = node->inputs[0];
    }
    return 0;
  }

  void see_count(int64_t count) { small_ += count % kLarge == kSmall ? 1 : 0; }

  void see_conv(const Graph& graph, const Node& node) {
    const Initializer* filter = filter_of(graph, node);
    if (!filter) return;
    see_count(filter->shape[0]);
    const int64_t inputs = filter->shape[1];
    if (inputs > kLarge) see_count(inputs);
    if (inputs >= kSmall && inputs < kLarge) {
      const bool in_blocks = inputs == kSmall && maker(graph, node.inputs[0]);
      ++(in_blocks ? small_ : large_);
    }
    const Node* from = producer(graph, node.inputs[0]);
    if (from && is_nchwc(*from, "ReorderInput") && inputs >= kLarge)
      see_added(graph, *from, inputs);
    see_weights(*filter);
  }

  // Channels of an input of the graph, which it declares, and the count with those added.
  void see_added(const Graph& graph, const Node& reorder, int64_t whole) {
    if (reorder.inputs.empty() || reorder.inputs[0] == kNone) return;
    const TypeInfo& type = graph.value(reorder.inputs[0]).declared;
    const auto last = reorder.attributes.get_int("channels_last", 0);
    if (!type.has_rank() || type.rank() != 4 || !last.is_ok()) return;
    const Dim dim = (*type.dims)[last.value() != 0 ? 3 : 1];
    if (dim.is_value() && whole - dim.value >= kSmall) ++large_;
  }

  void see_reorder_output(const Graph& graph, const Node& node) {
    const auto left = node.attributes.get_int("channels", 0);
    if (!left.is_ok() || node.inputs.empty()) return;
    const int64_t whole = channels(graph, node.inputs[0]);
    if (whole > 0 && left.value() > 0 && whole - left.value() >= kSmall) ++large_;
  }

  // To [N, C / block, H, W, block], where sums of values of unknown dims are made.
  void see_reshape(const Graph& graph, const Node& node) {
    if (node.inputs.size() != 2 || !maker(graph, node.inputs[0])) return;
    const GraphValue* shape = graph.constant_value(node.inputs[1]);
    if (!shape || !shape->initializer->tensor) return;
    const Tensor& dims = *shape->initializer->tensor;
    if (dims.dtype() != DType::kInt64 || dims.rank() != 1 || dims.count() != 5) return;
    int64_t block = 0;
    std::memcpy(&block, dims.raw() + 4 * sizeof(block), sizeof(block));
    if (block == kSmall) ++small_;
    if (block == kLarge) ++large_;
  }

  void see_weights(const Initializer& filter) {
    if (!filter.tensor || filter.dtype != DType::kFloat || filters_ == kFilters) return;
    const int64_t n = std::min(filter.shape.count(), kWeightsOfFilter);
    if (n <= static_cast<int64_t>(kSame.back())) return;
    std::vector<float> sizes(static_cast<size_t>(n));
    std::memcpy(sizes.data(), filter.tensor->raw(), sizes.size() * sizeof(float));
    double sum = 0;
    for (float& size : sizes) sum += size = std::abs(size);
    const double mean = sum / static_cast<double>(n);
    if (!(mean > 0) || !std::isfinite(mean)) return;
    // A few very large ones must not outweigh all others.
    constexpr float kMost = 4;
    double clipped = 0;
    for (float& size : sizes) {
      clipped += size = std::min(size / static_cast<float>(mean), kMost);
    }
    const auto middle = static_cast<float>(clipped / static_cast<double>(n));
    for (float& size : sizes) size -= middle;
    const double squares = likeness<1>(sizes, {0});
    if (!(squares > 0)) return;
    const double scale = static_cast<double>(n) / squares;
    const double common = likeness(sizes, kOther);
    same_ += scale * (likeness(sizes, kSame) - common);
    same_if_small_ += scale * (likeness(sizes, kSameIfSmall) - common);
    samples_ += static_cast<double>(n);
    ++filters_;
  }

  // Sum of products of those that far apart, over all distances given, for one of them.
  template <size_t kCount>
  static double likeness(const std::vector<float>& sizes,
                         const std::array<size_t, kCount>& distances) {
    double sum = 0;
    for (const size_t apart : distances) {
      for (size_t i = 0; i + apart < sizes.size(); ++i) {
        sum += static_cast<double>(sizes[i]) * static_cast<double>(sizes[i + apart]);
      }
    }
    return sum / static_cast<double>(kCount);
  }

  int small_ = 0;
  int large_ = 0;
  int filters_ = 0;
  double samples_ = 0;
  double same_ = 0;
  double same_if_small_ = 0;
};

}  // namespace

int64_t nchwc_block_size(const Graph& graph) {
  Evidence evidence;
  evidence.see(graph);
  if (const std::optional<int64_t> block = evidence.block()) return *block;
  log(LogLevel::kWarning,
      "nothing in the model tells whether ONNX Runtime saved it in blocks of 8 or of 16 channels: "
      "16 are assumed. If another machine than one with AVX-512 saved it, set "
      "folio.nchwc_block_size to 8");
  return kLarge;
}

}  // namespace folio
