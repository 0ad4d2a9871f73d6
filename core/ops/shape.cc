// Shape and Size: a tensor's dims, or the number of its elements, as int64.
//
// Source: ONNX operator spec, Shape, opsets 1, 13, 15 (start, end), 19 to 25; Size, opsets 1 to 25.
// Shapes: Shape gives [end - start], start and end clamped to [0, rank]; Size gives a scalar.
// Types:  all types; the result int64.
#include <limits>

#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct DimRange {
  int64_t start = 0;
  int64_t end = std::numeric_limits<int64_t>::max();

  // First and last + 1 in [0, rank], first <= last.
  std::pair<int, int> clamp(int rank) const {
    const auto place = [&](int64_t at) {
      if (at < 0) at = at < -rank ? 0 : at + rank;
      return static_cast<int>(std::min<int64_t>(at, rank));
    };
    const int first = place(start);
    return {first, std::max(first, place(end))};
  }
};

Result<DimRange> parse(const Attributes& attrs, int version) {
  DimRange range;
  if (version < 15) return range;
  FOLIO_TRY(range.start, attrs.get_int("start", range.start));
  FOLIO_TRY(range.end, attrs.get_int("end", range.end));
  return range;
}

class ShapeOf final : public OpKernel {
 public:
  explicit ShapeOf(DimRange range) : range_(range) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const auto [first, last] = range_.clamp(x->rank());
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt64, Shape{last - first}));
    std::copy(x->shape().begin() + first, x->shape().begin() + last, out->data_mut<int64_t>());
    return Status::ok();
  }

 private:
  DimRange range_;
};

class SizeOf final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(Tensor * out, run.output(0, DType::kInt64, Shape{}));
    *out->data_mut<int64_t>() = x->count();
    return Status::ok();
  }
};

Status infer_shape_of(OpInfer& infer) {
  FOLIO_TRY(const DimRange range, parse(infer.attrs(), infer.version()));
  Dims out(1);
  if (const Dims* x = infer.dims_of(0)) {
    const auto [first, last] = range.clamp(static_cast<int>(x->size()));
    out[0] = Dim::of(last - first);
    infer.set_data(0, std::vector<Dim>(x->begin() + first, x->begin() + last));
  }
  infer.set_tensor(0, DType::kInt64, std::move(out));
  return Status::ok();
}

Status infer_size_of(OpInfer& infer) {
  infer.set_tensor(0, DType::kInt64, Dims{});
  if (const Dims* x = infer.dims_of(0)) infer.set_data(0, {infer.table().product(*x)});
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_shape_of(OpBuild& build) {
  FOLIO_TRY(const DimRange range, parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<ShapeOf>(range));
}

Result<std::unique_ptr<OpKernel>> make_size_of(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<SizeOf>());
}

}  // namespace

[[gnu::cold]] void register_shape(OpRegistry& registry) {
  OpDef def;
  def.type = "Shape";
  def.keeps_half = true;
  def.infer = infer_shape_of;
  def.make = make_shape_of;
  def.unaligned_inputs = 1;
  registry.add(def);
  def.type = "Size";
  def.infer = infer_size_of;
  def.make = make_size_of;
  registry.add(def);
}

}  // namespace folio
