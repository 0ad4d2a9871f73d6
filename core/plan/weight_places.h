// WeightPlaces: where the weights of a model stand in its files, for the model that is opened
// in its place (ModelFile::reopen).
//
// Flow:    ModelFile lists its own when it is opened. A load of the newer model asks for the older
//          weight of the same name: where both have the same bytes, what was packed for the older
//          one serves the newer one (core/plan/weight_packer.h).
// Owns:    the older model's files by count, until that model ends: a file that was replaced is not
//          kept on the disk by who replaced it.
// Threads: any.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/model/graph.h"

namespace folio {

class WeightPlaces : public RefCounted {
 public:
  struct Place {
    DType dtype = DType::kUndefined;
    Shape shape;
    Ref<ByteSource> source;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  // The weights of a graph and its subgraphs that stand in files.
  void add(const Graph& graph);

  // The weight with the name, type and shape of `constant`; none after `close`.
  std::optional<Place> find(const Initializer& constant) const;

  // The model has gone.
  void close();

 private:
  mutable std::mutex mutex_;
  std::unordered_multimap<std::string, Place> places_;
};

// Whether the bytes of `constant`, a weight in a file, are those at `place`, and nobody has written
// to either file. Reads both to the first difference; the pages are given back.
bool has_same_bytes(const Initializer& constant, const WeightPlaces::Place& place);

}  // namespace folio
