#include "core/plan/weight_places.h"

#include <cstring>

namespace folio {

void WeightPlaces::add(const Graph& graph) {
  for (const GraphValue& value : graph.values) {
    const Initializer* constant = value.initializer.get();
    if (!constant || !constant->tensor || !constant->source) continue;
    if (constant->source->serial() == 0) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    places_.emplace(constant->name, Place{constant->dtype, constant->shape, constant->source,
                                          constant->offset, constant->tensor->bytes()});
  }
  for (const Node& node : graph.nodes) {
    for (const auto& subgraph : node.subgraphs) add(*subgraph);
  }
}

std::optional<WeightPlaces::Place> WeightPlaces::find(const Initializer& constant) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = places_.equal_range(constant.name);
  for (auto it = begin; it != end; ++it) {
    const Place& place = it->second;
    if (place.dtype == constant.dtype && place.shape == constant.shape) return place;
  }
  return std::nullopt;
}

void WeightPlaces::close() {
  std::unordered_multimap<std::string, Place> gone;  // files are closed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  gone.swap(places_);
}

bool has_same_bytes(const Initializer& constant, const WeightPlaces::Place& place) {
  if (!constant.tensor || constant.tensor->bytes() != place.bytes) return false;
  const uint8_t* const older = place.source->bytes().data() + place.offset;
  const bool is_same = std::memcmp(constant.tensor->raw(), older, place.bytes) == 0;
  constant.source->drop_pages(constant.offset, place.bytes);
  place.source->drop_pages(place.offset, place.bytes);
  // What was packed from the older file was packed from what it had when it was opened.
  return is_same && place.source->check_unchanged().is_ok() && !place.source->is_damaged();
}

}  // namespace folio
