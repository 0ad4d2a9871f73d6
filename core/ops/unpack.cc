// Unpack: a weight out of a kernel's layout (op_unpack.h).
//
// Source: Folio's own; in files that `folio pack --replace` wrote.
// Shapes: blob [bytes] -> the attribute `shape`
// Types:  uint8 -> float, float16, bfloat16, int8, uint8
#include <cstring>

#include "core/ops/op_registry.h"
#include "core/ops/op_unpack.h"

namespace folio {
namespace {

class Unpack final : public OpKernel {
 public:
  explicit Unpack(PackedWeight weight) : weight_(std::move(weight)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* blob, run.tensor(0, DType::kUint8));
    const auto bytes = static_cast<size_t>(weight_.form.bytes);
    if (blob->bytes() != bytes) {
      return invalid_argument("the packed weight has ", blob->bytes(), " bytes, expected ", bytes);
    }
    const uint8_t* from = blob->raw();
    // Where a tool moved the bytes to another file.
    if (reinterpret_cast<uintptr_t>(from) % kBlobAlignment != 0) {
      FOLIO_TRY(uint8_t * aligned, run.scratch(bytes));
      std::memcpy(aligned, from, bytes);
      from = aligned;
    }
    FOLIO_TRY(Tensor * out, run.output(0, weight_.dtype, weight_.shape));
    unpack_weight(run.kernels(), run.parallel(), weight_, from, out->raw_mut());
    return Status::ok();
  }

 private:
  const PackedWeight weight_;
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const PackedWeight weight, parse_packed_weight(infer.attrs()));
  Dims dims;
  for (const int64_t dim : weight.shape.dims()) dims.push_back(Dim::of(dim));
  infer.set_tensor(0, weight.dtype, std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(PackedWeight weight, parse_packed_weight(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<Unpack>(std::move(weight)));
}

}  // namespace

[[gnu::cold]] void register_unpack(OpRegistry& registry) {
  OpDef def;
  def.domain = kUnpackDomain;
  def.type = kUnpackType;
  def.since = kUnpackVersion;
  def.until = kUnpackVersion;
  def.infer = infer;
  def.make = make;
  def.is_exact = true;
  registry.add(def);
}

}  // namespace folio
