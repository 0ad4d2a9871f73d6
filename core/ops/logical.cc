// And, Or, Xor (with broadcasting) and Not.
//
// Source: ONNX operator spec; And, Or, Xor 1 (attributes broadcast, axis), 7; Not 1.
// Shapes: the inputs' numpy broadcast; all bool. Any non-zero byte is true.
// Types:  bool.
#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct AndFunction {
  bool operator()(uint8_t a, uint8_t b) const { return (a != 0) & (b != 0); }
};
struct OrFunction {
  bool operator()(uint8_t a, uint8_t b) const { return (a | b) != 0; }
};
struct XorFunction {
  bool operator()(uint8_t a, uint8_t b) const { return (a != 0) != (b != 0); }
};

template <typename F>
class LogicalKernel final : public OpKernel {
 public:
  explicit LogicalKernel(const LegacyBroadcast& legacy) : legacy_(legacy) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* a, run.tensor(0, DType::kBool));
    FOLIO_TRY(const Tensor* b, run.tensor(1, DType::kBool));
    FOLIO_TRY(const Shape b_shape, legacy_.second(a->shape(), b->shape()));
    FOLIO_TRY(const BroadcastPlan plan, plan_broadcast(a->shape(), b_shape));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kBool, plan.out));
    run_binary_rows(run, plan, binary_row<uint8_t, uint8_t, uint8_t, F>, *a, *b, y);
    return Status::ok();
  }

 private:
  LegacyBroadcast legacy_;
};

template <typename F>
Result<std::unique_ptr<OpKernel>> make_logical(OpBuild& build) {
  FOLIO_TRY(const LegacyBroadcast legacy, LegacyBroadcast::parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<LogicalKernel<F>>(legacy));
}

Status infer_logical(OpInfer& infer) {
  FOLIO_TRY(std::optional<Dims> dims, infer_binary_dims(infer));
  infer.set_tensor(0, DType::kBool, dims);
  return Status::ok();
}

class NotKernel final : public OpKernel {
 public:
  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kBool));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kBool, x->shape()));
    run.parallel().for_range(x->count(), kElementGrain, [&](int64_t begin, int64_t end) {
      const uint8_t* from = x->raw();
      uint8_t* to = y->raw_mut();
      for (int64_t i = begin; i < end; ++i) to[i] = from[i] == 0;
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_not(OpBuild&) {
  return std::unique_ptr<OpKernel>(std::make_unique<NotKernel>());
}

Status infer_not(OpInfer& infer) {
  const Dims* dims = infer.dims_of(0);
  infer.set_tensor(0, DType::kBool, dims ? std::optional<Dims>(*dims) : std::nullopt);
  return Status::ok();
}

template <typename F>
void add(OpRegistry& registry, std::string_view type) {
  registry.add({.domain = "",
                .type = type,
                .min_inputs = 2,
                .max_inputs = 2,
                .infer = infer_logical,
                .make = make_logical<F>});
}

}  // namespace

[[gnu::cold]] void register_logical(OpRegistry& registry) {
  add<AndFunction>(registry, "And");
  add<OrFunction>(registry, "Or");
  add<XorFunction>(registry, "Xor");
  registry.add({.domain = "", .type = "Not", .infer = infer_not, .make = make_not});
}

}  // namespace folio
