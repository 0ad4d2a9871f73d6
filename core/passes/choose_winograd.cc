// 3x3 convolutions with stride 1 and channels last compute by Winograd's algorithm where that is
// faster: those get the attribute `winograd`.
//
//   folio.nhwc.Conv(x, w, ...)   ->   the same with winograd = 1
//
// By what is known of shapes when the model is loaded, and the same on every machine; what only a
// run knows is taken for what it would be of an image of usual size. The packed weights take four
// times the bytes, so the figures of the table say where memory would limit it, and all of a model
// together may not make its packs much larger. Weights that the model has packed
// in another layout stay as they are; computed ones take nothing, each run makes some columns of
// them at a time. Private: the result is never saved.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_unpack.h"
#include "core/ops/op_winograd.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

// What all packed weights may take more than they would otherwise: half of the model's constants,
// or this if that is less.
constexpr uint64_t kFreeBytes = uint64_t{16} << 20;

// Of an image, a dim that only a run knows; of an output, one that does not follow from such dims.
constexpr int64_t kUsualSide = 224;
constexpr int64_t kUsualOutput = 28;

struct Candidate {
  Node* node = nullptr;
  int64_t tiles = 0;  // of an image
  uint64_t more = 0;  // bytes of packed weights
};

class ChooseWinograd {
 public:
  ChooseWinograd(const DimTable& dims, int64_t fewest_tiles)
      : fewest_tiles_(fewest_tiles), usual_(dims.size(), kUsualSide) {
    dims.evaluate(&usual_);
  }

  void add(Graph* graph) {
    for (const GraphValue& value : graph->values) {
      if (value.initializer &&
          !checked_add(constants_, plain_bytes(*value.initializer), &constants_)) {
        constants_ = UINT64_MAX;
      }
    }
    for (Node& node : graph->nodes) {
      for (auto& subgraph : node.subgraphs) add(subgraph.get());
      if (const auto candidate = candidate_of(*graph, &node)) all_.push_back(*candidate);
    }
  }

  // Large images first: they gain most for each byte.
  void choose() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.tiles > b.tiles; });
    uint64_t left = std::max(kFreeBytes, constants_ / 2);
    for (const Candidate& each : all_) {
      if (each.more > left) continue;
      left -= each.more;
      each.node->attributes.set(int_attribute("winograd", 1));
    }
  }

 private:
  static bool packs_anew(const Initializer& w) {
    const Ref<Initializer>* half = half_behind(w);
    return w.dtype == DType::kFloat && !packed_blob_of(half ? **half : w);
  }

  int64_t usual_size(Dim dim) const {
    if (dim.is_value()) return dim.value;
    const int64_t size = dim.is_symbol() ? usual_[static_cast<size_t>(dim.symbol)] : -1;
    return size > 0 ? size : kUsualOutput;
  }

  // Of an image; 0: most of what they compute is outside of it.
  static int64_t tiles_of(const int64_t (&outputs)[2], const AxisNumbers& dilations) {
    constexpr double kMostComputed = 2.5;  // for each output: a quarter of the products of each
    constexpr int64_t kLargest = int64_t{1} << 28;
    if (std::max(outputs[0], outputs[1]) > kLargest) return 0;
    const WinogradAxis lines(outputs[0], dilations.empty() ? 1 : dilations[0]);
    const WinogradAxis across(outputs[1], dilations.empty() ? 1 : dilations[1]);
    constexpr int64_t kOutputs = WinogradAxis::kSide * WinogradAxis::kSide;
    const int64_t tiles = lines.count * across.count;
    const auto wanted = static_cast<double>(outputs[0] * outputs[1]);
    return static_cast<double>(tiles * kOutputs) <= kMostComputed * wanted ? tiles : 0;
  }

  std::optional<Candidate> candidate_of(const Graph& graph, Node* node) const {
    if (node->domain != kNhwcDomain || node->op_type != "Conv") return std::nullopt;
    const GraphValue* value = graph.constant_value(node->inputs[1]);
    const std::optional<Shape> shape = graph.value(node->inputs[1]).type.static_shape();
    const auto attrs = parse_conv(node->attributes);
    if (!shape || !attrs.is_ok() || !suits_winograd(shape->dims(), attrs.value())) {
      return std::nullopt;
    }
    if (value && !packs_anew(*value->initializer)) return std::nullopt;
    const Span<const int64_t> dims = shape->dims();
    const auto& y = graph.value(node->outputs[0]).type.dims;
    if (!y || y->size() != 4) return std::nullopt;
    Candidate candidate;
    candidate.node = node;
    const int64_t outputs[] = {usual_size((*y)[1]), usual_size((*y)[2])};
    candidate.tiles = tiles_of(outputs, attrs.value().window.dilations);
    uint64_t direct = 0;
    uint64_t each = 0;
    if (candidate.tiles < fewest_tiles_ || !f32p16_bytes(dims[1], dims[0], &each) ||
        !checked_mul(each, uint64_t{9}, &direct) ||
        !checked_mul(each, uint64_t{FOLIO_WINOGRAD_PLANES}, &candidate.more)) {
      return std::nullopt;
    }
    candidate.more = value ? candidate.more - direct : 0;
    return candidate;
  }

  int64_t fewest_tiles_;
  std::vector<int64_t> usual_;  // by symbol
  std::vector<Candidate> all_;
  uint64_t constants_ = 0;  // bytes
};

}  // namespace

void choose_winograd(Model* model, int64_t fewest_tiles) {
  ChooseWinograd pass(model->dims, fewest_tiles);
  pass.add(&model->graph);
  pass.choose();
}

}  // namespace folio
