// ByteTable: each byte by a table of 256; what passes/fuse_tables.cc leaves of functions between
// DequantizeLinear and QuantizeLinear.
//
// Source: Folio's own, domain folio, version 1.
// Shapes: x of any shape, int8 or uint8; table: 256 elements of int8 or uint8, by the bits of x;
//         y as x, of the table's type.
// Types:  int8 and uint8.
// Errors: kInvalidArgument for other types and sizes.
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class ByteTable final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* table, byte_tensor(run, 1));
    if (table->count() != 256) {
      return invalid_argument("a table of ", table->count(), " elements, expected 256");
    }
    FOLIO_TRY(Tensor * y, run.output(0, table->dtype(), x->shape()));
    const uint8_t* of = table->raw();
    run.parallel().for_range(x->count(), kElementGrain, [&](int64_t begin, int64_t end) {
      run.kernels().map_b8(of, end - begin, x->raw() + begin, y->raw_mut() + begin);
    });
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  std::optional<Dims> dims;
  if (const Dims* known = infer.dims_of(0)) dims = *known;
  infer.set_tensor(0, infer.dtype(1), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<ByteTable>());
}

}  // namespace

[[gnu::cold]] void register_byte_table(OpRegistry& registry) {
  registry.add({.domain = "folio",
                .type = "ByteTable",
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer,
                .make = make,
                .is_exact = true});
}

}  // namespace folio
