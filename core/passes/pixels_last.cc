#include "core/passes/pixels_last.h"

#include <algorithm>

namespace folio {
namespace {

// An empty batch leaves open what follows from the other dims. Who asks for that is refused one.
bool refuses_empty(const Pattern& pattern, const Node& reshape) {
  if (reshape.inputs.size() < 2) return false;
  const auto target = pattern.ints(reshape.inputs[1]);
  return target && std::find(target->begin(), target->end(), -1) != target->end();
}

// What it is to be, with channels last.
std::optional<std::vector<int64_t>> target_last(const Pattern& pattern, const Node& reshape) {
  if (reshape.op_type != "Reshape" || !reshape.domain.empty() || reshape.outputs.empty()) {
    return std::nullopt;
  }
  const Dims* from = pattern.dims(reshape.inputs[0]);
  const Dims* to = pattern.dims(reshape.outputs[0]);
  if (!from || !to || from->size() < 3 || to->size() < 3 || to->size() > 5) return std::nullopt;
  // A Reshape leaves the count of elements: so what comes behind channels are the pixels.
  const Dim channels = (*to)[1];
  if (!pattern.same_dims(Dims{(*from)[0], (*from)[1]}, Dims{(*to)[0], channels}) ||
      !channels.is_value() || channels.value == 0) {
    return std::nullopt;
  }
  std::vector<int64_t> target{0};  // the batch as it is
  int unknown = 0;
  for (size_t i = 2; i < to->size(); ++i) {
    const Dim dim = (*to)[i];
    if (dim.is_value() && dim.value == 0) return std::nullopt;  // would be a copy
    unknown += dim.is_value() ? 0 : 1;
    target.push_back(dim.is_value() ? dim.value : -1);
  }
  const bool is_open = unknown > 0 && !(*to)[0].is_value() && !refuses_empty(pattern, reshape);
  if (unknown > 1 || is_open) return std::nullopt;
  target.push_back(channels.value);
  return target;
}

}  // namespace

bool moves_pixels(const Pattern& pattern, const Node& node) {
  return target_last(pattern, node).has_value();
}

ValueId pixels_target_last(Pattern* pattern, const Node& reshape) {
  const auto target = target_last(*pattern, reshape);
  return target ? pattern->add_ints(reshape.name + "/pixels/nhwc", *target) : kNone;
}

}  // namespace folio
