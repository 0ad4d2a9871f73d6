#include "core/passes/channel_affine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace folio {

bool ChannelAffine::is_finite() const {
  const auto finite = [](double x) { return std::isfinite(static_cast<float>(x)); };
  return std::all_of(scale.begin(), scale.end(), finite) &&
         std::all_of(shift.begin(), shift.end(), finite);
}

bool ChannelAffine::scales() const {
  return std::any_of(scale.begin(), scale.end(), [](double x) { return x != 1.0; });
}

std::optional<std::vector<double>> channel_numbers(const Pattern& pattern, ValueId value,
                                                   int64_t count) {
  const Tensor* tensor = pattern.bytes(value);
  if (!tensor || tensor->dtype() != DType::kFloat) return std::nullopt;
  if (tensor->count() != count && tensor->count() != 1) return std::nullopt;
  std::vector<float> given(static_cast<size_t>(tensor->count()));
  if (!given.empty()) std::memcpy(given.data(), tensor->raw(), given.size() * sizeof(float));
  std::vector<double> out(given.begin(), given.end());
  out.resize(static_cast<size_t>(count), out.empty() ? 0.0 : out[0]);
  return out;
}

std::optional<ChannelAffine> affine_of_normalization(const Pattern& pattern, const Node& node,
                                                     int64_t channels) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNone) return std::nullopt;
  }
  const auto training = node.attributes.get_int("training_mode", 0);
  const auto spatial = node.attributes.get_int("spatial", 1);
  const auto epsilon = node.attributes.get_float("epsilon", 1e-5F);
  if (!training.is_ok() || training.value() != 0 || !spatial.is_ok() || spatial.value() == 0 ||
      !epsilon.is_ok() || node.inputs.size() != 5) {
    return std::nullopt;
  }
  std::optional<std::vector<double>> parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    const Initializer* given = pattern.constant(node.inputs[i + 1]);
    if (!given || given->shape.count() != channels) return std::nullopt;
    parameters[i] = channel_numbers(pattern, node.inputs[i + 1], channels);
    if (!parameters[i]) return std::nullopt;
  }
  const auto& [scale, bias, mean, variance] = parameters;
  ChannelAffine out;
  for (size_t c = 0; c < scale->size(); ++c) {
    const double by =
        (*scale)[c] / std::sqrt((*variance)[c] + static_cast<double>(epsilon.value()));
    out.scale.push_back(by);
    out.shift.push_back((*bias)[c] - (*mean)[c] * by);
  }
  return out;
}

ValueId add_floats(Pattern* pattern, std::string name, const Shape& shape,
                   const std::vector<double>& values) {
  auto made = allocate_tensor(DType::kFloat, shape);
  if (!made.is_ok()) return kNone;
  Tensor tensor = std::move(made).take();
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.data_mut<float>()[i] = static_cast<float>(values[i]);
  }
  return pattern->add_constant(std::move(name), std::move(tensor));
}

}  // namespace folio
