#include "core/passes/constants_last.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/passes/axes_last.h"

namespace folio {
namespace {

constexpr int kTransposeVersion = 1;

// A constant in another order is a copy of each process, beside the file's bytes that all of them
// share: small enough to be nothing beside a model's weights (what BlazeFace pads its images with
// has less than 128 KiB each), large enough for a map of positions.
constexpr uint64_t kMostTurnedBytes = uint64_t{1} << 20;

// One channel or one pixel: nothing changes its place.
bool keeps_order(const std::vector<int64_t>& dims) {
  return dims[1] == 1 ||
         std::all_of(dims.begin() + 2, dims.end(), [](int64_t dim) { return dim == 1; });
}

}  // namespace

ValueId constant_last(Pattern* pattern, ValueId id, size_t rank) {
  const Initializer* constant = pattern->constant(id);
  if (!constant) return kNone;
  const Span<const int64_t> shape = constant->shape.dims();
  uint64_t count = 0;
  if (shape.size() > rank || !checked_count(shape, &count)) return kNone;
  if (count == 1) return id;
  std::vector<int64_t> dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  const std::string name = constant->name + "/nhwc";
  const Shape last(to_last(dims));
  if (keeps_order(dims)) {
    if (!constant->tensor) return kNone;
    return pattern->add_constant(name, constant->tensor->reshaped(last));
  }
  const uint64_t bytes = plain_bytes(*constant);
  if (bytes == 0 || bytes > kMostTurnedBytes) return kNone;
  const DType dtype = constant->dtype;
  if (shape.size() < rank) {
    if (!constant->tensor) return kNone;
    id = pattern->add_constant(constant->name, constant->tensor->reshaped(Shape(dims)));
  }
  Attributes attributes;
  attributes.set(ints_attribute("perm", to_last_order(rank)));
  return pattern->add_recipe(name, "", "Transpose", kTransposeVersion, std::move(attributes), {id},
                             dtype, last);
}

}  // namespace folio
