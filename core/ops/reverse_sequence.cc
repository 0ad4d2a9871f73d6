// ReverseSequence: the first elements of each batch item in reverse order.
//
// Source: ONNX operator spec, ReverseSequence, opset 10.
// Shapes: x [time, batch, inner..] (or batch first), sequence_lens [batch] -> y as x.
// Types:  all types but those of 2 and 4 bits; lengths int32, int64.
// Notes:  batch and time are axes 0 and 1.
// Errors: kInvalidArgument when a length is outside [0, time], or axes are not 0 and 1.
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

class ReverseSequence final : public OpKernel {
 public:
  explicit ReverseSequence(bool time_first) : time_first_(time_first) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int64_t> lengths, run.ints(1));
    if (x->rank() < 2) {
      return invalid_argument("input 0 has rank ", x->rank(), ", expected 2 or more");
    }
    const int64_t time = x->dim(time_first_ ? 0 : 1);
    const int64_t batch = x->dim(time_first_ ? 1 : 0);
    if (static_cast<int64_t>(lengths.size()) != batch) {
      return invalid_argument("sequence_lens has ", lengths.size(), " entries for a batch of ",
                              batch);
    }
    for (const int64_t length : lengths) {
      if (length < 0 || length > time) {
        return invalid_argument("a sequence length is ", length, ", expected 0 to ", time);
      }
    }
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    if (y->count() == 0) return Status::ok();
    const int64_t inner = x->shape().product(2, x->rank());
    const int64_t time_step = time_first_ ? batch * inner : inner;
    const int64_t batch_step = time_first_ ? inner : time * inner;
    return dispatch_move(x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t length = lengths[static_cast<size_t>(b)];
        for (int64_t t = 0; t < time; ++t) {
          const int64_t from = t < length ? length - 1 - t : t;
          move_run(y->data_mut<T>() + b * batch_step + t * time_step,
                   x->data<T>() + b * batch_step + from * time_step, inner);
        }
      }
      return Status::ok();
    });
  }

 private:
  bool time_first_;
};

Status infer_reverse(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_reverse(OpBuild& build) {
  FOLIO_TRY(const int64_t batch, build.attrs().get_int("batch_axis", 1));
  FOLIO_TRY(const int64_t time, build.attrs().get_int("time_axis", 0));
  if (batch < 0 || batch > 1 || time != 1 - batch) {
    return invalid_graph("batch_axis is ", batch, " and time_axis ", time, ", expected 0 and 1");
  }
  return std::unique_ptr<OpKernel>(std::make_unique<ReverseSequence>(time == 0));
}

}  // namespace

[[gnu::cold]] void register_reverse_sequence(OpRegistry& registry) {
  OpDef def;
  def.type = "ReverseSequence";
  def.since = 10;
  def.keeps_half = true;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_reverse;
  def.make = make_reverse;
  registry.add(def);
}

}  // namespace folio
