// Value: what flows along an edge: a tensor, a sequence, a map, or an empty optional.
//
// Owns:    shares tensors and containers by count; containers are immutable once published.
// Threads: as Tensor.
#pragma once

#include <utility>
#include <vector>

#include "core/base/tensor.h"

namespace folio {

class Value;

// Element types of containers are kept, so that an empty sequence still has a type.
struct SequenceData : RefCounted {
  DType dtype = DType::kUndefined;  // of tensor elements; kUndefined when elements are maps
  std::vector<Value> elements;
};

// A map is two parallel tensors: keys (int64, string, ...) and values, both rank 1.
struct MapData : RefCounted {
  Tensor keys;
  Tensor values;
};

class Value {
 public:
  enum class Kind : uint8_t {
    kAbsent,
    kTensor,
    kSequence,
    kMap
  };  // kAbsent: not given or empty optional

  Value() = default;
  Value(Tensor tensor) : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}  // NOLINT
  explicit Value(Ref<const SequenceData> sequence)
      : kind_(Kind::kSequence), sequence_(std::move(sequence)) {}
  explicit Value(Ref<const MapData> map) : kind_(Kind::kMap), map_(std::move(map)) {}

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kAbsent; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  const Tensor& tensor() const { return tensor_; }
  Tensor& tensor() { return tensor_; }
  const SequenceData& sequence() const { return *sequence_; }
  const MapData& map() const { return *map_; }

 private:
  Kind kind_ = Kind::kAbsent;
  Tensor tensor_;
  Ref<const SequenceData> sequence_;
  Ref<const MapData> map_;
};

}  // namespace folio
