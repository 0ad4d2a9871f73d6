// BlockCodes: a matrix of small integers as rows of unsigned codes, as MatMulNBits reads them; what
// passes/fuse_blocks.cc leaves where the model's own bytes are not so already.
//
// Source: Folio's own, domain folio, version 1.
// Shapes: x [n, k], or [k, n] with `trans`, of int2, uint2, int4, uint4, int8 or uint8;
//         y uint8 [n, row_bytes]: the k codes of a row, low bits first, then zeros.
// Math:   code = x, signed ones + 2^(bits - 1).
// Types:  int2, uint2, int4, uint4, int8, uint8.
// Errors: kInvalidArgument for other types, ranks, and rows that do not fit.
#include <algorithm>
#include <cstring>

#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

template <typename Q>
constexpr int kBitsOf = Q::kMax - Q::kMin == 3    ? 2
                        : Q::kMax - Q::kMin == 15 ? 4
                                                  : 8;

class BlockCodes final : public OpKernel {
 public:
  bool trans = false;
  int64_t row_bytes = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() != 2 || dtype_bits(x->dtype()) > 8) {
      return invalid_argument("x is ", dtype_name(x->dtype()), " ", x->shape().to_string(),
                              ", expected integers of 2, 4 or 8 bits of two dims");
    }
    const int64_t n = x->dim(trans ? 1 : 0);
    const int64_t k = x->dim(trans ? 0 : 1);
    const int64_t places = 8 / dtype_bits(x->dtype());
    if ((k + places - 1) / places > row_bytes) {
      return invalid_argument(k, " codes do not fit rows of ", row_bytes, " bytes");
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kUint8, {n, row_bytes}));
    if (y->count() != 0) std::memset(y->raw_mut(), 0, y->bytes());
    const bool known = dispatch_quantized(x->dtype(), [&](auto quantized) {
      using Q = decltype(quantized);
      if constexpr (Q::kSubByte || Q::kIsByte) {
        const int64_t columns = std::max<int64_t>(64, kElementGrain / (k + 1));
        run.parallel().for_range(n, columns, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; at += 64) {
            fill<Q>(x->raw(), n, k, at, std::min(end, at + 64), y->raw_mut());
          }
        });
      }
    });
    if (!known) return invalid_argument("x is ", dtype_name(x->dtype()));
    return Status::ok();
  }

 private:
  // Rows [begin, end) of y: few, so that a row of x that is read across writes bytes near by.
  template <typename Q>
  void fill(const uint8_t* x, int64_t n, int64_t k, int64_t begin, int64_t end, uint8_t* y) const {
    constexpr int kBits = kBitsOf<Q>;
    constexpr int64_t kPlaces = 8 / kBits;
    for (int64_t p = 0; p < k; ++p) {
      const int64_t shift = p % kPlaces * kBits;
      for (int64_t j = begin; j < end; ++j) {
        const int32_t code = Q::get(x, trans ? p * n + j : j * k + p) - Q::kMin;
        y[j * row_bytes + p / kPlaces] |= static_cast<uint8_t>(code << shift);
      }
    }
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t row_bytes, infer.attrs().get_int("row_bytes"));
  FOLIO_TRY(const int64_t trans, infer.attrs().get_int("trans", 0));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> dims;
  if (x && x->size() == 2 && row_bytes >= 0) dims = Dims{(*x)[trans ? 1 : 0], Dim::of(row_bytes)};
  infer.set_tensor(0, DType::kUint8, std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<BlockCodes>();
  FOLIO_TRY(kernel->row_bytes, build.attrs().get_int("row_bytes"));
  FOLIO_TRY(const int64_t trans, build.attrs().get_int("trans", 0));
  if (kernel->row_bytes < 0) {
    return invalid_graph("attribute 'row_bytes' is ", kernel->row_bytes, ", expected 0 or more");
  }
  kernel->trans = trans != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_block_codes(OpRegistry& registry) {
  registry.add({.domain = "folio",
                .type = "BlockCodes",
                .infer = infer,
                .make = make,
                .unaligned_inputs = 1,
                .is_exact = true});
}

}  // namespace folio
