// A convolution over the phases of an image, cut by Slice and joined by Concat ("Focus", which
// YOLOv5 and YOLOX begin with), becomes one over the image.
//
//   [N, C, H, W] -> Slice from (i, j) by steps (s, t), for all i < s, j < t -> Concat -> Conv
//   -> Conv of filters that have s x t times the taps, strides and pads
//
// The same products: tap (a, b) of phase (i, j) is tap (a s + i, b t + j) of the image. One Slice
// takes both axes or one after the other does; phases come in any order. H and W are known, and the
// steps divide them: of any other image Concat would refuse the phases, which nothing would then
// do. Weights are few and rearranged here. Floats only; where slices are read elsewhere
// too, they are needed anyway and nothing is folded, nor where Winograd's algorithm saves more.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/op_winograd.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int kSliceInputsVersion = 10;  // before that there are no steps
constexpr size_t kRank = 4;
constexpr size_t kFirstSpatial = 2;
constexpr int64_t kMostStep = 4;
constexpr int64_t kMostWeights = 1 << 16;
constexpr int64_t kFewestFilters = 16;  // fewer are sums of neighbours, of which phases have more
constexpr int64_t kMostAttribute = 1 << 20;  // of strides and pads, which are multiplied

using Pair = std::array<int64_t, 2>;  // of H and W

// What Slices take of one image.
struct Phase {
  ValueId image = kNone;
  Pair start{0, 0};
  Pair step{1, 1};
};

// The phases that Concat joins, in its order.
struct Focus {
  ValueId image = kNone;
  Pair step{1, 1};
  std::vector<Pair> starts;
};

struct ConvNumbers {
  std::vector<int64_t> strides;
  std::vector<int64_t> pads;
};

class FocusFolder {
 public:
  explicit FocusFolder(Pattern& pattern) : p_(pattern) {}

  void fold() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (!p_.is(id, "Conv")) continue;
      const auto numbers = conv_numbers(id);
      const auto focus = numbers ? focus_of(p_.input(id, 0)) : std::nullopt;
      if (focus) apply(id, *focus, *numbers);
    }
  }

 private:
  // ---------------------------------------------------------------- the convolution

  // Of one with two spatial dims whose filters can be rearranged.
  std::optional<ConvNumbers> conv_numbers(NodeId id) const {
    const Tensor* w = p_.bytes(p_.input(id, 1));
    if (!w || w->dtype() != DType::kFloat || static_cast<size_t>(w->rank()) != kRank ||
        w->count() == 0 || w->count() > kMostWeights || w->dim(0) < kFewestFilters) {
      return std::nullopt;
    }
    const Attributes& attrs = p_.node(id).attributes;
    const auto group = attrs.get_int("group", 1);
    const auto automatic = attrs.get_string("auto_pad", "NOTSET");
    if (!group.is_ok() || group.value() != 1 || !automatic.is_ok() ||
        automatic.value() != "NOTSET") {
      return std::nullopt;
    }
    const auto kernel = ints_or(attrs, "kernel_shape", {w->dim(2), w->dim(3)});
    const auto dilations = ints_or(attrs, "dilations", {1, 1});
    const auto strides = ints_or(attrs, "strides", {1, 1});
    const auto pads = ints_or(attrs, "pads", {0, 0, 0, 0});
    if (!kernel || !dilations || !strides || !pads ||
        *kernel != std::vector<int64_t>{w->dim(2), w->dim(3)} ||
        *dilations != std::vector<int64_t>{1, 1} || !all_within(*strides, 1) ||
        !all_within(*pads, 0)) {
      return std::nullopt;
    }
    // A quarter of the products is worth more than the copies, of channels that fill vectors.
    constexpr int64_t kManyPhases = 16;
    const auto parsed = parse_conv(attrs);
    if (!parsed.is_ok() ||
        (w->dim(1) >= kManyPhases && suits_winograd(w->shape().dims(), parsed.value()))) {
      return std::nullopt;
    }
    return ConvNumbers{*strides, *pads};
  }

  static bool all_within(const std::vector<int64_t>& numbers, int64_t least) {
    return std::all_of(numbers.begin(), numbers.end(), [least](int64_t number) {
      return number >= least && number <= kMostAttribute;
    });
  }

  static std::optional<std::vector<int64_t>> ints_or(const Attributes& attrs, const char* name,
                                                     std::vector<int64_t> otherwise) {
    auto given = attrs.get_ints(name);
    if (!given.is_ok()) return std::nullopt;
    if (given.value().empty()) return otherwise;
    if (given.value().size() != otherwise.size()) return std::nullopt;
    return given.value();
  }

  // ---------------------------------------------------------------- the phases

  std::optional<Focus> focus_of(ValueId x) const {
    const NodeId concat = p_.made_by(x, "Concat");
    if (concat == kNone || !p_.is_read_once(x)) return std::nullopt;
    const auto axis = p_.node(concat).attributes.get_int("axis", 1);
    if (!axis.is_ok() || (axis.value() != 1 && axis.value() != 1 - static_cast<int64_t>(kRank))) {
      return std::nullopt;
    }
    const std::vector<ValueId>& parts = p_.node(concat).inputs;
    if (parts.size() < 2 || parts.size() > kMostStep * kMostStep) return std::nullopt;
    std::unordered_set<NodeId> slices;
    Focus focus;
    for (const ValueId part : parts) {
      const auto phase = phase_of(part, &slices);
      if (!phase || !p_.is_read_once(part)) return std::nullopt;
      if (focus.starts.empty()) {
        focus.image = phase->image;
        focus.step = phase->step;
      } else if (phase->image != focus.image || phase->step != focus.step) {
        return std::nullopt;
      }
      focus.starts.push_back(phase->start);
    }
    const bool holds = is_each_once(focus) && are_read_by(slices, focus.image);
    return holds ? std::optional(std::move(focus)) : std::nullopt;
  }

  static bool is_each_once(const Focus& focus) {
    std::vector<Pair> starts = focus.starts;
    std::sort(starts.begin(), starts.end());
    // That many different ones are all of them: each start is below its step.
    return std::adjacent_find(starts.begin(), starts.end()) == starts.end() &&
           static_cast<int64_t>(starts.size()) == focus.step[0] * focus.step[1];
  }

  // What Slices take of each other nobody else reads: they go with the Concat.
  bool are_read_by(const std::unordered_set<NodeId>& slices, ValueId image) const {
    std::unordered_map<ValueId, int> reads;
    for (const NodeId slice : slices) ++reads[p_.input(slice, 0)];
    return std::all_of(reads.begin(), reads.end(), [&](const auto& read) {
      return read.first == image || p_.reads(read.first) == read.second;
    });
  }

  // Up through Slices along H and W, each of which one of them cuts.
  std::optional<Phase> phase_of(ValueId value, std::unordered_set<NodeId>* slices) const {
    Phase phase;
    phase.image = value;
    NodeId slice = p_.made_by(value, "Slice");
    while (slice != kNone && add_slice(slice, &phase)) {
      slices->insert(slice);
      phase.image = p_.input(slice, 0);
      slice = p_.made_by(phase.image, "Slice");
    }
    const Dims* dims = p_.dims(phase.image);
    if (phase.image == value || !p_.is_float(phase.image) || !dims || dims->size() != kRank) {
      return std::nullopt;
    }
    return phase;
  }

  // Leaves the phase as it is where the Slice takes anything else.
  bool add_slice(NodeId slice, Phase* phase) const {
    const Dims* dims = p_.dims(p_.input(slice, 0));
    const auto starts = p_.ints(p_.input(slice, 1));
    const auto ends = p_.ints(p_.input(slice, 2));
    const auto axes = p_.input(slice, 3) == kNone ? std::optional(std::vector<int64_t>{0, 1, 2, 3})
                                                  : p_.ints(p_.input(slice, 3));
    const auto steps = p_.ints(p_.input(slice, 4));
    if (p_.node(slice).version < kSliceInputsVersion || !dims || dims->size() != kRank || !starts ||
        !ends || !axes || !steps || ends->size() != starts->size() ||
        axes->size() != starts->size() || steps->size() != starts->size()) {
      return false;
    }
    Phase cut = *phase;
    for (size_t i = 0; i < axes->size(); ++i) {
      const int64_t given = (*axes)[i];
      const auto axis =
          static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(kRank) : given);
      if (axis >= kRank || !takes_phase((*dims)[axis], (*starts)[i], (*ends)[i], (*steps)[i])) {
        return false;
      }
      if ((*steps)[i] == 1) continue;
      // Along batch and channels there are no phases, and one Slice cuts each axis.
      if (axis < kFirstSpatial || cut.step[axis - kFirstSpatial] != 1) return false;
      cut.start[axis - kFirstSpatial] = (*starts)[i];
      cut.step[axis - kFirstSpatial] = (*steps)[i];
    }
    *phase = cut;
    return true;
  }

  // Each step-th element of all, from one of the first on.
  static bool takes_phase(Dim dim, int64_t start, int64_t end, int64_t step) {
    if (step < 1 || step > kMostStep || start < 0 || start >= step) return false;
    if (!dim.is_value()) return step == 1 && end >= std::numeric_limits<int32_t>::max();
    return dim.value % step == 0 && end >= dim.value;
  }

  // ---------------------------------------------------------------- one for both

  void apply(NodeId id, const Focus& focus, const ConvNumbers& numbers) {
    const Node& old = p_.node(id);
    const Tensor& w = *p_.bytes(old.inputs[1]);
    const int64_t count = focus.step[0] * focus.step[1];
    if (w.dim(1) % count != 0) return;
    auto made = rearranged(w, focus);
    if (!made.is_ok()) return;
    Node conv = make_node(old.name, old.domain, old.op_type, old.version, old.inputs);
    conv.attributes = old.attributes;
    std::vector<int64_t> kernel;
    std::vector<int64_t> strides;
    std::vector<int64_t> pads = numbers.pads;
    for (size_t d = 0; d < 2; ++d) {
      kernel.push_back(w.dim(static_cast<int>(kFirstSpatial + d)) * focus.step[d]);
      strides.push_back(numbers.strides[d] * focus.step[d]);
      pads[d] *= focus.step[d];
      pads[d + 2] *= focus.step[d];
    }
    conv.attributes.set(ints_attribute("kernel_shape", std::move(kernel)));
    conv.attributes.set(ints_attribute("strides", std::move(strides)));
    conv.attributes.set(ints_attribute("pads", std::move(pads)));
    conv.inputs[0] = focus.image;
    const std::string& name = p_.graph().value(old.outputs[0]).name;
    conv.inputs[1] = p_.add_constant(name + "/weights", std::move(made).take());
    p_.replace(id, std::move(conv));
  }

  // [M, phases x C, A, B] as [M, C, A x steps of H, B x steps of W].
  static Result<Tensor> rearranged(const Tensor& w, const Focus& focus) {
    const int64_t count = focus.step[0] * focus.step[1];
    const int64_t channels = w.dim(1) / count;
    const int64_t rows = w.dim(2) * focus.step[0];
    const int64_t row = w.dim(3) * focus.step[1];
    FOLIO_TRY(Tensor out, allocate_tensor(DType::kFloat, Shape{w.dim(0), channels, rows, row}));
    const uint8_t* from = w.raw();  // of any alignment
    for (int64_t m = 0; m < w.dim(0); ++m) {
      for (const Pair& start : focus.starts) {
        for (int64_t c = 0; c < channels; ++c) {
          float* plane = out.data_mut<float>() + (m * channels + c) * rows * row;
          for (int64_t a = 0; a < w.dim(2); ++a) {
            float* to = plane + (a * focus.step[0] + start[0]) * row + start[1];
            for (int64_t b = 0; b < w.dim(3); ++b) {
              std::memcpy(to + b * focus.step[1], from, sizeof(float));
              from += sizeof(float);
            }
          }
        }
      }
    }
    return out;
  }

  Pattern& p_;
};

}  // namespace

void fold_focus(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { FocusFolder(pattern).fold(); }, "Slice");
}

}  // namespace folio
