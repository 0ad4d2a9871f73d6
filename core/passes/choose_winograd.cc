// Convolutions with stride 1 and channels last compute by Winograd's algorithm where that is
// faster: they get the attribute `winograd`.
//
//   folio.nhwc.Conv(x, w, ...)                        ->   the same with winograd = 2 or 1
//   QLinearConv(x, ..., w, ..., channels_last = 1)    ->   the same with winograd = 2
//
// and so do QLinearConvAdd, ConvInteger and ConvIntegerToFloat, of constant weights whose zero
// points are those of their packed form.
//
// By what is known of shapes when the model is loaded, and the same on all machines of a level;
// what only a run knows is taken for what it would be of an image of usual size. Transformed
// weights (2) take four times the bytes, of bytes eight times, so the figures of the table say
// where memory would limit it, and all of a model together may not make its packs much larger.
// Beyond that, and of floats that are no constants or that the model has packed in another layout,
// each run transforms them (1), where that repays. Private: the result is never saved.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_conv_byte_weights.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_unpack.h"
#include "core/ops/op_winograd.h"
#include "core/ops/op_winograd_bytes.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

// What all packed weights may take more than they would otherwise: half of the model's constants,
// or this if that is less.
constexpr uint64_t kFreeBytes = uint64_t{16} << 20;

// Of an image, a dim that only a run knows; of an output, one that does not follow from such dims,
// of an image and of a line.
constexpr int64_t kUsualSide = 224;
constexpr int64_t kUsualOutput = 28;
constexpr int64_t kUsualLine = 224;

struct Candidate {
  Node* node = nullptr;
  int64_t tiles = 0;           // of an image
  uint64_t more = 0;           // bytes of packed weights
  bool can_transform = false;  // in each run
};

// A number of weights that each run transforms, as products (2026-12, Zen 5: 5 to 7).
constexpr double kOfWeights = 6;

class ChooseWinograd {
 public:
  ChooseWinograd(const DimTable& dims, const WinogradChoice& choice)
      : fewest_tiles_(choice.fewest_tiles), bytes_(choice.bytes), usual_(dims.size(), kUsualSide) {
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
      if (const auto candidate = of_bytes(*graph, &node)) all_.push_back(*candidate);
    }
  }

  // Large images first: they gain most for each byte. Beyond the budget each run transforms the
  // weights, where that repays.
  void choose() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.tiles > b.tiles; });
    uint64_t left = std::max(kFreeBytes, constants_ / 2);
    for (const Candidate& each : all_) {
      const bool fits = each.more <= left;
      if (fits) left -= each.more;
      if (!fits && !each.can_transform) continue;
      each.node->attributes.set(int_attribute("winograd", fits ? kWinogradPacked : kWinograd));
    }
  }

 private:
  static bool packs_anew(const Initializer& w) {
    const Ref<Initializer>* half = half_behind(w);
    return w.dtype == DType::kFloat && !packed_blob_of(half ? **half : w);
  }

  int64_t usual_size(Dim dim, int64_t otherwise) const {
    if (dim.is_value()) return dim.value;
    const int64_t size = dim.is_symbol() ? usual_[static_cast<size_t>(dim.symbol)] : -1;
    return size > 0 ? size : otherwise;
  }

  // Of an image, known or usual; no tiles: it is too large for anything.
  struct Sizes {
    double tiles = 1;
    double outputs = 1;
  };
  Sizes sizes_of(const WinogradForm& form, const Dims& y, const AxisNumbers& dilations) const {
    constexpr int64_t kLargest = int64_t{1} << 28;
    Sizes sizes;
    for (int axis = 5 - static_cast<int>(y.size()); axis <= 2; ++axis) {
      const bool is_tiled = form.has_tiles(axis);
      const auto from_end = static_cast<size_t>(3 - axis);
      const int64_t size = usual_size(y[y.size() - 1 - from_end],
                                      form.is_line && is_tiled ? kUsualLine : kUsualOutput);
      const int64_t dilation =
          dilations.size() < from_end ? 1 : dilations[dilations.size() - from_end];
      if (size > kLargest) return {0, 0};
      sizes.tiles *= static_cast<double>(WinogradAxis(size, is_tiled ? dilation : size).count);
      sizes.outputs *= static_cast<double>(size);
    }
    return sizes;
  }

  // Whether they are many enough, and take little enough of the time that they would save.
  // `of_weight`: what it takes to make a number of the transformed weights, as products.
  bool suits(const WinogradForm& form, int64_t filters, const Sizes& sizes,
             double of_weight) const {
    constexpr double kMostProducts = 0.7;   // of those of direct convolution
    constexpr int64_t kFewestOfLines = 14;  // rows of the widest kernel's tile
    const double tiles = sizes.tiles;
    const double direct = sizes.outputs * static_cast<double>(form.taps);
    const auto numbers = static_cast<double>(form.planes * form.pieces);
    const double products = (tiles + of_weight) * numbers;
    // All but whole squares save less: nothing where parts of floats are multiplied, which wants
    // more tiles.
    const bool is_whole = !form.is_line && form.taps == form.piece_taps;
    if (!is_whole && fewest_tiles_ > kWinogradTiles) return false;
    const int64_t fewest = form.is_line ? kFewestOfLines : fewest_tiles_;
    return tiles >= static_cast<double>(fewest) && products <= kMostProducts * direct &&
           (form.is_line || transforms_pay(form, filters, tiles, products, direct));
  }

  // Whether those of squares leave enough of what is saved.
  static bool transforms_pay(const WinogradForm& form, int64_t filters, double tiles,
                             double products, double direct) {
    constexpr double kMostTime = 0.9;
    // A channel of a tile's pixels or outputs, as products (2026-11, Zen 5: 200 to 450).
    constexpr double kTransform = 350;
    const auto filled = [](int64_t n) { return static_cast<double>(panel_columns(n)); };
    const int64_t channels = form.depth / form.pieces;
    const double transforms =
        tiles * kTransform *
        (filled(channels) * static_cast<double>(form.pieces) + filled(filters));
    const double each = static_cast<double>(channels) * filled(filters);
    return products * each + transforms <= kMostTime * direct * each;
  }

  std::optional<Candidate> candidate_of(const Graph& graph, Node* node) const {
    if (node->domain != kNhwcDomain || node->op_type != "Conv" || fewest_tiles_ == 0) {
      return std::nullopt;
    }
    const GraphValue* value = graph.constant_value(node->inputs[1]);
    const std::optional<Shape> shape = graph.value(node->inputs[1]).type.static_shape();
    const auto attrs = parse_conv(node->attributes);
    if (!shape || !attrs.is_ok() || !suits_winograd(shape->dims(), attrs.value())) {
      return std::nullopt;
    }
    if (node->attributes.has(kPlanesAttribute)) return std::nullopt;  // its pixels are not together
    const Span<const int64_t> dims = shape->dims();
    const WinogradForm form(dims);
    const auto& y = graph.value(node->outputs[0]).type.dims;
    if (!y || y->size() != dims.size()) return std::nullopt;
    Candidate candidate;
    candidate.node = node;
    const Sizes sizes = sizes_of(form, *y, attrs.value().window.dilations);
    candidate.tiles = static_cast<int64_t>(sizes.tiles);
    uint64_t direct = 0;
    uint64_t each = 0;
    if (sizes.tiles == 0 || !suits(form, dims[0], sizes, 0) ||
        !f32p16_bytes(dims[1], dims[0], &each) ||
        !checked_mul(each, static_cast<uint64_t>(form.taps), &direct) ||
        !checked_mul(each, static_cast<uint64_t>(form.planes * form.pieces), &candidate.more)) {
      return std::nullopt;
    }
    candidate.more -= direct;
    candidate.can_transform = suits(form, dims[0], sizes, kOfWeights);
    // What is no constant is not packed, what is packed in another layout stays so.
    if (!value || !packs_anew(*value->initializer)) candidate.more = UINT64_MAX;
    return candidate;
  }

  // Whether zero points of the weights, which may be left out, are 0 as they are packed.
  static bool has_no_zeros(const Graph& graph, const Node& node, size_t input, DType dtype) {
    if (node.inputs.size() <= input || node.inputs[input] == kNone) return dtype == DType::kInt8;
    const GraphValue* zeros = graph.constant_value(node.inputs[input]);
    if (!zeros || !zeros->initializer->tensor) return false;
    const Tensor& codes = *zeros->initializer->tensor;
    const uint8_t none = packed_zero_point(dtype);
    return is_byte(codes.dtype()) && std::all_of(codes.raw(), codes.raw() + codes.count(),
                                                 [none](uint8_t code) { return code == none; });
  }

  std::optional<Candidate> of_bytes(const Graph& graph, Node* node) const {
    const bool is_linear = node->op_type == "QLinearConv" || node->op_type == "QLinearConvAdd";
    const bool is_integer = node->op_type == "ConvInteger" || node->op_type == "ConvIntegerToFloat";
    if (!bytes_ || (!is_linear && !is_integer)) return std::nullopt;
    const auto last = node->attributes.get_int("channels_last", 0);
    const size_t input = is_linear ? 3 : 1;
    const GraphValue* value = graph.constant_value(node->inputs[input]);
    if (!last.is_ok() || last.value() == 0 || !value || packed_blob_of(*value->initializer)) {
      return std::nullopt;
    }
    const Initializer& w = *value->initializer;
    const auto attrs = parse_conv(node->attributes);
    const auto& y = graph.value(node->outputs[0]).type.dims;
    if (!attrs.is_ok() || !fits_winograd_bytes(w.shape.dims(), attrs.value()) || !y ||
        y->size() != 4 || !is_byte(w.dtype) || !has_no_zeros(graph, *node, input + 2, w.dtype)) {
      return std::nullopt;
    }
    Candidate candidate;
    candidate.node = node;
    const Sizes sizes = sizes_of(WinogradForm(w.shape.dims()), *y, attrs.value().window.dilations);
    candidate.tiles = static_cast<int64_t>(sizes.tiles);
    uint64_t direct = 0;
    if (sizes.tiles == 0 ||
        !winograd_bytes_pays(w.shape[1], w.shape[0], sizes.tiles, sizes.outputs) ||
        !s8p16k4_bytes(w.shape[1] * 9, w.shape[0], &direct) ||
        !s16wino43_bytes(w.shape[1], w.shape[0], &candidate.more)) {
      return std::nullopt;
    }
    candidate.more -= direct;
    return candidate;
  }

  int64_t fewest_tiles_;
  bool bytes_;
  std::vector<int64_t> usual_;  // by symbol
  std::vector<Candidate> all_;
  uint64_t constants_ = 0;  // bytes
};

}  // namespace

void choose_winograd(Model* model, const WinogradChoice& choice) {
  ChooseWinograd pass(model->dims, choice);
  pass.add(&model->graph);
  pass.choose();
}

}  // namespace folio
